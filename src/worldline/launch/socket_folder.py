"""Chooses where a run's Unix socket lies: in a folder that only this user can open."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

from worldline.federation.registry import opened_folder, runtime_folder
from worldline.scratch_folder import ScratchFolder

_PATH_MAX = 80  # Of the 104 to 108 bytes that a socket's path can have, what is left for the folder.
_SHORT = "/tmp"
_NAME_LENGTH = 16


def socket_folder() -> ScratchFolder:
    """Return a new folder that only this user can open, with a path that is short enough for a socket."""
    usual = gettempdir()
    place = usual if len(usual.encode()) < _PATH_MAX else _SHORT
    return ScratchFolder(place=place)


def socket_of(journal: Path) -> Path:
    """Return the socket of a run with a journal, the same each time that it is taken up: participants try it again."""
    usual = runtime_folder()
    folder = usual if len(str(usual).encode()) < _PATH_MAX else Path(_SHORT) / usual.name
    name = sha256(str(journal.resolve()).encode()).hexdigest()[:_NAME_LENGTH]
    return opened_folder(folder) / f"{name}.socket"
