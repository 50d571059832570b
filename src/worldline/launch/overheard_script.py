"""What was overheard of a participant's connection, as the script of a rehearsal. Bytes in, events and answers out."""

from __future__ import annotations

from msgspec import msgpack
from msgspec.structs import replace

from worldline.launch.script_files import SAID, Overheard
from worldline.lock import Abort, Grant
from worldline.lock.rehearsal import Rehearsal
from worldline.lock.restoring import Recalled, Restore
from worldline.model import Message
from worldline.wire.codec import checked, decode_answer, decode_events
from worldline.wire.frames import Frames
from worldline.wire.handshake import Fail, Refused, Welcome
from worldline.wire.words import Deliver, Resume

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
