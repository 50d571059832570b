"""How many files this process may have open: every connection is one, and so is every process that is listened to."""

from __future__ import annotations

import resource
from pathlib import Path

_SPARE = 8  # For what is opened now and then besides: recordings, journals, modules that are loaded late.
_UNLIMITED = 2**62


def files_max() -> int:
    """Return how many files this process may have open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit


def files_left() -> int:
    """Return how many files this process may open besides those that it has."""
    return files_max() - _files_open()


def too_few_files(more: int, what: str) -> str | None:
    """Say so if this needs more files than this process may have open."""
    limit, needed = files_max(), _files_open() + more + _SPARE
    if limit >= needed:
        return None
    return f"{what} need about {needed:,} open files, and this process may have {limit:,}: {_raised_to(needed)}"


def no_file_left(more: int) -> str:
    """Say that there is no file left for those who aren't connected yet, and how many would be enough."""
    limit = files_max()
    return (
        f"no file is left for a connection, and this process may have {limit:,} open: "
        f"{_raised_to(_files_open() + more + _SPARE)}"
    )


def _files_open() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:  # None is left for looking.
        return files_max()


def _raised_to(needed: int) -> str:
    return f"raise the limit with `ulimit -n {needed}`, and start it again"
