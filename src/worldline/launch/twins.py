"""Twins: second live copies of participants, each given what the first was given, which must say what the first said.

A twin isn't connected to the server. A *transcript* is made of the first copy's connection, and the twin reads that:
its requests are answered as the first's were, and what it says is compared with what the first said. So whether it is
slow, wrong or dead is nothing to the run.

At the first difference it ends at once, before the program gets to know: that might catch what is raised.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import msgpack
from msgspec.structs import replace

from worldline.federation.environment import OUTPUT, LaunchEnvironment
from worldline.federation.participant.client import Client
from worldline.federation.participant.declaration import Declaration
from worldline.federation.participant.program import Program
from worldline.files.saving import ScratchFolder
from worldline.history.replay.retelling import RetoldDifference
from worldline.launch.file.setup import ParticipantSetup
from worldline.lock import Abort, Action, Grant, ParticipantEvent
from worldline.lock.events import Recalled, Restore
from worldline.lock.rehearsal import Rehearsal
from worldline.model import LossError, Message, NonDeterminism, WorldlineError
from worldline.model.lifecycle import UNEVENTFUL
from worldline.wire.codec import checked, decode_answer, decode_events
from worldline.wire.frames import Frames
from worldline.wire.handshake import Deliver, Fail, Refused, Resume, Welcome

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
        """Return it as an error of whoever wrote the participant."""
        return NonDeterminism(
            self.text, participant=name, at=self.at, advice=_ADVICE, message=self.message, field=self.field
        )


def _told(difference: RetoldDifference) -> str:
    if difference.field is not None:
        return str(difference)
    first, twin = (str(said or "says nothing more") for said in (difference.then, difference.now))
    return f"it {first}, and the twin {twin}"


# The transcript: a participant's conversation with its server, written by one process while another one reads it.
#
# It goes through files, not through a pipe: the writer must never wait for the reader. Each file but the last is full,
# and the reader removes what it has read, so they take as much room as it is behind. There is no hurry, so much is
# written at once: to write is a system call, and the participant has better things to do.

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


def has_transcript(folder: Path) -> bool:
    """Whether a process has begun to write there."""
    return any(folder.glob("script.*"))


class TranscriptWriter:
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


def end_transcript(folder: Path) -> None:
    """Say that nothing more will be written: the writer is gone."""
    (folder / _END).touch()


class TranscriptReader:
    """Reads it while it is being written, and waits for more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pieces(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all of it, as it comes and in the order of both: who, and what was said or heard."""
        rest = b""
        for data in self._data():
            rest += data
            at = 0
            while len(rest) - at > _LENGTH:
                start = at + 1 + _LENGTH
                end = start + int.from_bytes(rest[at + 1 : start], "big")
                if end > len(rest):
                    break
                yield rest[at : at + 1], rest[start:end]
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


_HASH_SEED = "PYTHONHASHSEED"
_HASH_SEEDS = 2**32


class RunTwins:
    """The twins of these participants. Each is in a process of its own, with a name that is nobody's."""

    def __init__(self, names: Sequence[str], parts: Mapping[str, ParticipantSetup]) -> None:
        self._parts = {name: parts[name] for name in names}
        self._processes = {name: _unused(f"twin of {name}", parts) for name in names}
        self._folders = {name: ScratchFolder("twin") for name in names}

    def folders(self) -> list[str]:
        """Return what has to be removed whatever happens. Only this user can open them."""
        return [folder.name for folder in self._folders.values()]

    def script_of(self, name: str) -> str | None:
        """Return where the first copy is to write down what it says and hears, if it has a twin."""
        return self._folders[name].name if name in self._folders else None

    def processes(self, federation: str) -> list[tuple[ParticipantSetup, LaunchEnvironment]]:
        """Return what to start: the same program in the same place, under another hash seed.

        The files that it leaves are of no use to anybody.
        """
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
                LaunchEnvironment(name=name, federation=federation, twin=self._folders[name].name),
            )
            for name, part in self._parts.items()
        ]

    def process_names(self) -> list[str]:
        return list(self._processes.values())

    def is_twin(self, process: str) -> bool:
        return process in self._processes.values()

    def end_of(self, process: str) -> None:
        """Note that a process has ended: if it was a first copy, its twin learns that nothing more comes."""
        if process in self._folders:
            end_transcript(Path(self._folders[process].name))

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


def _unused(name: str, parts: Mapping[str, ParticipantSetup]) -> str:
    while name in parts:
        name += "'"
    return name


def _another(seed: str) -> str:
    """Return another hash seed than this one; one that is drawn is another one in any case."""
    return str((int(seed) + 1) % _HASH_SEEDS) if seed.isdecimal() else "1"


# The transcript as the script of a rehearsal. Bytes in, events and answers out.

_decode_welcome = msgpack.Decoder(Welcome | Refused).decode


class TranscriptParser:
    """One connection, from its first byte on.

    `welcome` is the server's, once it is there. `is_broken` says that the run was broken off, or the program failed:
    what a participant says after that isn't compared.
    """

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.welcome: Welcome | None = None
        self.is_broken = False
        self._rehearsal = rehearsal
        self._said, self._heard = Frames(), Frames()
        self._greetings = {True: 1, False: 1}  # A hello, and a challenge, come before what matters.
        self._ahead: list[Message] = []

    def take(self, who: bytes, data: bytes) -> None:
        """Take what was said or heard next; raise `NonDeterminism` if that isn't what is said again."""
        is_said = who == SAID
        for body in (self._said if is_said else self._heard).feed(data):
            if not body or self.is_broken:
                continue
            if self._greetings[is_said]:
                self._greetings[is_said] -= 1
            elif is_said:
                self._take_events(body)
            elif self.welcome is None:
                self._take_welcome(body)
            else:
                self._take_answer(body)

    def _take_events(self, body: bytes) -> None:
        for event in decode_events(body):
            if isinstance(event, Fail | Resume | Restore):
                self.is_broken = True
                return
            self._rehearsal.said(event)  # type: ignore[arg-type] # others aren't compared

    def _take_welcome(self, body: bytes) -> None:
        welcome = checked(_decode_welcome, body)
        if isinstance(welcome, Refused):
            self.is_broken = True
            return
        self.welcome = welcome
        for frames in (self._said, self._heard):
            frames.longest = welcome.frame_max
            frames.admit(welcome.payload_max)

    def _take_answer(self, body: bytes) -> None:
        answer = decode_answer(body)
        if isinstance(answer, Abort | Refused):
            self.is_broken = True
        elif isinstance(answer, Recalled):
            pass  # Whether it goes on from there is for it to say.
        elif isinstance(answer, Deliver):
            self._ahead += answer.messages
        elif isinstance(answer, Grant) and self._ahead:
            ahead, self._ahead = self._ahead, []
            self._rehearsal.answered(replace(answer, messages=[*ahead, *answer.messages]))
        else:
            self._rehearsal.answered(answer)


# A participant's socket whose traffic is written down, for its twin.

_send, _recv = socket.socket.send, socket.socket.recv  # To look them up for each call would cost as much as the rest.


class TranscribedSocket(socket.socket):
    """A socket that takes the place of another one. Only the calls that a client makes go into the transcript."""

    def __init__(self, connection: socket.socket, script: TranscriptWriter) -> None:
        super().__init__(fileno=connection.detach())
        self._script = script
        self._note = script.note

    def send(self, data: Any, flags: int = 0, /) -> int:
        sent = _send(self, data, flags)
        self._note(SAID, data if sent == len(data) else memoryview(data)[:sent])
        return sent

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        try:
            data = _recv(self, size, flags)
        except BlockingIOError:
            self._script.rest()
            raise
        self._note(HEARD, data)
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        received = super().recv_into(buffer, size, flags)
        self._note(HEARD, bytes(memoryview(buffer)[:received]))
        return received

    def close(self) -> None:
        self._script.flush()
        super().close()


class TwinWire:
    """A twin's way to what the first copy was answered, in the place of a connection."""

    def __init__(self, name: str, folder: Path) -> None:
        self.disowned = False
        self.end: WorldlineError | None = None
        self._name = name
        self._folder = folder
        self._rehearsal = Rehearsal(name)
        self._script = TranscriptParser(self._rehearsal)
        self._pieces = TranscriptReader(folder).pieces()

    def participant(self, program: Program) -> Client:
        """Return the participant, with what the first copy has been told about itself."""
        while (welcome := self._script.welcome) is None:
            self._wait()
        declared = Declaration(**program.said()).completed(welcome.declared, welcome.period, welcome.clock)
        ledger = declared.ledger(self._name, welcome.life or UNEVENTFUL)
        ledger.payload_max = welcome.payload_max
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
            self._script.take(*piece)
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
