"""Writes what is shown in a thread of its own, so that no run waits for whoever reads it.

A reader may be slow (a pager, a terminal that is scrolled back), may go before its time (`head`), or be a full disk. A
run goes on meanwhile; only its end waits until all is written. What can't be written is no secret: `failure` says why.

While somebody else has the terminal, all is held, in a file if it is much: nobody who prints may have to wait for that.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
from collections import deque
from tempfile import SpooledTemporaryFile
from typing import TextIO

KEPT_MAX = 2**26
"""How many bytes are kept for a slow reader before whoever prints has to wait for it."""

_WRITE_MAX = 2**16
_HELD_IN_MEMORY = 2**22
_LOOK_S = 0.05


class ScreenOutput(io.TextIOBase):
    """A text file that takes everything at once, and writes it to another one."""

    def __init__(self, file: TextIO | None) -> None:
        self.failure: OSError | None = None  # Why nothing more can be written.
        self._file = file  # None: standard output was closed before we came.
        self._pending: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._given_up = False
        self._held: SpooledTemporaryFile[bytes] | None = None
        self._held_size = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._file, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._file is not None and self._file.isatty()

    def fileno(self) -> int:
        if self._file is None:
            raise io.UnsupportedOperation("fileno")
        return self._file.fileno()

    def write(self, text: str) -> int:
        data = text.encode(self.encoding, "backslashreplace")
        with self._changed:
            if self._held is not None:
                self._held.seek(self._held_size)
                self._held_size += self._held.write(data)
            else:
                self._queue(data)
        return len(text)

    def _queue(self, data: bytes) -> None:
        if self.failure is None and self._file is not None and data:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="worldline screen", daemon=True)
                self._thread.start()
            self._pending.append(data)
            self._size += len(data)
            self._changed.notify_all()

    def hold(self) -> None:
        """Write nothing from now on, until `show_held`; keep it instead."""
        with self._changed:
            self._held = SpooledTemporaryFile(_HELD_IN_MEMORY)  # noqa: SIM115 - `show_held` closes it

    def show_held(self) -> None:
        """Write what was kept, and then whatever comes."""
        shown = 0
        while self._held is not None:
            with self._changed:
                shown += self._show_from(shown)
            self.wait_for_room()

    def _show_from(self, place: int) -> int:
        """Write the next part of what was kept, or be done with it; return how much that was."""
        assert self._held is not None
        self._held.seek(place)
        part = self._held.read(_WRITE_MAX)
        if part:
            self._queue(part)
        else:
            self._held.close()
            self._held, self._held_size = None, 0
        return len(part)

    def wait_for_room(self) -> None:
        """Wait as long as more is kept than is reasonable. For whoever can go on printing for ever."""
        self._wait_until(KEPT_MAX)

    def wait_written(self) -> None:
        """Wait until all is written, or can't be."""
        self._wait_until(0)

    def give_up(self) -> None:
        """Wait for nobody from here on. May be called from a signal's handler."""
        self._given_up = True

    def finish(self) -> None:
        """Wait until all is written, or can't be, and end."""
        self.show_held()
        self.wait_written()
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None and not self._given_up:
            thread.join()

    def _wait_until(self, size: int) -> None:
        with self._changed:
            self._changed_to(size)

    def _changed_to(self, size: int) -> None:
        """Wait, apart from the lock: a signal's handler that raised at the loop's jump back would leave it locked."""
        while self._size > size and self.failure is None and not self._given_up:
            self._changed.wait(_LOOK_S)

    # --- In its thread ---

    def _live(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._ending)
                if not self._pending:
                    return
                batch = [self._pending.popleft()]
                size = len(batch[0])
                while self._pending and size < _WRITE_MAX:
                    size += len(self._pending[0])
                    batch.append(self._pending.popleft())
            try:
                self._put(b"".join(batch))
            except OSError as error:
                with self._changed:
                    self.failure = error
                    self._pending.clear()
            with self._changed:
                self._size -= size
                self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        """Write all of it. Past the file's own buffer: it would be locked as long as the reader doesn't read."""
        assert self._file is not None
        try:
            descriptor = self._file.fileno()
        except io.UnsupportedOperation:  # It is in memory.
            self._file.write(data.decode(self.encoding))
            return
        left = memoryview(data)
        while left:
            with contextlib.suppress(BlockingIOError):  # Whoever shares it with us may have asked it not to wait.
                left = left[os.write(descriptor, left) :]
                continue
            select.select([], [descriptor], [])
