"""What an observer is told of a run through spacetime, and how records are made of it again.

Agents have no common clock, and there is no queue of what they do: some are far ahead of others. So an observer is
told when the run is over, in the order of lab time, each agent's records in their own order; of a run that has failed,
what was before that. Then everything has passed.

An observer counts whole nanoseconds. Lab times are read as seconds and rounded to the nearest one; what is before 0 is
told as 0, and what is absorbed within the nanosecond in which it was sent, as absorbed in the next. The exact
coordinates are in the payloads, which are JSON: its numbers give the same floats back.

Topics are what was sent, by the names of functions. A payload is the record of what its sender did, and of nothing
else: that somebody absorbed it is a note of that one, whose number and place depend on what that one did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import MsgspecError, Struct, json

from worldline.history.observer import DEAD, LOG, META, OUTSIDE, UNDER_WAY, Observer
from worldline.model.errors import UsageError
from worldline.model.time import SECOND, TIME_MAX
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.nanoseconds import nanoseconds
from worldline.spacetime.outcome import SpacetimeOutcome
from worldline.spacetime.space import Minkowski
from worldline.spacetime.story import AgentRecord, in_order

SCENE = "worldline/setting"
"""The topic of what a run takes place in: the first note, and nobody's."""


_encode = json.Encoder(order="deterministic").encode


class Plane(Struct, frozen=True):
    """A boundary as it was: its plane, and what it is called."""

    normal: tuple[float, ...]
    offset: float
    name: str

    def boundary(self) -> Boundary:
        """Return one to look at; what it does to agents isn't kept."""
        return Boundary(self.normal, self.offset, name=self.name)


class Scene(Struct, frozen=True):
    """What a run takes place in: n dimensions, the lambda field, boundaries, until when."""

    n: int
    R: tuple[float, ...] | None
    c: float
    until: float
    walls: tuple[Plane, ...] = ()

    @property
    def space(self) -> Minkowski:
        return Minkowski(self.n)

    @property
    def field(self) -> LambdaField:
        return LambdaField(self.R, self.c)

    @property
    def boundaries(self) -> list[Boundary]:
        return [wall.boundary() for wall in self.walls]


def scene_of(n: int, field: LambdaField, boundaries: Iterable[Boundary], until: float) -> Scene:
    given: Any = field.R
    walls = tuple(Plane(each.normal.coordinates(), each.offset, each.name) for each in boundaries if not each.is_end)
    return Scene(n, None if given is None else tuple(given), field.c, until, walls)


def check_end(until: float) -> None:
    """Refuse an end that no observer can count to."""
    if until * SECOND >= TIME_MAX:
        raise UsageError(
            f"a run until {until:g} can't be recorded: recordings end at {TIME_MAX / SECOND:.4g}",
            advice="lab times are recorded as seconds; choose another unit for them",
        )


def tell(observer: Observer, scene: Scene, outcome: SpacetimeOutcome) -> None:
    """Tell all that has happened in a run that was traced: who took part, what was sent, and what became of it."""
    records = outcome.records
    end = nanoseconds(scene.until) + 1
    for name, first in _firsts(records).items():
        observer.began(name, nanoseconds(first.at[0]))
    observer.noted(OUTSIDE, SCENE, 0, _encode(scene), scene)
    absorbed = {(record.channel, record.order): record for record in records if record.kind == "absorbed"}
    died = {record.agent for record in records if record.kind == "died"}
    numbers: dict[str, int] = {}
    for record in _as_done(records):
        who, at = record.agent, nanoseconds(record.at[0])
        if record.kind == "sent":
            number = numbers.get(who, 0)
            numbers[who] = number + 1
            taken = absorbed.get((record.channel, record.order))
            arrival = max(at + 1, end if taken is None else nanoseconds(taken.at[0]))
            observer.sent(who, number, record.what, at, _encode(record), arrival, record)
            lost = None if taken is not None else DEAD if record.peer in died else UNDER_WAY
            observer.arrives(who, number, record.peer, arrival, 0, lost)
        else:
            observer.noted(who, LOG if record.kind == "log" else META, at, _encode(record), record)
    if outcome.failure is None:  # Otherwise nobody has got to the end.
        for name, member in outcome.members.items():
            observer.ended(name, *member)
    observer.passed(end + 1)


def _firsts(records: Iterable[AgentRecord]) -> dict[str, AgentRecord]:
    """Return the first record of everybody; they are in the order of lab time."""
    found: dict[str, AgentRecord] = {}
    for record in records:
        found.setdefault(record.agent, record)
    return found


def _as_done(records: Sequence[AgentRecord]) -> list[AgentRecord]:
    """Sort records by lab time, but everybody's own as they were made (H1): before a run agents jump back in time."""
    keys: dict[tuple[str, int], float] = {}
    latest: dict[str, float] = {}
    for record in sorted(records, key=lambda record: (record.agent, record.number)):
        latest[record.agent] = max(record.at[0], latest.get(record.agent, record.at[0]))
        keys[record.agent, record.number] = latest[record.agent]
    return sorted(records, key=lambda record: (keys[record.agent, record.number], record.agent, record.number))


def recall(kept: Iterable[tuple[str, bytes]]) -> tuple[Scene, list[AgentRecord]]:
    """Return what was told: the scene and all records in their order, of topics and payloads in any order."""
    scene: Scene | None = None
    records: list[AgentRecord] = []
    try:
        for topic, payload in kept:
            if topic == SCENE:
                scene = json.decode(payload, type=Scene)
            else:
                records.append(json.decode(payload, type=AgentRecord))
    except MsgspecError as error:
        raise UsageError("it isn't a recording of agents in spacetime") from error
    if scene is None:
        raise UsageError("it isn't a recording of agents in spacetime", advice="record one with --record")
    return scene, in_order(records)
