"""A twin: a second live copy of a participant, which is given what the first was given, and must say what it said.

It isn't connected to the server. The first copy's connection is overheard (`overheard_socket`), and the twin reads
that: its requests are answered as the first's were, and what it says is compared with what the first said. So whether
it is slow, wrong or dead is nothing to the run.

At the first difference it ends at once, before the program gets to know: that might catch what is raised.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worldline.federation.declaration import Declaration
from worldline.federation.program import Program
from worldline.federation.wired import WiredParticipant
from worldline.launch.overheard_script import OverheardScript
from worldline.launch.script_files import ScriptReader
from worldline.launch.twin_verdict import TwinVerdict
from worldline.lock import Action, ParticipantEvent
from worldline.lock.rehearsal import Rehearsal
from worldline.model import LossError, NonDeterminism, WorldlineError
from worldline.model.lifecycle import UNEVENTFUL


class TwinWire:
    """A twin's way to what the first copy was answered, in the place of a connection."""

    def __init__(self, name: str, folder: Path) -> None:
        self.disowned = False
        self.end: WorldlineError | None = None
        self._name = name
        self._folder = folder
        self._rehearsal = Rehearsal(name)
        self._script = OverheardScript(self._rehearsal)
        self._pieces = ScriptReader(folder).pieces()

    def participant(self, program: Program) -> WiredParticipant:
        """Return the participant, with what the first copy has been told about itself."""
        while (welcome := self._script.welcome) is None:
            self._wait()
        declared = Declaration(**program.said()).completed(welcome.declared, welcome.period, welcome.clock)
        ledger = declared.ledger(self._name, welcome.life or UNEVENTFUL)
        ledger.payload_max = welcome.payload_max
        return WiredParticipant(ledger, self)

    def is_due(self, urgent: bool) -> bool:
        del urgent
        return True  # The sooner it is compared, the better is known when it was said.

    def tell(self, events: list[ParticipantEvent]) -> None:
        with self._judged():
            for event in events:
                self._rehearsal.hear(event)
        del events[:]

    def ask(self, events: list[ParticipantEvent]) -> Action:
        self.tell(events)
        while not (due := self._rehearsal.due()):
            self._wait()
        answer: Action = due[-1]
        return answer

    def look(self) -> None:
        """Nothing comes unasked here."""

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        """The twin's program has failed: has the first's, too?"""
        self.tell(events)
        while self._rehearsal.is_used_up and self._read_on():
            pass
        if not self._rehearsal.is_used_up:
            self._conclude(TwinVerdict(at=self._rehearsal.time(), text=f"in its twin, {cause}"))

    def close(self, *, patient: bool = False) -> None:
        """Wait until all that it has said is compared."""
        while patient and self._rehearsal.is_beyond and self._read_on():
            pass

    def _wait(self) -> None:
        if not self._read_on():
            self.end = LossError("its first copy doesn't go on", participant=self._name)
            raise self.end

    def _read_on(self) -> bool:
        """Take what the first copy has said or heard next; return whether there is anything more to be compared."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        with self._judged():
            self._script.take(piece)
        return not self._script.is_broken

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except NonDeterminism as error:
            self._conclude(TwinVerdict.of(error))

    def _conclude(self, verdict: TwinVerdict) -> None:
        verdict.write(self._folder)
        sys.stdout.flush()
        os._exit(NonDeterminism.exit_code)
