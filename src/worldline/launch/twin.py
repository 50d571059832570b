"""A twin: a second live copy of a participant, which is given what the first was given, and must say what it said.

It isn't connected to the server. The first copy's connection is overheard (`overheard_socket`), and the twin reads
that: its requests are answered as the first's were, and what it says is compared with what the first said. So whether
it is slow, wrong or dead is nothing to the run.

At the first difference it ends at once, before the program gets to know: that might catch what is raised.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import msgpack
from msgspec.structs import replace

from worldline.federation.participant.client import WiredParticipant
from worldline.federation.participant.declaration import Declaration
from worldline.federation.participant.program import Program
from worldline.launch.twins import HEARD, SAID, Overheard, ScriptReader, ScriptWriter, TwinVerdict
from worldline.lock import Abort, Action, Grant, ParticipantEvent
from worldline.lock.events import Recalled, Restore
from worldline.lock.rehearsal import Rehearsal
from worldline.model import LossError, Message, NonDeterminism, WorldlineError
from worldline.model.lifecycle import UNEVENTFUL
from worldline.wire.codec import checked, decode_answer, decode_events
from worldline.wire.frames import Frames
from worldline.wire.handshake import Deliver, Fail, Refused, Resume, Welcome

# What was overheard of a participant's connection, as the script of a rehearsal. Bytes in, events and answers out.

_decode_welcome = msgpack.Decoder(Welcome | Refused).decode


class OverheardScript:
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

    def take(self, piece: Overheard) -> None:
        """Take what was said or heard next; raise `NonDeterminism` if that isn't what is said again."""
        is_said = piece.who == SAID
        for body in (self._said if is_said else self._heard).feed(piece.data):
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


class OverheardSocket(socket.socket):
    """A socket that takes the place of another one. Only the calls that a client makes are overheard."""

    def __init__(self, connection: socket.socket, script: ScriptWriter) -> None:
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
