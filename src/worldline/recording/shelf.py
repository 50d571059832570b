"""Where a recording gets its name: under another one while it is written, and what stood there is kept or refused.

A recording is written as NAME.unfinished-PID.mcap beside its place and put there when it is finished; the recording
that was there becomes NAME.previous.mcap. Only recordings are treated like that: anything else that has one of the two
names is somebody's, and isn't touched unless that is forced. The timing of a recording goes with it. A link is
followed, and stays; a pipe or a device is written to, and has no previous one. All of this is judged before a run, and
again after it. What runs that were killed have left unfinished is there until the next recording has its name.
"""

from __future__ import annotations

import glob
import os
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from worldline.model.errors import LossError, UsageError, shortened
from worldline.recording.scan import header_of
from worldline.recording.timing_file import TIMING_SUFFIX, put_aside
from worldline.saving.destination import Destination, destination

_UNFINISHED = ".unfinished-"


class Kept(NamedTuple):
    """Where a recording is, and what became of what was there before, if anything was."""

    path: Path
    note: str = ""


class Shelf:
    """The place of one recording. Making one judges the place, and changes nothing there."""

    def __init__(self, path: str | PathLike[str], *, force: bool = False) -> None:
        if str(path) == "-":
            raise UsageError("a recording can't be named -", advice="standard output is /dev/stdout")
        self._force = force
        self.kept: Kept | None = None  # What `put` has returned.
        self.is_timed = False  # Whether a timing is noted beside it.
        self._destination = destination(path)
        file = self._destination.file
        self._previous = file.with_suffix(f".previous{file.suffix}")
        self.target = file.with_suffix(f"{_UNFINISHED}{os.getpid()}{file.suffix}")  # Others may record here as well.
        if self._destination.is_stream:
            self.target = self._destination.path
        else:
            self._replaced()

    @property
    def is_standard_output(self) -> bool:
        """Whether the recording goes where a command's words usually go."""
        return self._destination.descriptor == 1

    @property
    def is_stream(self) -> bool:
        """Whether it is written to what isn't a file, such as a pipe."""
        return self._destination.is_stream

    @property
    def waits(self) -> bool:
        """Whether somebody must read it before anything can be written."""
        found = self._destination
        return found.is_stream and found.descriptor is None and stat.S_ISFIFO(found.path.stat().st_mode)

    @property
    def path(self) -> Path:
        """Where it was wanted."""
        return self._destination.path

    def put(self) -> Kept:
        """Give a recording that is finished its name; return where it is, and what else there is to be said."""
        self.kept = self._put()
        return self.kept

    def _put(self) -> Kept:
        path = self.path
        if self._destination.is_stream:
            return Kept(path)
        try:
            before = self._replaced()
            if before is not None:
                self._destination.file.replace(self._previous)
            if not self.is_timed:
                put_aside(self._destination.file.with_suffix(TIMING_SUFFIX))
            self.target.replace(self._destination.file)
        except UsageError as error:  # It wasn't so when the run began.
            return Kept(self.target, str(error))
        except OSError as error:
            raise LossError(f"the recording {self.target} can't be named {path}: {error.strerror or error}") from error
        notes = [] if before is None else [f"{path} was {before}; it is now {self._previous}"]
        notes += [f"{each}, of a run that was killed, is removed" for each in self._leftovers()]
        return Kept(path, "; ".join(notes))

    def _leftovers(self) -> list[Path]:
        """Remove the recordings for this place that processes which are gone have left unfinished; return them."""
        file = self._destination.file
        begin, end = f"{file.stem}{_UNFINISHED}", file.suffix
        removed = []
        for path in sorted(file.parent.glob(f"{glob.escape(begin)}*{glob.escape(end)}")):
            process = path.name.removeprefix(begin).removesuffix(end)
            if process.isdecimal() and not _is_alive(int(process)) and not path.is_symlink() and _is_recording(path):
                with suppress(OSError):
                    path.unlink()
                    removed.append(path)
        return removed

    def clear(self) -> None:
        """Take away what was written, if nobody is to have it."""
        if not self._destination.is_stream:
            self.target.unlink(missing_ok=True)

    def _replaced(self) -> str | None:
        """Say what will be replaced, if anything will; refuse it if it may not be."""
        found: Destination = destination(self._destination.path)
        if found.is_stream or found.file != self._destination.file:
            raise UsageError(f"{found.path} has become something else in the meantime")
        if found.is_new or not found.file.stat().st_size:
            return None
        before = self._contents(found.file)
        try:
            kind = self._previous.lstat()
        except FileNotFoundError:
            return before
        if not stat.S_ISREG(kind.st_mode):
            raise UsageError(
                f"{self._previous} is in the way of the recording that {found.path} is now, and isn't a plain file",
                advice="move one of them",
            )
        if kind.st_size:
            self._contents(self._previous)
        return before

    def _contents(self, file: Path) -> str:
        """Say what is in a file, if it is a recording; refuse to replace another one."""
        header = header_of(file)
        if header is not None:
            return f"a recording of {shortened(header.get('federation', '')) or 'a federation without a name'}"
        if not self._force:
            raise UsageError(f"{file} isn't a recording and would be replaced", advice="use --force, or another name")
        return "something other than a recording"


def _is_recording(path: Path) -> bool:
    try:
        return path.is_file() and (not path.stat().st_size or header_of(path) is not None)
    except (OSError, UsageError):
        return False


def _is_alive(process: int) -> bool:
    """Whether there is such a process, or there may be: only what is certainly gone has left something behind."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
