"""A participant's conversation with its server, written down by one process while another one reads it.

It goes through files, not through a pipe: whoever writes must never wait for whoever reads. Each file but the last is
full, and whoever has read one removes it, so they take as much room as the reader is behind. Nobody is in a hurry for
it, so much is written at once: to write is a system call, and the participant has better things to do.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SAID, HEARD = b"s", b"h"
"""What the participant said, and what it heard."""

_LENGTH = 4
_FULL = 2**24
_LARGE = 2**14
_KEPT_MAX = 2**9
_WRITE_EVERY_S = 0.02
_READ_MAX = 2**20
_END = "script.end"
_LOOK_S, _LOOK_S_MAX = 0.0005, 0.02


def _file(folder: Path, number: int) -> Path:
    return folder / f"script.{number}"


def is_begun(folder: Path) -> bool:
    """Whether somebody has begun to write there."""
    return any(folder.glob("script.*"))


class ScriptWriter:
    """Writes it down, in any thread. If that fails, it gives up, and harms nobody."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._kept: deque[tuple[bytes, bytes | memoryview]] = deque()
        self._due = 0.0  # When it is to be written: the first of it at once.
        self._number = self._size = 0
        self._opened: int | None = _create(_file(folder, 0))

    def note(self, who: bytes, data: bytes | memoryview) -> None:
        """Take down what was said or heard, which nobody may change any more; write it when there is enough of it."""
        self._kept.append((who, data))
        if time.monotonic() >= self._due or len(data) > _LARGE or len(self._kept) > _KEPT_MAX:
            self.flush()

    def rest(self) -> None:
        """There is nothing to say or to hear: write what has been kept for long."""
        if self._kept and time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        """Write all of it."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        self._due = time.monotonic() + _WRITE_EVERY_S
        parts: list[bytes | memoryview] = []
        while self._kept:
            who, part = self._kept.popleft()
            parts += (who + len(part).to_bytes(_LENGTH, "big"), part)
        data = b"".join(parts)
        if self._opened is None:
            return
        try:
            written = os.write(self._opened, data)
            self._size += written
            if written < len(data):  # There is no room left.
                self._opened = None
            elif self._size > _FULL:
                self._turn_over()
        except OSError:
            self._opened = None

    def _turn_over(self) -> None:
        assert self._opened is not None
        os.close(self._opened)
        self._number, self._size = self._number + 1, 0
        self._opened = _create(_file(self._folder, self._number))


def _create(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def end_script(folder: Path) -> None:
    """Say that nothing more will be written: whoever wrote is gone."""
    (folder / _END).touch()


class Overheard(NamedTuple):
    """A piece of what was said or heard, in the order of both."""

    who: bytes
    data: bytes


class ScriptReader:
    """Reads it while it is being written, and waits for more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pieces(self) -> Iterator[Overheard]:
        """Return all of it, as it comes."""
        rest = b""
        for data in self._data():
            rest += data
            at = 0
            while len(rest) - at > _LENGTH:
                start = at + 1 + _LENGTH
                end = start + int.from_bytes(rest[at + 1 : start], "big")
                if end > len(rest):
                    break
                yield Overheard(rest[at : at + 1], rest[start:end])
                at = end
            rest = rest[at:]

    def _data(self) -> Iterator[bytes]:
        number, wait_s = 0, _LOOK_S
        while not self._is_there(number):
            if (self._folder / _END).exists() and not self._is_there(number):
                return
            time.sleep(_LOOK_S_MAX)
        while True:
            with _file(self._folder, number).open("rb", buffering=0) as file:
                while True:
                    # In this order: what is written before the next file, or the end, is read before it.
                    is_last = (self._folder / _END).exists()
                    is_full = self._is_there(number + 1)
                    if data := file.read(_READ_MAX):
                        wait_s = _LOOK_S
                        yield data
                    elif is_full:
                        break
                    elif is_last:
                        return
                    else:
                        time.sleep(wait_s)
                        wait_s = min(2 * wait_s, _LOOK_S_MAX)
            _file(self._folder, number).unlink()
            number += 1

    def _is_there(self, number: int) -> bool:
        return _file(self._folder, number).exists()
