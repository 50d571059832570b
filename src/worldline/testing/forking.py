"""Tries the seeds of a simulated test in several processes.

A test is made of fixtures, which can't be sent elsewhere, so the processes are forked. All that they say is which seed
failed first: its failure is had by running that seed again, here.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct, msgpack

from worldline.model.errors import ConfigurationError, InternalError

Try = Callable[[int], tuple[bool, int]]
"""Tries a seed; returns whether it failed, and how much has happened."""


class Share(Struct, frozen=True):
    """What came of the seeds of one process: how much happened, and which one failed; or why it couldn't go on."""

    events: int = 0
    failed: int | None = None
    trouble: str = ""


def first_failing(attempt: Try, number: int, workers: int) -> tuple[int | None, int]:
    """Return the first of so many seeds that fails, if one does, and how much has happened."""
    if workers < 1 or not hasattr(os, "fork"):
        raise ConfigurationError(f"there can't be {workers} workers", advice="use 1 or more, on a system that can fork")
    lowest = _Lowest(number)
    children: dict[int, int] = {}
    try:
        for place in range(min(workers, number)):
            children.update([_forked(partial(_share, attempt, range(place, number, workers), lowest))])
        shares = [_read(reading) for reading in children.values()]
    except BaseException:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise
    finally:
        for child in children:
            os.waitpid(child, 0)
    for share in shares:
        if share.trouble:
            raise InternalError(f"a process that tried seeds has ended: {share.trouble}")
    failed = [share.failed for share in shares if share.failed is not None]
    return min(failed, default=None), sum(share.events for share in shares)


class _Lowest:
    """The lowest seed that is known to fail, for all processes. One that misses it only tries more than it has to."""

    def __init__(self, start: int) -> None:
        self._memory = mmap.mmap(-1, 8)
        self.set(start)

    def get(self) -> int:
        return int.from_bytes(self._memory[:8], "little")

    def set(self, seed: int) -> None:
        self._memory[:8] = seed.to_bytes(8, "little")


def _share(attempt: Try, seeds: range, lowest: _Lowest) -> Share:
    events = 0
    for seed in seeds:
        if seed > lowest.get():
            break
        has_failed, happened = attempt(seed)
        events += happened
        if has_failed:
            if seed < lowest.get():
                lowest.set(seed)
            return Share(events, seed)
    return Share(events)


def _forked(live: Callable[[], Share]) -> tuple[int, int]:
    """Start a process; return its number, and where it is read what it returns."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        try:
            share = live()
        except BaseException as error:  # It is told there.
            share = Share(trouble="".join(traceback.format_exception_only(error)).strip())
        os.write(writing, msgpack.encode(share))
    finally:
        os._exit(0)  # Without what pytest would do at the end.


def _read(reading: int) -> Share:
    with open(reading, "rb") as file:
        said = file.read()
    return msgpack.decode(said, type=Share) if said else Share(trouble="it was killed")
