"""Tells apart what participants print that run in one process, each in a thread of its own."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TextIO

from worldline.federation.participant import Participant
from worldline.federation.program import Federation

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""


class Voices(io.RawIOBase):
    """What is under standard output meanwhile: a participant's thread is heard by `say`, with its name and time.

    Standard output itself is an ordinary text file, with all that belongs to one. What bypasses Python, and what other
    threads print, goes to where it would have gone.
    """

    def __init__(self, say: Say, aside: io.TextIOBase) -> None:
        self._say = say
        self._aside = aside
        self._speakers: dict[int, Participant] = {}
        self._lines: dict[int, bytes] = {}
        self._usual: TextIO = sys.stdout
        self.name = "<stdout>"

    def of(self, federation: Federation) -> Federation:
        """Return the federation with programs whose voices are known."""
        return replace(
            federation,
            programs={
                name: replace(program, run=self._heard(program.run)) for name, program in federation.programs.items()
            },
        )

    def _heard(self, run: Callable[[Participant], object]) -> Callable[[Participant], object]:
        def speak(participant: Participant) -> object:
            thread = threading.get_ident()
            self._speakers[thread] = participant
            try:
                return run(participant)
            finally:
                if rest := self._lines.pop(thread, b""):
                    self._say(participant.name, participant.now, _text(rest))
                del self._speakers[thread]

        return speak

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        thread = threading.get_ident()
        speaker = self._speakers.get(thread)
        if speaker is None:
            self._aside.write(_text(taken))
        else:
            *lines, self._lines[thread] = (self._lines.get(thread, b"") + taken).split(b"\n")
            for line in lines:
                self._say(speaker.name, speaker.now, _text(line))
        return len(taken)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._usual.fileno()

    def close(self) -> None:
        """Do nothing: what is behind it isn't ours to close."""

    def __enter__(self) -> Voices:
        self._usual = sys.stdout
        # With nothing kept back between the two: what is printed has to be told from which thread.
        sys.stdout = io.TextIOWrapper(self, encoding="utf-8", newline="\n", write_through=True)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._usual


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
