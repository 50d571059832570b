"""Tells apart what participants print that run in one process, each in a thread of its own."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from worldline.federation.participant import Participant
from worldline.federation.program import Federation

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""


class Voices(io.TextIOBase):
    """Stands in for standard output: what a participant's thread prints goes to `say` with its name and time."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._speakers: dict[int, Participant] = {}
        self._lines: dict[int, str] = {}
        self._usual: TextIO = sys.stdout

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
                if rest := self._lines.pop(thread, ""):
                    self._say(participant.name, participant.now, rest)
                del self._speakers[thread]

        return speak

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        speaker = self._speakers.get(thread)
        if speaker is None:
            return self._usual.write(text)
        *lines, rest = (self._lines.get(thread, "") + text).split("\n")
        for line in lines:
            self._say(speaker.name, speaker.now, line)
        self._lines[thread] = rest
        return len(text)

    def close(self) -> None:
        """Do nothing: what is behind it isn't ours to close, nor to flush when this is forgotten."""

    def flush(self) -> None:
        self._usual.flush()

    def __enter__(self) -> Voices:
        self._usual, sys.stdout = sys.stdout, self
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._usual
