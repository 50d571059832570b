"""The recording of one run, from before it begins until its file has its name: the same whichever command runs it.

R1. The place was judged, and the file is open, before anything happens.
R2. Whatever ends the run, what is certain by then is in the file, and the file is whole.
R3. The file gets its name when the run has ended, and the one before it another. A run that never began leaves nothing
    behind and replaces nothing.
R4. What ended the run stays the error, though the recording can't be finished either.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from worldline.files.saving import Destination, destination
from worldline.history.outcome import Outcome
from worldline.model.errors import LossError, UsageError, WorldlineError, shortened
from worldline.recording.output import TIMING_SUFFIX, Output, RecordingTarget, put_timing_aside
from worldline.recording.scan import header_of
from worldline.recording.writer import Recorder

# Where a recording gets its name: under another one while it is written, and what stood there is kept or refused.
#
# A recording is written as NAME.unfinished-PID.mcap beside its place and put there when it is finished; the recording
# that was there becomes NAME.previous.mcap. Only recordings are treated like that: anything else that has one of the
# two names is another's, and isn't touched unless that is forced. The timing of a recording goes with it. A link is
# followed, and stays; a pipe or a device is written to, and has no previous one. All of this is judged before a run,
# and again after it. What runs that were killed have left unfinished is there until the next recording has its name.

_UNFINISHED = ".unfinished-"


class Shelf:
    """The place of one recording. Making one judges the place, and changes nothing there."""

    def __init__(self, path: str | PathLike[str], *, force: bool = False) -> None:
        if str(path) == "-":
            raise UsageError("a recording can't be named -", advice="standard output is /dev/stdout")
        self._force = force
        self.kept: Path | None = None  # Where the recording is, once it has its name.
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
        """Whether a reader must have opened it before anything can be written."""
        found = self._destination
        return found.is_stream and found.descriptor is None and stat.S_ISFIFO(found.path.stat().st_mode)

    @property
    def path(self) -> Path:
        """Where it was wanted."""
        return self._destination.path

    def put(self) -> str:
        """Give a recording that is finished its name, if it can have it; return what else there is to be said."""
        path = self.kept = self.path
        if self._destination.is_stream:
            return ""
        try:
            before = self._replaced()
            if before is not None:
                self._destination.file.replace(self._previous)
            if not self.is_timed:
                put_timing_aside(self._destination.file.with_suffix(TIMING_SUFFIX))
            self.target.replace(self._destination.file)
        except UsageError as error:  # It wasn't so when the run began.
            self.kept = self.target
            return str(error)
        except OSError as error:
            raise LossError(f"the recording {self.target} can't be named {path}: {error.strerror or error}") from error
        notes = [] if before is None else [f"{path} was {before}; it is now {self._previous}"]
        notes += [f"{each}, of a run that was killed, is removed" for each in self._leftovers()]
        return "; ".join(notes)

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
        """Take away what was written, if it isn't to be kept."""
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


class RunRecording:
    """Records a run on its shelf. `observer` is what the run has to tell, once the recording is entered.

    `opened` makes the recorder. `say` is told where the recording is and what became of the one before it, `warn`
    what is wrong with it.
    """

    observer: Recorder

    def __init__(
        self,
        shelf: Shelf,
        opened: Callable[[RecordingTarget], Recorder],
        *,
        say: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._shelf = shelf
        self._opened = opened
        self._say = say
        self._warn = warn

    def __enter__(self) -> Self:
        if self._shelf.waits:
            self._say(f"waiting for a reader of {self._shelf.target}")
        output = Output(self._shelf.target, overwrite=True, name=self._shelf.path)
        try:
            self.observer = self._opened(output)
        except BaseException:
            output.close()
            self._shelf.clear()
            raise
        return self

    def conclude(self, outcome: Outcome) -> None:
        """Finish it with what has come of the run, which may be a failure."""
        if outcome.is_whole:
            self.observer.close(dropped=outcome.dropped, failure=outcome.failure)
        else:
            assert outcome.failure is not None
            self.break_off(outcome.failure, end=outcome.now + (not outcome.is_cut))  # Until then all is certain.

    def break_off(self, failure: BaseException, *, end: int | None = None) -> None:
        """Finish it with why the run has ended before its time. With an `end`, all that was told is certain."""
        who, at = (failure.participant, failure.at) if isinstance(failure, WorldlineError) else (None, None)
        abandon = partial(self.observer.abandon, _cause(failure), participant=who, at=at)
        try:
            abandon(end=end)
        except WorldlineError as error:  # It can't hold the rest, or the disk is full (R4).
            self._warn(f"the recording isn't complete: {error}")
            with suppress(LossError):
                abandon()  # Up to there.

    def give_up(self) -> None:
        """Wait no more for the recording's reader. May be called from a signal's handler."""
        self.observer.give_up()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.break_off(error)
        if not self.observer.begun:
            self._shelf.clear()
            return
        note = self._shelf.put()
        if note:
            (self._say if self._shelf.kept == self._shelf.path else self._warn)(note)
        self._say(f"recorded in {self._shelf.kept}")


def _cause(error: BaseException) -> str:
    if isinstance(error, WorldlineError):
        return error.problem
    return str(error) or "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
