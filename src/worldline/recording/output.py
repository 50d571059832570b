"""Where a recorder's bytes go: whole records, front to back; and behind them, in a file, what isn't a chunk yet.

A file is cut into chunks by content alone, so what has been recorded since the last chunk isn't in it, for hours if
little is recorded. Therefore a file has a **tail**: the records of the chunk in progress, one by one, which MCAP allows
and every reader understands. When the chunk is complete, it takes the tail's place. Whatever has ended the process in
between, the file must then hold either the tail or the chunk, never half of each, never both:

1. Behind the tail, a record that readers skip (its kind is private), with a copy of the chunk in it.
2. The tail's first nine bytes, kind and length of a record, become those of a skipped one that ends where the copy
   begins: in one small write the tail is gone and the copy is there.
3. In the skipped part, the chunk, but for its own first nine bytes, and a skipped record around the rest.
4. The chunk's first nine bytes: it is there, and the copy is gone.
5. The file ends behind the chunk.

After each step, and after any part of the large writes in 1 and 3, the file is what a file that was cut off may be. A
write of nine bytes isn't interrupted, as far as we know, unless it lies across two pages of the file.

What can only be streamed to has no tail: it gets whole chunks, and is waited for as long as it takes nothing. `give_up`
ends that, also from a signal's handler; so what is written at a time is no more than a pipe takes at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from worldline.files.saving import destination, refusal
from worldline.model.errors import LossError, UsageError

_PREFIX = struct.Struct("<BQ")
_SKIPPED = 0x80  # The first kind of record that MCAP leaves to its users.
_AT_ONCE = 4096  # Bytes that a pipe with room takes without letting its writer wait: Linux's PIPE_BUF.
_LOOK_MS = 100


class Output:
    """The bytes of one recording. `broken` says that some couldn't be written, so that no more may follow.

    `name` is what the recording is called in errors, if it is to get another name than it is written under.
    """

    def __init__(
        self, target: str | PathLike[str] | BinaryIO, *, overwrite: bool, name: PathLike[str] | None = None
    ) -> None:
        self.broken = False
        self._given_up = False
        self._end = 0  # Of what is final.
        self._tail = 0  # How many bytes of the tail are behind that.
        self._descriptor: int | None = None
        self.has_tail = False
        if isinstance(target, str | PathLike):
            self._name = str(target if name is None else name)
            self._descriptor, self.has_tail = _opened(Path(target), self._name, overwrite=overwrite)
        else:
            self._name = str(getattr(target, "name", "file"))
            self._file: BinaryIO = target

    def put(self, data: bytes) -> None:
        """Write whole records, in the place of the tail."""
        self._guarded(self._replace_tail if self._tail else self._append, data)
        self._end += len(data)
        self._tail = 0

    def show(self, data: bytes) -> None:
        """Write whole records behind the tail."""
        self._guarded(lambda more: self._write_at(self._end + self._tail, more), data)
        self._tail += len(data)

    def give_up(self) -> None:
        """Wait no more for the reader of a pipe. May be called from a signal's handler."""
        self._given_up = True

    def close(self) -> None:
        """Close what was opened here."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _guarded(self, write: Callable[[bytes], None], data: bytes) -> None:
        try:
            write(data)
        except OSError as error:
            self.broken = True
            raise LossError(
                f"the recording {self._name} can't be written: {error.strerror or error}",
                advice="what was written before stays readable",
            ) from error

    def _append(self, data: bytes) -> None:
        if self.has_tail:
            self._write_at(self._end, data)
        elif self._descriptor is not None:
            self._stream(self._descriptor, data)
        else:
            self._file.write(data)
            self._file.flush()

    def _stream(self, descriptor: int, data: bytes) -> None:
        room = select.poll()
        room.register(descriptor, select.POLLOUT)
        view = memoryview(data)
        while view:
            if room.poll(_LOOK_MS):
                with contextlib.suppress(BlockingIOError):  # Another writer was quicker.
                    view = view[os.write(descriptor, view[:_AT_ONCE]) :]
            elif self._given_up:
                raise OSError("the reader closed it")

    def _replace_tail(self, data: bytes) -> None:
        begin, end, size = self._end, self._end + self._tail, len(data)
        copy = max(end, begin + size) + _PREFIX.size  # Where the copy begins: behind the tail, and behind the chunk.
        self._write_at(end, _skipped(end, copy + size))
        self._write_at(copy, data)
        self._write_at(begin, _skipped(begin, copy))
        self._write_at(begin + _PREFIX.size, data[_PREFIX.size :] + _skipped(begin + size, copy + size))
        self._write_at(begin, data[: _PREFIX.size])
        self._cut(begin + size)

    def _write_at(self, offset: int, data: bytes) -> None:
        assert self._descriptor is not None
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            offset += written
            view = view[written:]

    def _cut(self, size: int) -> None:
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, size)


RecordingTarget = str | PathLike[str] | BinaryIO | Output
"""What a recording can be written to."""


def _skipped(begin: int, end: int) -> bytes:
    """Return the start of a record that readers skip, from one offset to another."""
    return _PREFIX.pack(_SKIPPED, end - begin - _PREFIX.size)


def _opened(path: Path, name: str, *, overwrite: bool) -> tuple[int, bool]:
    """Open what a recording is to be written to; return its descriptor, and whether it is a file.

    `name` is what its user calls it.
    """
    to = destination(path, called=name)
    if to.is_stream:
        descriptor = to.open_stream()
        if os.isatty(descriptor):
            os.close(descriptor)
            raise UsageError(f"{name} is a terminal, and a recording isn't text", advice="record into a file")
        return descriptor, False
    try:
        if overwrite:
            to.file.unlink(missing_ok=True)  # Not emptied: a reader of the old one keeps it.
        return os.open(to.file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), True
    except FileExistsError as error:
        raise UsageError(f"{name} already exists", advice="remove it, or choose another name") from error
    except OSError as error:
        raise refusal(name, error.strerror or str(error)) from error


# Where the timing of a run is: next to its recording. Apart from what is in it, which takes long to load.

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


def put_timing_aside(path: Path) -> None:
    """Let a timing that is of an earlier run go where that one's recording goes: NAME.previous.timing."""
    if is_timing(path):
        with suppress(OSError):  # Then it is said to be of another run, if the digests differ.
            path.replace(path.with_suffix(f".previous{TIMING_SUFFIX}"))
