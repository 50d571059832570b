"""Where the timing of a run is: next to its recording. Apart from what is in it, which takes long to load."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

TIMING_SUFFIX = ".timing"
TIMING_KIND = b"worldline timing "
"""How every timing begins; the version follows."""


def is_timing(path: Path) -> bool:
    """Whether a file is a timing."""
    try:
        with path.open("rb") as file:
            return file.read(len(TIMING_KIND)) == TIMING_KIND
    except OSError:
        return False


def put_aside(path: Path) -> None:
    """Let a timing that is of an earlier run go where that one's recording goes: NAME.previous.timing."""
    if is_timing(path):
        with suppress(OSError):  # Then it is said to be of another run, if the digests differ.
            path.replace(path.with_suffix(f".previous{TIMING_SUFFIX}"))
