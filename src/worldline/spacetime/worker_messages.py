"""What workers write to each other: letters about single bodies and lanes, and the frames that they go in.

Frames between two workers keep their order; that is all that is asked of what carries them.
"""

from __future__ import annotations

import pickle
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from worldline.model.errors import WorldlineError

if TYPE_CHECKING:
    from worldline.spacetime.geometry import Vector

# -- Letters: each is for a body of the worker that gets it.


class LambdaInFlight(NamedTuple):
    """A lambda is under way, on a lane from a source that lives there to a target; what follows makes it again."""

    lane: str
    source: str
    source_home: int
    target: str
    at: Vector
    order: int
    kind: int
    function: Any
    arguments: Any
    content: int
    ends: Any


class LaneGone(NamedTuple):
    """Nothing can be sent on a lane any more."""

    lane: str
    target: str


class WatchFor(NamedTuple):
    """A body elsewhere waits for this one: it wants its positions and, on the lane `news`, to hear of its death."""

    body: str
    news: str
    watcher: str
    worker: int


class WatchedFor(NamedTuple):
    """The body is watched; nothing that it had told before is missing on the lane of the news."""

    news: str


class UnwatchFor(NamedTuple):
    """News of a body aren't waited for any more."""

    body: str
    news: str


Letter = LambdaInFlight | LaneGone | WatchFor | WatchedFor | UnwatchFor


# -- Frames


class Update(NamedTuple):
    """What is for bodies of the other worker, and then where those are that bodies there wait for (None: gone).

    A position never arrives before what was sent until then. `cap` is the lab time after which nothing counts, since
    an agent has failed; `events` is how many there were at the sender's.
    """

    letters: list[Letter]
    positions: list[tuple[str, tuple[float, ...] | None]]
    cap: float
    events: int


class IdleReport(NamedTuple):
    """Nothing can happen at a worker, which has sent and taken in that many updates to and from each other.

    `is_alive`: an agent hasn't ended there, though it should have. `is_swept`: garbage was collected since.
    """

    sent: tuple[int, ...]
    received: tuple[int, ...]
    is_alive: bool
    is_swept: bool


class Order(Enum):
    """What the leader tells all others to do, or a worker the leader."""

    SWEEP = "collect garbage: a channel that is only that holds no agent up"
    FINISH = "stop: nothing can happen any more"
    BALANCE = "look, as the leader, whether agents would be better off elsewhere"


class Pause(NamedTuple):
    """The leader wants all workers to stand still; it counts how often."""

    number: int


class Gathering(NamedTuple):
    """What a worker says to all others while they stand still, at a step of that."""

    number: int
    step: str
    told: Any


Dispatch = Update | IdleReport | Order | Pause | Gathering | WorldlineError
"""An error is that of a worker that can't go on."""


def packed_frame(frame: Dispatch) -> bytes:
    return pickle.dumps(frame, protocol=5)


def opened_frame(data: bytes) -> Dispatch:
    frame: Dispatch = pickle.loads(data)
    return frame
