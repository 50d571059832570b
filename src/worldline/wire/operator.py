"""What an operator and a server say to each other, once the operator has been welcomed.

An operator says hello as a participant does, with an empty name, which no participant can have, and proves that it
knows the secret. After that it says one word at a time, each a frame of its own, and waits for the answer, which has
the number of the word: an operator that has waited for long enough goes on, and the answer may come later. These are
arrays that begin with the name of their kind, as elsewhere; the situation in them is a map, to be shown.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, msgpack

from worldline.lock.why.reasons import Situation
from worldline.model.frames import frame
from worldline.wire.codec import checked
from worldline.wire.handshake import Refused


class AskSituation(Struct, frozen=True, array_like=True, tag="ask"):
    """How does the run stand?"""

    links: bool = False
    number: int = 0


class PauseRun(Struct, frozen=True, array_like=True, tag="pause"):
    """Hold all participants, as soon as that is possible."""

    number: int = 0


class StepRun(Struct, frozen=True, array_like=True, tag="step"):
    """Let all run so far, or up to that time, or until a participant has something to do; then pause."""

    by: int | None = None
    to: int | None = None
    number: int = 0


class ResumeRun(Struct, frozen=True, array_like=True, tag="resume"):
    """Let all go on."""

    number: int = 0


class EndRun(Struct, frozen=True, array_like=True, tag="end"):
    """End the run in good order, at that time or as soon as possible; or, if `now`, break it off."""

    at: int | None = None
    now: bool = False
    number: int = 0


class SituationTold(Struct, frozen=True, array_like=True, tag="situation"):
    """This is how it stands."""

    situation: Situation
    number: int = 0


class OrderTaken(Struct, frozen=True, array_like=True, tag="taken"):
    """It will be so: at this time, if it concerns one."""

    at: int | None = None
    number: int = 0


class OrderDone(Struct, frozen=True, array_like=True, tag="done"):
    """It is so: all stand at this time."""

    at: int
    number: int = 0


class OrderRefused(Struct, frozen=True, array_like=True, tag="impossible"):
    """It can't be, for this reason."""

    reason: str
    advice: str | None = None
    number: int = 0


class RunOver(Struct, frozen=True, array_like=True, tag="over"):
    """The run is over: its digest, or why it has none. It may come at any time, and is the last word."""

    digest: str | None
    failure: str | None


OperatorWord = AskSituation | PauseRun | StepRun | ResumeRun | EndRun
OperatorAnswer = SituationTold | OrderTaken | OrderDone | OrderRefused | RunOver

_encode = msgpack.Encoder().encode
_decode_word: Callable[[bytes], OperatorWord] = msgpack.Decoder(OperatorWord).decode
_decode_answer: Callable[[bytes], OperatorAnswer | Refused] = msgpack.Decoder(OperatorAnswer | Refused).decode


def operator_frame(said: OperatorWord | OperatorAnswer) -> bytes:
    """Return what either of them says as a frame."""
    return frame(_encode(said))


def decode_operator_word(body: bytes) -> OperatorWord:
    """Read what an operator says."""
    return checked(_decode_word, body)


def decode_operator_answer(body: bytes) -> OperatorAnswer | Refused:
    """Read what the server answers, or why it ends the connection."""
    return checked(_decode_answer, body)
