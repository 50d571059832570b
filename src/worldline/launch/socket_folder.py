"""Makes the folder in which a run's Unix socket lies."""

from __future__ import annotations

from tempfile import TemporaryDirectory, gettempdir

_PATH_MAX = 80  # Of the 104 to 108 bytes that a socket's path can have, what is left for the folder.
_SHORT = "/tmp"


def socket_folder() -> TemporaryDirectory[str]:
    """Return a new folder that only this user can open, with a path that is short enough for a socket."""
    usual = gettempdir()
    place = usual if len(usual.encode()) < _PATH_MAX else _SHORT
    return TemporaryDirectory(prefix="worldline-", dir=place, ignore_cleanup_errors=True)
