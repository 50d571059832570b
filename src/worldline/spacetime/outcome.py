"""What comes of a run: its records, its outcome, which agents wait for ever, and what observers are told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import dist, sqrt
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, json

from worldline.history.journal import run_digest
from worldline.history.monitor import Monitors
from worldline.history.observer import DEAD, LOG, MEASURE, META, OUTSIDE, UNDER_WAY, Observer
from worldline.history.outcome import End, Outcome
from worldline.history.plain import encoded
from worldline.kernel.packing import PackedCopy
from worldline.model.errors import Stuck, UsageError, WorldlineError
from worldline.model.time import SECOND, TIME_MAX
from worldline.processes.failures import Failure, first_failure
from worldline.spacetime.agent import kind_of
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.core import Core
from worldline.spacetime.functions import Closure, name_of
from worldline.spacetime.geometry import LambdaField, Vector
from worldline.spacetime.space import Minkowski, nanoseconds, time_of_failure

# -- The records of a run that was traced: what happened to which agent, and where

Coordinates = tuple[float, ...]

_ATTACH = "attach"


class AgentRecord(Struct, frozen=True, omit_defaults=True):
    """Something that happened to an agent, at a point.

    Its number counts the agent's records. What is measured doesn't count, and has the number of what comes next.

    ========  ===========================================================
    kind      what
    ========  ===========================================================
    born      it began, as a `what`, with a velocity; `peer` made it
    sent      it sent `what` to `peer` on a channel, as number `order`; `given` are
              its arguments, `content` a hash of what can't be shown of it
    absorbed  it absorbed `what` from `peer`, which was emitted at `emitted`
    timer     it woke itself up, to do `what`
    turned    it has another velocity
    jumped    it has come from `emitted`
    crossed   it reached a boundary, `what`
    created   a channel to `peer` was created
    attached  its end of a channel from `peer` was attached
    held      it has got the end of a channel to `peer`
    closed    it closed a channel to `peer`
    died      it ended
    ended     the run was over
    log       it noted a text, `what`
    measured  it measured `what`, a number that is `given`
    shown     it is shown as `what` from now on
    waits     it can't go on: it waits for `peer`, for ever
    failed    it can't go on: `what` says why
    ========  ===========================================================
    """

    agent: str
    number: int
    kind: str
    at: Coordinates
    local_time: float
    channel: str = ""
    order: int = -1
    what: str = ""
    peer: str = ""
    emitted: Coordinates | None = None
    velocity: Coordinates | None = None
    given: Any = None
    content: str = ""


def records_of(trace: Iterable[tuple[Any, ...]]) -> list[AgentRecord]:
    """Make records of what a core has kept."""
    return [
        AgentRecord(body.name, number, kind, tuple(point), local_time, **_facts(kind, name, facts))
        for body, number, kind, point, local_time, name, facts in trace
    ]


def in_order(records: Iterable[AgentRecord]) -> list[AgentRecord]:
    """Sort records by lab time, agent and number."""
    return sorted(records, key=lambda record: (record.at[0], record.agent, *_place(record)))


def _place(record: AgentRecord) -> tuple[int, bool]:
    """Return where a record is in its agent's story."""
    return record.number, record.kind != "measured"


def _facts(kind: str, name: str, facts: Any) -> dict[str, Any]:
    if kind == "sent":
        order, item, peer, function, arguments, content, ends = facts
        carried = _carried(function, arguments, content, ends) if item == 0 else {}
        return {"channel": name, "order": order, "peer": peer, "what": _what(item, function), **carried}
    if kind == "absorbed":
        order, item, peer, emitted, function = facts
        return {"channel": name, "order": order, "peer": peer, "what": _what(item, function), "emitted": tuple(emitted)}
    if kind == "timer":
        return {"channel": name, "order": facts[0], "what": _said(facts[1])}
    if kind == "born":
        velocity, agent = facts
        return {"peer": name, "what": kind_of(agent), "velocity": tuple(velocity)}
    if kind == "turned":
        return {"velocity": tuple(facts)}
    if kind == "jumped":
        return {"emitted": tuple(facts)}
    if kind == "measured":
        return {"what": name, "given": facts}
    if kind in ("crossed", "log", "shown", "failed"):
        return {"what": name or facts or ""}
    if kind in ("created", "attached", "held", "closed"):
        return {"channel": name, "peer": facts}
    return {}


def _what(item: int, function: Any) -> str:
    return _said(function) if item == 0 else _ATTACH


def _carried(function: Any, arguments: Any, content: int, ends: Any) -> dict[str, Any]:
    """Return what a function takes along, as JSON has it.

    References can't be looked at on their way, since what opens one has it; nor can what a closure has captured. A
    hash stands for these.
    """
    if ends is not None:
        return {"content": f"{content:016x}"}
    given = json.decode(encoded(arguments.open() if isinstance(arguments, PackedCopy) else arguments))
    hashed = {"content": f"{content:016x}"} if isinstance(function, Closure) else {}
    return {"given": given, **hashed} if given else hashed


def _said(function: Any) -> str:
    return function.name if isinstance(function, Closure) else name_of(function)


@dataclass(frozen=True, kw_only=True)
class SpacetimeOutcome(Outcome):
    """What a run through spacetime has come to, and until which lab time it went; its records, if it was traced.

    Members are agents, also those that have died; they end at lab times in billionths.
    """

    until: float
    kept: list[AgentRecord] | None = field(default=None, repr=False)
    scene: Scene | None = field(default=None, repr=False, compare=False)

    @property
    def agents(self) -> int:
        """How many there were."""
        return len(self.members)

    @property
    def records(self) -> list[AgentRecord]:
        """What happened, in the order of lab time, agent and number."""
        if self.kept is None:
            raise UsageError("the run wasn't traced", advice="make it so: ForwardSimulation(..., trace=True)")
        return self.kept


Wait = tuple[str, Coordinates]
"""For which agent another waits, and where that one stands."""


class CoreReport(NamedTuple):
    """What one worker tells at the end.

    How many events its agents had, how they ended, their records; which of them wait for which, for ever, and which
    haven't ended; the first failure, at a lab time and of an agent; what has become of their attributes.
    """

    events: int
    ends: list[tuple[str, End]]
    records: list[AgentRecord]
    waits: dict[str, Wait]
    alive: list[str]
    failure: Failure | None = None
    states: list[Any] = []  # noqa: RUF012 - It is never changed.
    measured: list[tuple[float, str, int, str, float]] = []  # noqa: RUF012 - As above.


def report_of(core: Core) -> CoreReport:
    """Return what a core has to tell, at the end: its graves, of which there may be many, are cleared on the way."""
    ends = [(body.name, _end(body.point, body.chain, body.events)) for body in core.register.bodies.values()]
    while core.register.graves:
        name, grave = core.register.graves.popitem()
        ends.append((name, _end(*grave)))
    living = [body for body in core.register.bodies.values() if not body.done]
    waits = {
        body.name: (body.blocked_by.source.name, body.position(core.n))
        for body in living
        if body.blocked_by is not None
    }
    failures = [Failure((lab, name), error) for lab, name, error in core.failures]
    return CoreReport(
        core.events,
        ends,
        records_of(core.trace or ()),
        waits,
        [body.name for body in living],
        first_failure(failures),
        measured=core.measured,
    )


def _end(point: Vector, chain: int, events: int) -> End:
    return End(round(point[0] * SECOND), b"%x %x" % (chain, events))


def outcome_of(reports: Sequence[CoreReport], until: float, *, is_traced: bool) -> SpacetimeOutcome:
    """Put together what the workers tell. If it hasn't come to its end, the outcome says why not."""
    members = dict(sorted(end for report in reports for end in report.ends))
    outcome = SpacetimeOutcome(
        digest=run_digest((name, *end) for name, end in members.items()),
        now=round(until * SECOND),
        events=sum(report.events for report in reports),
        members=members,
        monitors=_monitors(reports, members),
        until=until,
        kept=in_order(record for report in reports for record in report.records) if is_traced else None,
    )
    first = first_failure(report.failure for report in reports)
    if first is not None:  # What others did later is left out: how far they got is luck.
        before = [record for record in outcome.kept or () if record.at[0] <= first.key[0]]
        return _broken_off(outcome, first.error, before)
    alive = [name for report in reports for name in report.alive]
    if alive:
        return _stood_still(outcome, {name: wait for report in reports for name, wait in report.waits.items()}, alive)
    return outcome


def _monitors(reports: Sequence[CoreReport], members: Mapping[str, End]) -> Monitors:
    """Put together what agents have measured; each in its own order, on whichever workers it has been."""
    monitors = Monitors()
    for lab, name, _, what, value in sorted((each for report in reports for each in report.measured), key=_when):
        monitors.of(name, what).record(max(0, nanoseconds(lab)), value)
    for (name, _), monitor in monitors.items():
        monitor.end = members[name].at if name in members else None
    return Monitors(sorted(monitors.items()))


def _when(measured: tuple[float, str, int, str, float]) -> tuple[float, str, int]:
    return measured[:3]


def _broken_off(outcome: SpacetimeOutcome, error: WorldlineError, records: Sequence[AgentRecord]) -> SpacetimeOutcome:
    """Return that a run has got no further than these records."""
    until = max((record.at[0] for record in records), default=0.0)
    kept = None if outcome.kept is None else in_order(records)
    return replace(outcome, failure=error, until=until, now=round(until * SECOND), kept=kept)


# -- Which agent waits for which, when none can go on any more


def _stood_still(outcome: SpacetimeOutcome, waits: Mapping[str, Wait], alive: Sequence[str]) -> SpacetimeOutcome:
    """Return that a run can't go on, with where all wait, and which agents are the cause of it."""
    error = _stuck(waits, alive)
    culprits = error.facts["agents"]
    lasts: dict[str, AgentRecord] = {}
    for record in outcome.kept or ():
        if record.kind != "measured" and (record.agent not in lasts or record.number > lasts[record.agent].number):
            lasts[record.agent] = record
    found = [
        AgentRecord(
            name,
            lasts[name].number + 1,
            "failed" if name in culprits else "waits",
            at,
            lasts[name].local_time + _passed(lasts[name].at, at),
            what=f"waits for {waits_for}, at {_point(at)}" if name in culprits else "",
            peer=waits_for,
        )
        for name, (waits_for, at) in waits.items()
        if name in lasts
    ]
    return _broken_off(outcome, error, [*(outcome.kept or ()), *found])


def _passed(start: Coordinates, end: Coordinates) -> float:
    """Return how much local time passes on a straight way."""
    across = dist(start[1:], end[1:])
    return sqrt(max(0.0, (end[0] - start[0] - across) * (end[0] - start[0] + across)))


def _stuck(waits: Mapping[str, Wait], alive: Sequence[str]) -> Stuck:
    """Return the error that says why some are still alive when nothing can happen any more.

    If they wait, there is a circle of those who wait for each other.
    """
    if not waits:
        return Stuck(
            f"{min(alive)} never ends: nothing will happen to it, and no boundary takes it out",
            advice="say until when it runs: run(until=100)",
            agents=tuple(sorted(alive)),
        )
    seen: list[str] = []
    name = min(waits)
    while name in waits and name not in seen:
        seen.append(name)
        name = waits[name][0]
    circle = seen[seen.index(name) :] if name in seen else seen
    first = circle.index(min(circle))
    circle = circle[first:] + circle[:first]
    told = ", and ".join(f"{each} waits for {waits[each][0]}" for each in circle)
    where = waits[circle[0]][1]
    return Stuck(
        f"no agent can go on: {told}, at {_point(where)}; there, lambdas take less time than floats can tell",
        advice="give the lambda field an R or a c, of at least 1e-14 of the coordinates, or keep the agents apart",
        at=time_of_failure(where[0]),
        agents=tuple(circle),
    )


def _point(at: Coordinates) -> str:
    return f"({', '.join(f'{each:.6g}' for each in at)})"


# -- What an observer is told of a run, and how records are made of it again
#
# Agents have no common clock, and there is no queue of what they do: some are far ahead of others. So an observer is
# told when the run is over, in the order of lab time, each agent's records in their own order; of a run that has
# failed, what was before that. Then everything has passed.
#
# An observer counts whole nanoseconds. Lab times are read as seconds and rounded to the nearest one; what is before 0
# is told as 0, and what is absorbed within the nanosecond in which it was sent, as absorbed in the next. The exact
# coordinates are in the payloads, which are JSON: its numbers give the same floats back.
#
# Topics are what was sent, by the names of functions. A payload is the record of what its sender did, and of nothing
# else: that it was absorbed is a note of the absorbing agent, whose number and place depend on what that agent did
# before.

SCENE = "worldline/setting"
"""The topic of what a run takes place in: the first note, which is no agent's."""


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


def tell(observer: Observer, scene: Scene, records: Sequence[AgentRecord], members: Mapping[str, End] | None) -> None:
    """Tell all that has happened in a run that was traced: who took part, what was sent, and what became of it.

    A run that has failed has no members: no agent has got to the end.
    """
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
        elif record.kind == "measured":
            observer.noted(who, MEASURE, at, encoded({record.what: record.given}), record)
        else:
            observer.noted(who, LOG if record.kind == "log" else META, at, _encode(record), record)
    for name, member in (members or {}).items():
        observer.ended(name, *member)
    observer.passed(end + 1)


def _firsts(records: Iterable[AgentRecord]) -> dict[str, AgentRecord]:
    """Return the first record of each agent; they are in the order of lab time."""
    found: dict[str, AgentRecord] = {}
    for record in records:
        found.setdefault(record.agent, record)
    return found


def _as_done(records: Sequence[AgentRecord]) -> list[AgentRecord]:
    """Sort records by lab time, but each agent's own as they were made (H1): before a run agents jump back in time."""
    latest: dict[str, float] = {}
    done: list[tuple[float, AgentRecord]] = []
    for record in sorted(records, key=_place):
        latest[record.agent] = max(record.at[0], latest.get(record.agent, record.at[0]))
        done.append((latest[record.agent], record))
    return [record for _, record in sorted(done, key=lambda each: (each[0], each[1].agent))]


Told = tuple[str, int, str, bytes]
"""An agent, the how manieth thing it told, its topic and payload."""


def recall(kept: Iterable[Told]) -> tuple[Scene, list[AgentRecord]]:
    """Return what was told, in any order: the scene and all records in theirs.

    Of what is measured only name and number were told. It happened where the agent's record before it did: users' code
    runs in events alone, and each of these has a record.
    """
    scene: Scene | None = None
    records: list[AgentRecord] = []
    try:
        for who, _, topic, payload in sorted(kept):
            if topic == SCENE:
                scene = json.decode(payload, type=Scene)
            elif topic != MEASURE:
                records.append(json.decode(payload, type=AgentRecord))
            elif records and records[-1].agent == who:
                at, (what, given) = records[-1], next(iter(json.decode(payload, type=dict[str, float | int]).items()))
                number = at.number + (at.kind != "measured")
                records.append(AgentRecord(who, number, "measured", at.at, at.local_time, what=what, given=given))
    except MsgspecError as error:
        raise UsageError("it isn't a recording of agents in spacetime") from error
    if scene is None:
        raise UsageError("it isn't a recording of agents in spacetime", advice="record one with --record")
    return scene, in_order(records)
