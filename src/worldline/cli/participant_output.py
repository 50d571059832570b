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
from worldline.model.lines import LineSplitter

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""


class ParticipantOutput(io.RawIOBase):
    """What is under standard output meanwhile: a participant's thread is heard by `say`, with its name and time.

    Standard output itself is an ordinary text file, with all that belongs to one. What bypasses Python, and what other
    threads print, goes to where it would have gone.
    """

    def __init__(self, say: Say, aside: io.TextIOBase) -> None:
        self._say = say
        self._aside = aside
        self._speakers: dict[int, tuple[Participant, LineSplitter]] = {}  # By thread.
        self._usual: TextIO = sys.stdout
        self.name = "<stdout>"

    def of(self, federation: Federation) -> Federation:
        """Return the federation with programs whose output is known to be theirs."""
        return replace(
            federation,
            programs={
                name: replace(program, run=self._heard(program.run)) for name, program in federation.programs.items()
            },
        )

    def _heard(self, run: Callable[[Participant], object]) -> Callable[[Participant], object]:
        def speak(participant: Participant) -> object:
            thread = threading.get_ident()
            lines = LineSplitter()
            self._speakers[thread] = participant, lines
            try:
                return run(participant)
            finally:
                del self._speakers[thread]
                self._hear(participant, lines.finish())

        return speak

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        speaking = self._speakers.get(threading.get_ident())
        if speaking is None:
            self._aside.write(taken.decode("utf-8", "replace"))
        else:
            participant, lines = speaking
            self._hear(participant, lines.feed(taken))
        return len(taken)

    def _hear(self, participant: Participant, lines: list[str]) -> None:
        for line in lines:
            self._say(participant.name, participant.now, line)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._usual.fileno()

    def close(self) -> None:
        """Do nothing: what is behind it isn't ours to close."""

    def __enter__(self) -> ParticipantOutput:
        self._usual = sys.stdout
        # With nothing kept back between the two: what is printed has to be told from which thread.
        sys.stdout = io.TextIOWrapper(self, encoding="utf-8", newline="\n", write_through=True)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._usual
