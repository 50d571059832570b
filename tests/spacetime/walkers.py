"""Random worlds for executors: walkers that meet, part, are born, die, turn, jump, wait, and tell each other of others.

Unlike the worlds of `worlds.py` they aren't data: what a walker does is drawn in its events, so that whatever an
executor does wrong changes all that comes after. They are here and not beside their tests because workers load them.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from worldline.kernel import mpi, processes
from worldline.model import Plan
from worldline.model.errors import WorldlineError
from worldline.recording import Recorder
from worldline.spacetime import (
    Agent,
    AgentWrapper,
    Boundary,
    Channel,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    RemoteReference,
    Shuffled,
    Vector,
    box,
    current,
    worker,
)
from worldline.spacetime.placement import Placing, Resident

UNTIL = 12.0
FRIENDS_MAX = 5
CHILDREN_MAX = 3
DEPTH_MAX = 2
TALKS_MAX = 40


@dataclass(frozen=True)
class Nature:
    """How likely a walker does what, at an event."""

    turns: float
    jumps: float
    waits: float
    dies: float
    begets: float
    introduces: float
    closes: float
    keeps: float
    fails: float


class Walker(Agent):
    """Does at random all that an agent can do."""

    nature: Nature

    def __init__(self) -> None:
        self.friends: list[Channel] = []
        self.strangers: list[RemoteReference] = []  # Known, but there is no channel to them yet.
        self.seen: list[Any] = []
        self.wrapped: dict[str, Any] = {"channel": None}
        self.children = 0
        self.talks = 0

    def shown_as(self) -> str:
        return f"{'parent' if self.children else 'single'} with {min(3, len(self.friends))} friends"

    def act(self, depth: int, stranger: RemoteReference | None = None) -> None:
        random, nature = self.random, self.nature
        self.seen = [*self.seen[-20:], (depth, self.position.t, None if stranger is None else stranger.name)]
        if stranger is not None:
            self.meet(stranger)
        if random.random() < nature.fails:
            raise ArithmeticError(f"{self.name} has made a mistake, after {len(self.seen)}")
        if random.random() < nature.turns and self.space.n > 1:
            self.velocity = self.space.velocity(*(random.uniform(-0.5, 0.5) for _ in range(self.space.n - 1)))
        if random.random() < nature.jumps:
            lab, *place = self.position
            self.jump_to((lab + random.uniform(0.05, 1.0), *place))
        if random.random() < nature.dies:
            self.die()
            return
        if random.random() < nature.waits:
            self.after(random.uniform(0.1, 1.0), "act", depth)
        may_beget = self.name.count("/") < DEPTH_MAX and self.children < CHILDREN_MAX
        if random.random() < nature.begets and may_beget:
            self.beget(depth)
        self.talks += 1
        if self.talks <= TALKS_MAX:
            self.talk(depth)

    def meet(self, stranger: RemoteReference) -> None:
        random = self.random
        if random.random() < self.nature.keeps:
            self.strangers = [*self.strangers[-2:], stranger]
        elif len(self.friends) < FRIENDS_MAX:
            self.friends.append(Channel(self, stranger, blind=random.random() < 0.3))
        if self.strangers and random.random() < 0.3:
            self.friends.append(Channel(self, self.strangers.pop()))

    def beget(self, depth: int) -> None:
        child = Walker()
        self.children += 1
        if self.random.random() < 0.3:
            child.name = f"{self.name.rpartition('/')[2]}+{self.children}"
        child.nature = self.nature
        child.friends.append(Channel(child, self))
        if self.random.random() < 0.5:
            child.after(self.random.uniform(0.0, 1.0) + 0.01, Walker.act, depth + 1)
        self.friends.append(Channel(self, child))
        self.friends[-1].send("act", depth + 1)

    def talk(self, depth: int) -> None:
        random = self.random
        self.friends = [friend for friend in self.friends if friend.is_open]
        if not self.friends:
            return
        friend, other = random.choice(self.friends), random.choice(self.friends)
        kind = random.random() / self.nature.introduces
        if kind < 0.3:
            friend.send(Walker.act, depth, other.target())
        elif kind < 0.5:
            friend.send(Walker.act, depth, self.reference())
        elif kind < 0.8:
            stranger = other.target()
            friend.send(lambda agent: agent.act(depth, stranger))
        elif kind < 1.0 and self.strangers:
            friend.send("act", depth, random.choice(self.strangers))
        else:
            friend.send(Walker.act, depth)
        if random.random() < 0.5:
            random.choice(self.friends).send("act", depth)
        if random.random() < self.nature.closes:
            random.choice(self.friends).close()
        elif random.random() < self.nature.closes:
            self.friends.pop()  # Nobody has it any more; when that is found is luck.


class Clock:
    """An object that is no agent, but wrapped by one: it counts, and answers whoever has come."""

    def __init__(self) -> None:
        self.count = 0
        self.friends: list[Channel] = []

    @property
    def shown_as(self) -> str:
        return "tick" if self.count % 2 else "tock"

    def act(self, depth: int, stranger: RemoteReference | None = None) -> None:
        self.count += 1
        if stranger is not None:
            self.friends = [*self.friends[-2:], Channel(current(), stranger)]
        for friend in self.friends:
            if friend.is_open and self.count < TALKS_MAX:
                friend.send("act", depth)
        if self.count % 3 == 0 and self.count < TALKS_MAX:
            current().after(0.5, "act", depth)


def turn_about(_: object, boundary: Boundary) -> None:
    """What a boundary does that isn't one of those that there are."""
    agent = current()
    agent.velocity = agent.space.rest
    agent.log(f"at {boundary}")


# -- Worlds


class World(NamedTuple):
    """What is drawn of a world before it begins."""

    seed: int
    n: int
    field: LambdaField
    walls: tuple[Boundary, ...]
    places: tuple[tuple[float, ...], ...]
    friends: tuple[tuple[int, int, bool], ...]
    clocks: int
    nature: Nature


def make_world(seed: int) -> World:
    random = Random(seed)
    n = random.choice((1, 2, 2, 3, 4))
    reach = random.choice((0.05, 0.3, 1.0))
    across = tuple(random.uniform(-0.5, 0.5) * reach / n for _ in range(n - 1))
    kind = random.choice(("R", "R", "c", "both"))
    field = LambdaField(R=None if kind == "c" else (reach, *across), c=0.0 if kind == "R" else reach * reach)
    action = random.choice(("reflect", "stop", "wrap", "remove", turn_about))
    walls = tuple(box([-3.0] * (n - 1), [3.0] * (n - 1), action)) if n > 1 and random.random() < 0.8 else ()
    count = random.randint(2, 8)
    places = tuple((random.uniform(0.0, 0.5), *(random.uniform(-2.0, 2.0) for _ in range(n - 1))) for _ in range(count))
    friends = tuple(
        (source, target, random.random() < 0.2) for source in range(count) for target in random.sample(range(count), 2)
    )
    nature = Nature(
        turns=random.choice((0.05, 0.3)),
        jumps=random.choice((0.0, 0.1)),
        waits=random.choice((0.0, 0.2)),
        dies=random.choice((0.01, 0.05)),
        begets=random.choice((0.02, 0.1, 0.2)),
        introduces=random.choice((0.1, 0.5, 0.9)),
        closes=random.choice((0.0, 0.1)),
        keeps=random.choice((0.0, 0.5)),
        fails=random.choice((0.0, 0.0, 0.0, 0.01)),
    )
    return World(seed, n, field, walls, places, friends, random.choice((0, 0, 2)), nature)


def simulation_of(world: World, executor: Any, *, trace: bool = True) -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(world.n), world.field, world.walls, executor, seed=world.seed, trace=trace)
    with simulation:
        walkers = [Walker() for _ in world.places]
        for walker, place in zip(walkers, world.places, strict=True):
            walker.nature = world.nature
            walker.jump_to(place)
        for source, target, blind in world.friends:
            walkers[source].friends.append(Channel(walkers[source], walkers[target], blind=blind))
        for _ in range(world.clocks):
            clock = Clock()
            wrapper = AgentWrapper(clock)
            clock.friends.append(Channel(wrapper, walkers[0]))
            walkers[-1].wrapped["channel"] = Channel(walkers[-1], wrapper)
            walkers[-1].wrapped["channel"].send(Clock.act, 0)
            wrapper.after(1.0, "act", 0)
        for walker in walkers:
            walker.act(0) if world.nature.fails == 0.0 else walker.after(0.1, "act", 0)
    return simulation


# -- What is seen of a run


class Observation(NamedTuple):
    """All that can be seen of a run: what comes of it and of every agent; or its error, and what came before."""

    digest: str
    events: int
    records: tuple[Any, ...]
    members: dict[str, Any]
    states: dict[str, Any]
    recording: bytes
    error: str = ""


def observed(simulation: ForwardSimulation, until: float = UNTIL, executor: Any = None) -> Observation:
    file = BytesIO()
    recorder = Recorder(file, Plan(roster=tuple(simulation.agents), seed=simulation.seed), encoding="json")
    try:
        result = simulation.run(until=until, executor=executor, observer=recorder)
    except WorldlineError as error:
        recorder.abandon(error.problem)
        before = tuple(simulation.records_of_failure or ())
        return Observation("", 0, before, {}, {}, file.getvalue(), f"{type(error).__name__}: {error}")
    recorder.close()
    states = {name: state_of(agent) for name, agent in simulation.agents.items()}
    told = tuple(result.records), result.members, states, file.getvalue()
    return Observation(result.digest.hex(), result.events, *told)


def state_of(agent: Agent) -> dict[str, Any]:
    """Return all that an agent has, in a form that can be compared."""
    own = {name: shown(value) for name, value in vars(agent).items() if not name.startswith("_wl_")}
    place = tuple(agent.position), tuple(agent.velocity), agent.local_time
    return {**own, "kind": type(agent).__name__, "place": place, "next draw": agent.random.random()}


def shown(value: Any) -> Any:
    """Return an attribute in a form that can be compared."""
    match value:
        case Channel():
            return "channel", value.lane.target.name
        case RemoteReference():
            return "reference", value.name
        case Vector():
            return tuple(value)
        case Clock():
            return "clock", value.count, shown(value.friends)
        case list() | tuple():
            return [shown(each) for each in value]
        case dict():
            return {key: shown(each) for key, each in value.items()}
    return value


def difference(one: Observation, other: Observation) -> list[str]:
    """Return what differs; of records and states, the first one."""
    found = [what for what in Observation._fields if getattr(one, what) != getattr(other, what)]
    if "error" in found:
        return [f"error: {one.error!r} and {other.error!r}"]
    if "records" in found:
        pairs = zip(one.records, other.records, strict=False)
        found.append(str(next((pair for pair in pairs if pair[0] != pair[1]), "one has more records")))
    if "states" in found:
        pairs = ((name, one.states.get(name), other.states.get(name)) for name in sorted({*one.states, *other.states}))
        found.append(str(next(each for each in pairs if each[1] != each[2])))
    return found


def prints_of(seen: Observation) -> dict[str, str]:
    """Return what was seen in a form that is short, and the same under every hash seed."""
    long = {what: hashlib.sha256(repr(getattr(seen, what)).encode()).hexdigest()[:16] for what in seen._fields}
    return {**long, "digest": seen.digest, "error": seen.error}


# -- Ways to run them


class Restless:
    """A placement that sends everybody elsewhere whenever it is asked, and has it asked all the time.

    A worker that loads it looks after so few events whether others have said something, that moves get between events
    that would otherwise be done at one go.
    """

    def __init__(self, seed: int, slice_: int = 16, folder: Path | None = None) -> None:
        self.seed = seed
        self.slice = slice_
        self.folder = folder
        self.calls = 0

    def __call__(self, residents: Sequence[Resident], count: int) -> Mapping[str, int]:
        self.calls += 1
        if self.folder is not None:
            Path(self.folder, str(self.calls)).write_text(str(len(residents)))
        return {each.name: zlib.crc32(f"{self.seed} {self.calls} {each.name}".encode()) % count for each in residents}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        worker._SLICE = self.slice


def restless(seed: int = 0, slice_: int = 16, folder: Path | None = None) -> Placing:
    return Placing(Restless(seed, slice_, folder), moves_every_s=0.0)


def eager(by: str, n: int) -> Placing | None:
    """Place by positions or channels, and look all the time whether that has changed; positions need space."""
    return Placing("channels" if n == 1 else by, moves_every_s=0.0)


Column = Callable[[World], Any]

# The examples of the package, made small.
EXAMPLES: dict[str, dict[str, Any]] = {
    "ping": {},
    "introduction": {},
    "flock": {"birds": 8, "neighbors": 3, "seed": 3},
    "epidemic": {"people": 10, "reach": 4.0, "seed": 3},
    "relay": {},
    "pipeline": {},
}

COLUMNS: dict[str, Column] = {
    "shuffled(1)": lambda world: Shuffled(1),
    "shuffled(2)": lambda world: Shuffled(2),
    "processes(1)": lambda world: processes(1),
    "processes(2)": lambda world: processes(2),
    "processes(3)": lambda world: processes(3),
    "by channels": lambda world: processes(2, placement="channels"),
    "by a dict": lambda world: processes(3, placement=placed_by_lot(world, 3)),
    "eager positions": lambda world: processes(2, placement=eager("positions", world.n)),
    "eager channels": lambda world: processes(3, placement=eager("channels", world.n)),
    "restless(1)": lambda world: processes(1, placement=restless(world.seed)),
    "restless(2)": lambda world: processes(2, placement=restless(world.seed)),
    "restless(3)": lambda world: processes(3, placement=restless(world.seed, 3)),
}

MPI_COLUMNS: dict[str, Column] = {
    "mpi": lambda world: mpi(),
    "mpi by channels": lambda world: mpi(placement="channels"),
    "restless mpi": lambda world: mpi(placement=restless(world.seed)),
}


def placed_by_lot(world: World, count: int) -> dict[str, int]:
    random = Random(world.seed)
    return {name: random.randrange(count) for name in simulation_of(world, "inline").agents}


def observe(world: World, column: str) -> Observation:
    if column == "inline":
        return observed(simulation_of(world, "inline"))
    return observed(simulation_of(world, {**COLUMNS, **MPI_COLUMNS}[column](world)))


def observations(seeds: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[int, str, Observation]]:
    for seed in seeds:
        for column in columns:
            yield seed, column, observe(make_world(seed), column)
