"""Twins: second live copies of participants, each given what the first was given, which must say what the first said.

A twin isn't connected to the server. It reads along in the journal of the run: its requests are answered as the first's
were, and what it says is compared with what the first said. So whether it is slow, wrong or dead is nothing to the run.

At the first difference it ends at once, before the program gets to know: that might catch what is raised.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import msgpack

from worldline.federation.environment import OUTPUT, LaunchEnvironment
from worldline.federation.participant.client import Client
from worldline.federation.participant.declaration import Declaration
from worldline.federation.participant.program import Program
from worldline.federation.server.host import Host
from worldline.federation.server.run_journal import ANSWERS, FollowedJournal, JournalRecord, RecordKind
from worldline.files.saving import ScratchFolder
from worldline.history.replay import RetoldDifference
from worldline.launch.file.setup import ParticipantSetup, unused_name
from worldline.lock import Action, Join, ParticipantEvent
from worldline.lock.ledger import Wire
from worldline.lock.rehearsal import Rehearsal
from worldline.model import LossError, NonDeterminism, WorldlineError
from worldline.model.clock import LocalClock
from worldline.model.lifecycle import UNEVENTFUL, Lifecycle
from worldline.wire.codec import decode_events

# What a twin leaves behind when it says something else than the first copy: who, when, which message, which field.

_FILE = "verdict.json"
_ADVICE = (
    "something besides its messages decides what it does: the order of a set, a clock, unseeded random numbers, id()"
)


class TwinVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference: when, and in words; `message` counts the sender's, and `field` is part of that one."""

    at: int
    text: str
    message: int | None = None
    field: str | None = None

    @classmethod
    def of(cls, error: NonDeterminism) -> TwinVerdict:
        """Return what a rehearsal has found."""
        difference: RetoldDifference = error.facts["difference"]
        found = difference.field
        return cls(
            at=difference.first.at,
            text=f"its twin says something else: {_told(difference)}",
            message=difference.first.number,
            field=None if found is None else found.path,
        )

    def write(self, folder: Path) -> None:
        """Leave it for the launcher, whole or not at all."""
        made = folder / f"{_FILE}.new"
        made.write_bytes(msgspec.json.encode(self))
        made.rename(folder / _FILE)

    @classmethod
    def read(cls, folder: Path) -> TwinVerdict | None:
        """Return what the twin has left, if it has found anything."""
        try:
            return msgspec.json.decode((folder / _FILE).read_bytes(), type=cls)
        except FileNotFoundError:
            return None

    def error(self, name: str) -> NonDeterminism:
        """Return it as an error of the participant's author."""
        return NonDeterminism(
            self.text, participant=name, at=self.at, advice=_ADVICE, message=self.message, field=self.field
        )


def _told(difference: RetoldDifference) -> str:
    if difference.field is not None:
        return str(difference)
    first, twin = (str(said or "says nothing more") for said in (difference.then, difference.now))
    return f"it {first}, and the twin {twin}"


_HASH_SEED = "PYTHONHASHSEED"
_HASH_SEEDS = 2**32
_JOURNAL, _TASK, _END = "journal", "task", "end"

TwinTask = tuple[str, Join | None, int, LocalClock | None, Lifecycle | None, int]
"""The journal of the run, and what the server tells the first copy: its declarations, its life, the largest payload."""


class RunTwins:
    """The twins of these participants. Each is in a process of its own, with a name that no participant has.

    Each has a folder that only this user can open. There it finds what it is to know, `_TASK`, and whether the run is
    over, `_END`.
    """

    def __init__(self, names: Sequence[str], parts: Mapping[str, ParticipantSetup]) -> None:
        self._parts = {name: parts[name] for name in names}
        self._processes = {name: unused_name(f"twin of {name}", parts) for name in names}
        self._folders = {name: ScratchFolder("twin") for name in names}

    def journal(self) -> Path | None:
        """Return where the run's journal may be, if there are twins and the run keeps none for itself."""
        return next((Path(folder.name) / _JOURNAL for folder in self._folders.values()), None)

    def folders(self) -> list[str]:
        """Return what has to be removed whatever happens."""
        return [folder.name for folder in self._folders.values()]

    def processes(self, host: Host) -> list[tuple[ParticipantSetup, LaunchEnvironment]]:
        """Return what to start: the same program in the same place, under another hash seed.

        The files that it leaves are of no use.
        """
        there = {name: part for name, part in self._parts.items() if not host.has_left(name)}
        for name in there:
            assert host.journal is not None
            journal, life = str(host.journal.path), host.life_of(name)
            task: TwinTask = (journal, *host.stated(name), life, host.limits.payload_max)
            (Path(self._folders[name].name) / _TASK).write_bytes(msgpack.encode(task))
        return [
            (
                ParticipantSetup(
                    name=self._processes[name],
                    directory=part.directory,
                    entry=part.entry,
                    environment={
                        **part.environment,
                        _HASH_SEED: _another(part.environment.get(_HASH_SEED, os.environ.get(_HASH_SEED, ""))),
                        OUTPUT: self._folders[name].name,
                    },
                ),
                LaunchEnvironment(name=name, federation=host.federation, twin=self._folders[name].name),
            )
            for name, part in there.items()
        ]

    def process_names(self) -> list[str]:
        return list(self._processes.values())

    def is_twin(self, process: str) -> bool:
        return process in self._processes.values()

    def end(self) -> None:
        """Say that the run is over: nothing more comes into its journal."""
        for folder in self._folders.values():
            (Path(folder.name) / _END).touch()

    def verdicts(self) -> dict[str, TwinVerdict]:
        """Return what was found, by participant."""
        found = {name: TwinVerdict.read(Path(folder.name)) for name, folder in self._folders.items()}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def first_of(self, process: str) -> str:
        """Return whose twin a process is."""
        return next(name for name, each in self._processes.items() if each == process)

    def close(self) -> None:
        for folder in self._folders.values():
            folder.cleanup()


def _another(seed: str) -> str:
    """Return another hash seed than this one; one that is drawn is another one in any case."""
    return str((int(seed) + 1) % _HASH_SEEDS) if seed.isdecimal() else "1"


# In the twin's process.

_LOOK_S, _LOOK_S_MAX = 0.0005, 0.02


class TwinWire(Wire):
    """A twin's way to what the first copy was answered, in the place of a connection."""

    def __init__(self, name: str, folder: Path) -> None:
        self.disowned = False
        self.end: WorldlineError | None = None
        self._name = name
        self._folder = folder
        self._rehearsal = Rehearsal(name)
        self._task = msgpack.decode((folder / _TASK).read_bytes(), type=TwinTask)
        self._journal = FollowedJournal(Path(self._task[0]))

    def participant(self, program: Program) -> Client:
        """Return the participant, with what the first copy has been told about itself."""
        _, declared, period, clock, life, payload_max = self._task
        declaration = Declaration(**program.said()).completed(declared, period, clock)
        ledger = declaration.ledger(self._name, life or UNEVENTFUL)
        ledger.payload_max = payload_max
        return Client(ledger, self)

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
        if patient:
            self._journal.close()

    def _wait(self) -> None:
        if not self._read_on():
            self.end = LossError("its first copy doesn't go on", participant=self._name)
            raise self.end

    def _read_on(self) -> bool:
        """Take what the first copy has said or heard next; return whether there may be more to be compared."""
        record = self._next()
        if record is None:
            return False
        if record.name == self._name:
            with self._judged():
                if record.kind in ANSWERS:
                    self._rehearsal.answered(self._journal.answer(record))
                elif record.kind is RecordKind.HEARD:
                    for event in decode_events(record.body):
                        self._rehearsal.said(event)  # type: ignore[arg-type] # nothing else gets into a journal
        return record.kind is not RecordKind.LOST or record.name != self._name

    def _next(self) -> JournalRecord | None:
        """Return the next record of the journal, once it is there; None if there won't be one."""
        wait_s = _LOOK_S
        while True:
            is_last = (self._folder / _END).exists()  # In this order: what was written before that is read.
            record = self._journal.next()
            if record is not None or is_last:
                return record
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _LOOK_S_MAX)

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
