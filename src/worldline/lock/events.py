"""The words of the lock: what participants and operators tell the arbiter, and what it answers.

Events carry no name: the arbiter is told who speaks beside the event, because a connection speaks for one participant
and must not be able to speak for another. All are plain data and travel as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from worldline.model.draws.table import DrawRow
from worldline.model.links import UNBOUNDED, Buffer
from worldline.model.message import Message
from worldline.model.time import FOREVER, Count, Int64


class Subscription(Struct, frozen=True, array_like=True):
    """A topic, and how much of it is kept between two sequence points."""

    topic: str
    buffer: Buffer = UNBOUNDED


# --- What a participant says ---


class Join(Struct, frozen=True, array_like=True, tag="join"):
    """I am here.

    `publishes` of None means any topic; `latency_least` holds for all I send; `controls` allows invite and stop.
    """

    publishes: tuple[str, ...] | None = None
    subscribes: tuple[Subscription, ...] = ()
    latency_least: Int64 = 0
    controls: bool = False


class Publish(Struct, frozen=True, array_like=True, tag="publish", gc=False):
    """I send this at that time."""

    topic: str
    payload: bytes
    at: Int64


class Promise(Struct, frozen=True, array_like=True, tag="promise", gc=False):
    """I send nothing before this time."""

    until: Int64


class Reached(Struct, frozen=True, array_like=True, tag="reached", gc=False):
    """Served from what was granted ahead, my time is now this."""

    now: Int64


class Subscribe(Struct, frozen=True, array_like=True, tag="subscribe"):
    """I receive what arrives on this topic from `since` on. Takes back what was granted ahead.

    `since` is my time, or 1 ns later if an earlier subscription, since ended, has given me this moment's arrivals.
    """

    subscription: Subscription
    now: Int64
    since: Int64


class Unsubscribe(Struct, frozen=True, array_like=True, tag="unsubscribe", gc=False):
    """I no longer receive what arrives on this topic from `until` on.

    `until` is my time, or 1 ns later if I have been given this moment's arrivals on this topic already.
    """

    topic: str
    now: Int64
    until: Int64


class Down(Struct, frozen=True, array_like=True, tag="down"):
    """I am down from now until then: what reaches me on these topics is lost, on each from the time it is `lost` on.

    That is my time, or 1 ns later if I have been given this moment's arrivals on this topic already.
    """

    now: Int64
    until: Int64
    lost: dict[str, Int64]


class Invite(Struct, frozen=True, array_like=True, tag="invite", gc=False):
    """A newcomer of this name joins at that time. Inviting a name again changes nothing unless the time is earlier."""

    newcomer: str
    at: Int64


class Stop(Struct, frozen=True, array_like=True, tag="stop", gc=False):
    """The run ends at that time. The earliest stop counts."""

    at: Int64


class Log(Struct, frozen=True, array_like=True, tag="log", gc=False):
    """This line is written about me, for observers; it concerns no other participant.

    `kind` says what it is about, if it isn't the program that writes it: one of `LOG_KINDS` in `model.lifecycle`.
    """

    text: str
    kind: str = ""


class Advance(Struct, frozen=True, array_like=True, tag="advance", gc=False):
    """I wait for a sequence point at `to`."""

    to: Int64


class Next(Struct, frozen=True, array_like=True, tag="next", gc=False):
    """I wait for my next message, or for `until`; FOREVER means as long as anything can come.

    `held` is the first arrival that I still hold from an earlier grant.
    """

    until: Int64
    held: Int64 = FOREVER


class Peek(Struct, frozen=True, array_like=True, tag="peek", gc=False):
    """I wait to know what arrives before `until`, and stay where I am: I may still send from now on.

    At most as far ahead as my reach (see `StartRun`). `held` as for `Next`.
    """

    until: Int64
    held: Int64 = FOREVER


class Leave(Struct, frozen=True, array_like=True, tag="leave", gc=False):
    """Nothing more comes from me. `digest` is my journal's; `dropped` counts what my buffers didn't keep, by topic.

    `complete` says that I have been given what arrives at this very time; otherwise only what arrives before it.
    `waited` is since when I waited for a next message, if that is how the run ended for me: none could come any more.
    `replaced` are the places of those rows among the draws I was told of at the start that have matched some of mine.
    `missed` counts, by topic, what got lost because I was down. `awaited` has the faults that waited for an event and
    never happened, and how many such events there were. `untaken` counts, by topic, what had arrived when I crashed,
    left or was ended, and that I never took.
    """

    now: Int64
    digest: bytes = b""
    complete: bool = False
    dropped: dict[str, Count] = {}
    waited: Int64 | None = None
    replaced: tuple[Int64, ...] = ()
    missed: dict[str, Count] = {}
    awaited: dict[str, Count] = {}
    untaken: dict[str, Count] = {}


# --- What the operator says ---


class Barrier(Struct, frozen=True, array_like=True, tag="barrier", gc=False):
    """None is granted a time beyond `until` (FOREVER: no barrier). Changes when things happen, never what happens."""

    until: Int64


class Lost(Struct, frozen=True, array_like=True, tag="lost", gc=False):
    """This participant has vanished without leaving."""

    name: str
    cause: str


class CallOff(Struct, frozen=True, array_like=True, tag="end", gc=False):
    """The run is called off."""

    cause: str


# --- What the arbiter answers ---


class StartRun(Struct, frozen=True, array_like=True, tag="start"):
    """You are in, your time is `now`: the epsilon tick for those who were there from the beginning.

    `reach` is the least time in which another could ever reach you on what you have subscribed to at joining, and so
    how far you may peek; FOREVER if none can. `draws` are the rows of the run's table that may concern your streams.
    """

    to: str
    now: Int64
    seed: int
    control_latency: Int64
    reach: Int64 = 0
    draws: tuple[DrawRow, ...] = ()


class Grant(Struct, frozen=True, array_like=True, tag="grant", gc=False):
    """You know all that arrives before `horizon`: here is what was missing. If `final`, the run ends at the horizon."""

    to: str
    horizon: Int64
    messages: list[Message]
    final: bool = False


class Abort(Struct, frozen=True, array_like=True, tag="abort"):
    """The run is broken off. `participant` and `at` say who caused it and how far it was, if it was a participant."""

    to: str
    cause: str
    participant: str | None = None
    at: Int64 | None = None


class Over(Struct, frozen=True, array_like=True, tag="over"):
    """All have left; this was the run."""

    digest: bytes


UnpublishedEvent = (
    Join | Promise | Reached | Subscribe | Unsubscribe | Down | Invite | Stop | Log | Advance | Next | Peek | Leave
)
"""All that a participant says but that it publishes, which has a payload."""

ParticipantEvent = UnpublishedEvent | Publish
OperatorEvent = Barrier | Stop | Lost | CallOff
Event = ParticipantEvent | OperatorEvent
Action = StartRun | Grant | Abort | Over


# Snapshots: how a participant that comes back needn't begin at the beginning.
#
# The words are between a ledger and a server that keeps a journal; the arbiter doesn't know them, and nothing that
# happens in a run depends on them. A snapshot is the program's own state and the ledger's, at a place between two
# answers. Who is restored from it stands at that place again, and all that it does from there on is the same.


class Snapshot(Struct, frozen=True, array_like=True, tag="snapshot", gc=False):
    """I can be restored from this, to where I am now."""

    state: bytes


class Recall(Struct, frozen=True, array_like=True, tag="recall", gc=False):
    """I have been started again, and have done nothing yet: what was my last snapshot?"""


class Recalled(Struct, frozen=True, array_like=True, tag="recalled", gc=False):
    """This was your last snapshot. You had been given so many answers then, and had said so much since the last.

    What you had said to have reached (`Reached`) isn't counted.
    """

    answers: int
    said: int
    state: bytes


class Restore(Struct, frozen=True, array_like=True, tag="restore", gc=False):
    """I go on from my last snapshot, of which you have told me this. The first word after the start.

    Or on a new connection, if the one before was lost before the next answer.
    """

    answers: int
    said: int


Witness = Callable[[str, list[Any]], None]
"""Hears all that an arbiter is told, in that order: who speaks, and what it says at once.

That is enough to let another arbiter hear it again. The list is the speaker's, and may change afterwards.
"""
