"""Tells apart what participants print that run in one process, each with context variables of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TextIO

from worldline.federation.participant import Participant
from worldline.federation.program import Federation
from worldline.model.lines import LineSplitter

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""

_SPEAKER: ContextVar[tuple[Participant, LineSplitter] | None] = ContextVar("speaker", default=None)


class ParticipantOutput(io.RawIOBase):
    """What is under standard output meanwhile: a participant is heard by `say`, with its name and time.

    Standard output itself is an ordinary text file, with all that belongs to one. What bypasses Python, and what
    threads print that a program has started, goes to where it would have gone.
    """

    def __init__(self, say: Say, aside: io.TextIOBase) -> None:
        self._say = say
        self._aside = aside
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
            lines = LineSplitter()
            speaking = _SPEAKER.set((participant, lines))
            try:
                return run(participant)
            finally:
                _SPEAKER.reset(speaking)
                self._hear(participant, lines.finish())

        return speak

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        speaking = _SPEAKER.get()
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
        # With nothing kept back between the two: what is printed has to be told by whom.
        sys.stdout = io.TextIOWrapper(self, encoding="utf-8", newline="\n", write_through=True)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._usual
