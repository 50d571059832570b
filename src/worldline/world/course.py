"""The course of a world: what its primary knows and decides. No sockets, no clock, no physics but that of newcomers.

Theory of operation
-------------------
A run is a series of *rounds*. In each, the primary gives every secondary that has something to do an order, and waits
for all acks. Acks are taken in the order of their senders' names, so nothing depends on which came first. An ack that
answers no open order is ignored, as is a second one.

C1. *Looks.* Groups hold for a span of some steps: movers that could touch before that are in one group already. At a
    look the secondaries tell states and extents, and the primary works out groups and placement anew. It looks when the
    span is over, after a step in which levels changed, and at interactions. If that wasn't planned, an order
    of no steps asks for it. It also looks before a step in which a mover gets faster than the groups were made for:
    that step doesn't count. If it fails again right after a look, groups are made for faster movers, up to a limit.
C2. *Levels* are looked at after every step, as are their loads: what a level loads is there from the next step on. A
    model that was unloaded and is loaded again is as in the file.
C3. *Running ahead.* An order may be for several steps, up to the next look. No group can meet another before that, so
    all secondaries can go that far without a word. Only an unplanned look could come in between. If one does, what came
    after that step is forgotten: the secondaries go back and repeat the steps up to there, which gives the same bits,
    since states are exact (E1). So the result is that of single steps. It is checked: the last step that is repeated
    must have its hash.
C4. *The state hash* of an iteration covers the step and the states of all movers. It is made from a sum of hashes, one
    for each mover, so no process has to know all states. The *chain* of a run is the hash of all its state hashes.

The primary's decisions depend on the file, the interactions and, for placement, the names of the secondaries. Placement
decides where something is computed, never what comes of it (E1, E3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, isfinite
from struct import iter_unpack, pack, unpack_from
from typing import NamedTuple

from msgspec import structs

from worldline.model.errors import InternalError, ModelError, PeerError, UsageError, nearest, shown
from worldline.model.time import SECOND
from worldline.world.description import WorldModel, absolute_topic
from worldline.world.engines.engine import (
    Extent,
    MoverSeen,
    PhysicsEngine,
    checked_motor_command,
    checked_pose,
    checked_twist,
)
from worldline.world.groups import Group, Mover, place, settle_groups
from worldline.world.interactions import (
    Change,
    CommandMotors,
    InsertPerformer,
    RemovePerformer,
    Reset,
    SetCommand,
    SetPose,
)
from worldline.world.levels import Cast
from worldline.world.orders import (
    HASH_SIZE,
    EntityChange,
    GroupOrder,
    LookSeen,
    StepAck,
    StepOrder,
    chained,
    sum_of_hashes,
)
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)
from worldline.world.spectator import SeveralSpectators, Spectator

# Surroundings: which static models a group needs around it.
#
# A group's model has the static models near its movers. Far ones change nothing, but cost time in every step. So that a
# group isn't rebuilt with every meter it goes, it gets all that are within a *region* larger than needed, and keeps
# them until it gets near that region's edge.

MARGIN = 2.0
"""Meters by which a region is larger than needed, on every side."""


class Region(NamedTuple):
    """A box along the world's axes, from its least to its greatest corner."""

    low: Vector
    high: Vector

    def touches(self, other: Region) -> bool:
        return all(
            a_low <= b_high and b_low <= a_high
            for a_low, a_high, b_low, b_high in zip(self.low, self.high, other.low, other.high, strict=True)
        )

    def holds(self, other: Region) -> bool:
        return all(a <= b for a, b in zip(self.low, other.low, strict=True)) and all(
            a >= b for a, b in zip(self.high, other.high, strict=True)
        )

    def grown(self, by: float) -> Region:
        x, y, z = self.low
        a, b, c = self.high
        return Region((x - by, y - by, z - by), (a + by, b + by, c + by))


def joined(regions: Iterable[Region]) -> Region:
    """Return the least region that holds them all."""
    lows, highs = zip(*regions, strict=True)
    x, y, z = map(min, zip(*lows, strict=True))
    a, b, c = map(max, zip(*highs, strict=True))
    return Region((x, y, z), (a, b, c))


def static_region(model: WorldModel) -> Region | None:
    """Return the box around all of a static model that can be touched; None if nothing can."""
    regions = [
        _shape_region(model.pose.compose(link.pose).compose(collision.pose), collision.shape)
        for link in model.links
        for collision in link.collisions
    ]
    return joined(regions).grown(1e-6) if regions else None  # More than roundings can have taken off.


def _shape_region(pose: Pose, shape: Shape) -> Region:
    half = _half_size(shape)
    if not all(map(isfinite, half)):
        return Region((-inf, -inf, -inf), (inf, inf, inf))
    a, b, c = half
    ways = [pose.rotate(way) for way in ((a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c))]
    a, b, c = (sum(abs(way[axis]) for way in ways) for axis in range(3))
    x, y, z = pose.position
    return Region((x - a, y - b, z - c), (x + a, y + b, z + c))


def _half_size(shape: Shape) -> Vector:
    match shape:
        case BoxShape((x, y, z)):
            return x / 2, y / 2, z / 2
        case SphereShape(radius):
            return radius, radius, radius
        case CylinderShape(radius, height):
            return radius, radius, height / 2
        case CapsuleShape(radius, height):
            return radius, radius, radius + height / 2
        case EllipsoidShape(radii):
            return radii
        case PlaneShape():
            return inf, inf, inf


Surroundings = Mapping[str, Region | None]
"""The static models that are loaded, by name, and where they are; those that nothing can touch are nowhere."""


# The arrangement of a world: which secondary simulates what, from one look to the next, and what it is told of it.

NO_NEWS = StepOrder(0, 0, 0, 0)


class HostedGroup(NamedTuple):
    """A group, where it is simulated, what none of its movers is faster than, and the static models in its region."""

    group: Group
    host: str
    speed: float
    statics: tuple[str, ...]
    region: Region

    def is_same_model(self, other: HostedGroup) -> bool:
        return self.group.members() == other.group.members() and self.statics == other.statics


class Arrangement:
    """Groups by name, and the secondary of each mover. By secondary, in the order of its acks: its `movers`, those of
    them that perform, with their numbers (`performing`), and the speeds of its groups (`speeds`).
    """

    def __init__(
        self,
        groups: Mapping[str, HostedGroup],
        affinities: Mapping[str, str],
        secondaries: Iterable[str],
        surroundings: Surroundings,
    ) -> None:
        self.groups = groups
        self.surroundings = surroundings
        self.affinities = dict(affinities)
        self.movers: dict[str, list[str]] = {}
        self.performing: dict[str, list[tuple[int, str]]] = {}
        self.speeds: dict[str, dict[str, float]] = {}
        for secondary in secondaries:
            here = sorted(each for each in groups.values() if each.host == secondary)
            performers = {name for each in here for name in each.group.performers}
            movers = [name for each in here for name in sorted(each.group.members())]
            self.movers[secondary] = movers
            self.performing[secondary] = [(number, name) for number, name in enumerate(movers) if name in performers]
            self.speeds[secondary] = {each.group.name: each.speed for each in here}

    def at(self, secondary: str) -> dict[str, HostedGroup]:
        return {name: each for name, each in self.groups.items() if each.host == secondary}


def arrange(
    movers: Iterable[Mover],
    span_ns: int,
    secondaries: Collection[str],
    surroundings: Surroundings,
    before: Arrangement,
    changed: Collection[str],
) -> Arrangement:
    """Work out groups that hold for a while, where they are simulated, and the static models around each.

    `changed` are the performers whose levels aren't what they were before. A group that stays in its region keeps its
    static models, as long as the surroundings are the same.
    """
    known = {mover.name: mover for mover in movers}
    groups, speeds = settle_groups(known.values(), span_ns)
    affinities = place(groups, secondaries, before.affinities, changed)
    hosted = {}
    for group in groups:
        speed = speeds[group.name]
        needed = joined(_region(known[name]) for name in group.members()).grown(speed * span_ns / SECOND)
        last = before.groups.get(group.name)
        if (
            last is not None
            and last.group.members() == group.members()
            and last.region.holds(needed)
            and before.surroundings is surroundings
        ):
            region, statics = last.region, last.statics
        else:
            region = needed.grown(MARGIN)
            statics = tuple(name for name, each in surroundings.items() if each is not None and each.touches(region))
        hosted[group.name] = HostedGroup(group, affinities[group.name], speed, statics, region)
    return Arrangement(hosted, affinities, secondaries, surroundings)


def news(
    secondary: str, before: Arrangement, after: Arrangement, states: Mapping[str, bytes], forgotten: Collection[str]
) -> StepOrder | None:
    """Return what a secondary has to load and unload; None if it has no groups, and had none.

    `states` are those of all movers. A secondary takes them from the groups that it had, unless they are `forgotten`.
    """
    had, has = before.at(secondary), after.at(secondary)
    same = [
        name
        for name, each in has.items()
        if name in had and each.is_same_model(had[name]) and not any(map(forgotten.__contains__, each.group.members()))
    ]
    unload = [name for name in had if name not in same]
    there = {mover for name in unload for mover in had[name].group.members()}.difference(forgotten)
    if not (has or unload):
        return None
    return structs.replace(
        NO_NEWS,
        unload=unload,
        load=[
            GroupOrder(
                name,
                sorted(each.group.members()),
                list(each.statics),
                {mover: states[mover] for mover in each.group.members() if mover not in there},
            )
            for name, each in has.items()
            if name not in same
        ],
    )


def _region(mover: Mover) -> Region:
    (x, y, z), (a, b, c) = mover.center, mover.half
    return Region((x - a, y - b, z - c), (x + a, y + b, z + c))


LOOK_EVERY = 10
"""Steps for which groups hold. Running ahead goes no further: groups, and the speeds that are expected of them, must
not depend on it."""

_LEEWAY_MAX = 4**4
_ACK_MAX = 2**22  # Bytes; messages can't be much longer.


class _Round(NamedTuple):
    """What the secondaries have been asked to do, and have answered."""

    orders: dict[str, StepOrder]
    steps: int
    look: bool
    back: bool
    acks: dict[str, StepAck]


@dataclass
class _Looks:
    """When it looks (C1): next at one iteration, as last at another. What is seen then holds for a `span` of steps."""

    span: int
    next: int
    last: int = -1
    leeway: int = 1
    """By how much movers may get faster than is expected of them."""
    is_current: bool = True
    """Whether what was seen last is how it is now."""
    overrun: int | None = None
    """Steps of the last round that count, if others don't (C3)."""


@dataclass
class _Pending:
    """What has happened since groups were last worked out."""

    told: list[tuple[str, EntityChange]] = field(default_factory=list)
    """What is done to movers, which secondaries haven't been told."""
    changed: set[str] = field(default_factory=set)
    """Performers whose levels changed."""
    gone: set[str] = field(default_factory=set)
    """Movers that were removed, and are still simulated."""

    def keep(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget what is done to other movers."""
        self.told = [(entity, change) for entity, change in self.told if is_wanted(entity)]


@dataclass
class _Told:
    """What secondaries and the spectator know: so many rounds, the models that are loaded, and the file's copies."""

    rounds: int = 0
    models: Mapping[str, WorldModel] = field(default_factory=dict)
    copies: list[InsertPerformer] = field(default_factory=list)
    news: dict[str, StepOrder] = field(default_factory=dict)
    """What secondaries haven't been told yet, by name."""
    is_stale: bool = True
    """Whether nothing that secondaries have is to go on."""


class _Progress(NamedTuple):
    """How far the run is, and the world; the hash of its state, and that of all state hashes so far."""

    iteration: int = 0
    step: int = 0
    state_hash: bytes = bytes(HASH_SIZE)
    chain: bytes = bytes(HASH_SIZE)


class Course:
    """The primary's side of a run.

    `begin` gives the orders of the next round, `take` takes acks, and `settle` works out what follows once there are
    all of them. The spectator is told on the way.
    """

    def __init__(
        self,
        engine: PhysicsEngine,
        secondaries: Iterable[str],
        spectator: Spectator | None = None,
        *,
        run_ahead: int = 1,
        look_every: int = LOOK_EVERY,
    ) -> None:
        self.file = engine.world
        self.secondaries = tuple(sorted(set(secondaries)))
        if run_ahead < 1:
            raise UsageError(f"it can't run ahead by {run_ahead} steps", advice="1 is the least: single steps")
        self._engine = engine
        self._spectator = spectator or SeveralSpectators(())
        self._run_ahead = run_ahead
        self._round: _Round | None = None
        self._arranged = Arrangement({}, {}, self.secondaries, {})
        self._steps_max = 1  # Of a round: what is said of them has to fit into a message.
        self._told = _Told()
        self._progress = _Progress()
        self._begin_anew(look_every)
        self._spectator.began(self.file)

    def _begin_anew(self, span: int) -> None:
        """Have everything as it is in the file."""
        self.cast = Cast(self.file)
        self._engine.change_world(self.file)
        self._progress = _Progress(iteration=self.iteration, chain=self.chain)
        self._seen: dict[str, MoverSeen] = {}
        self._last: list[tuple[list[str], bytes]] = []  # The positions of movers after the last step, packed.
        self._pending = _Pending()
        self._looks = _Looks(span, self.iteration)
        self._told.is_stale = True

    # --- What is ---

    @property
    def iteration(self) -> int:
        return self._progress.iteration

    @property
    def step(self) -> int:
        return self._progress.step

    @property
    def state_hash(self) -> bytes:
        return self._progress.state_hash

    @property
    def chain(self) -> bytes:
        """The hash of all state hashes so far."""
        return self._progress.chain

    @property
    def time(self) -> int:
        """The world's own time, in nanoseconds."""
        return self.step * self.file.step

    @property
    def affinities(self) -> dict[str, str]:
        """Which secondary each mover is on."""
        return {} if self._told.is_stale else self._arranged.affinities

    @property
    def missing(self) -> tuple[str, ...]:
        """The secondaries whose acks this round waits for."""
        if self._round is None:
            return ()
        return tuple(name for name in self._round.orders if name not in self._round.acks)

    def positions(self) -> dict[str, Vector]:
        """Return where all movers are."""
        known: dict[str, Vector] = {}
        for movers, packed in self._last:
            known.update(zip(movers, iter_unpack("<3d", packed), strict=True))
        known = {name: at for name, at in known.items() if name not in self._pending.gone}
        known.update((entity, put.position) for entity, put in self._pending.told if isinstance(put, SetPose))
        return {
            name: known[name] if name in known else self._newcomer(name).position
            for name, model in self.cast.loaded().items()
            if not model.static
        }

    # --- Rounds ---

    def begin(self, steps_max: int) -> dict[str, StepOrder]:
        """Return the orders of the next round, by secondary: to go some steps, at most so many, or to look.

        There are none if there is nothing to simulate; then the round can be settled at once.
        """
        if self._round is not None:
            raise UsageError("a round is under way")
        if self._looks.next == self.iteration and self._looks.is_current and not self._is_told_first():
            self._regroup()
        if self._looks.next == self.iteration or self._pending.told:
            steps, back, look = self._looks.overrun or 0, self._looks.overrun is not None, True
        else:
            steps = min(steps_max, self._run_ahead, self._steps_max, self._looks.next - self.iteration)
            back = False
            look = self.iteration + steps == self._looks.next
        self._told.rounds += 1
        self._round = _Round(self._orders(steps, look, back), steps, look, back, {})
        return self._round.orders

    def _is_told_first(self) -> bool:
        """Whether an interaction is about a mover that is simulated already.

        It has to be told before groups are worked out: a mover that is put elsewhere keeps levels loaded there, or lets
        others go. That mustn't depend on whether it was seen by chance at the time of the interaction.
        """
        here = self._arranged.affinities.keys() - self._pending.gone
        return not self._told.is_stale and not here.isdisjoint(entity for entity, _ in self._pending.told)

    def take(self, ack: StepAck) -> bool:
        """Take an ack, if it answers an order; whether all are there."""
        current = self._round
        if current is None:
            return False
        order = current.orders.get(ack.sender)
        if order is not None and ack.round == order.round and ack.sender not in current.acks:
            self._check(ack, order)
            current.acks[ack.sender] = ack
        return len(current.acks) == len(current.orders)

    def settle(self) -> None:
        """Work out what follows from the acks of a round."""
        current = self._round
        assert current is not None
        assert not self.missing
        self._round = None
        acks = [current.acks[name] for name in sorted(current.acks)]
        if current.back:
            self._check_repetition(acks)
        else:
            for index in range(current.steps):
                if self._is_only_too_fast(acks, index):
                    if self._looks.last == self.iteration:
                        self._looks.leeway *= 4
                    self._looks.overrun, self._looks.next, self._looks.is_current = index, self.iteration, False
                    return
                self._settle_step(index, acks)
                if self._pending.changed and index + 1 < current.steps:
                    self._looks.overrun = index + 1
                    return
        self._fail_if_any(acks, current.steps)
        if current.look:
            for ack in acks:
                assert ack.look is not None
                self._see(ack.sender, ack.look, current.orders[ack.sender].changes)
            self._looks.is_current, self._looks.next = True, self.iteration

    def _orders(self, steps: int, look: bool, back: bool) -> dict[str, StepOrder]:
        iteration, step = self.iteration, self.step
        if back:  # That is where it begins again; what was seen there has been told.
            iteration, step = iteration - steps, step - steps
        changes = [] if back else self._pending.told
        told: set[str] = set()
        orders = {}
        for name in self.secondaries:
            told_now = self._told.news.pop(name, None)
            movers = self._arranged.movers[name]
            if told_now is not None or movers:
                here = {mover for mover in movers if mover not in self._pending.gone} if changes else set()
                told |= here
                orders[name] = structs.replace(
                    told_now or NO_NEWS,
                    round=self._told.rounds,
                    iteration=iteration,
                    step=step,
                    step_size=self.file.step,
                    back=back,
                    speeds=self._arranged.speeds[name] if back or told_now is not None else {},
                    changes=[each for each in changes if each[0] in here],
                    steps=steps,
                    look=self._looks.span if look else 0,
                    poses_every=0 if back else self._spectator.every,
                )
        # Newcomers can't be told anything before they are simulated.
        self._pending.keep(lambda entity: entity not in told)
        return orders

    def _check(self, ack: StepAck, order: StepOrder) -> None:
        movers = self._arranged.movers[ack.sender]
        fits = len(ack.steps) <= order.steps and all(
            len(seen.positions) == 24 * len(movers) and len(seen.hash_part) == HASH_SIZE for seen in ack.steps
        )
        if ack.failure is None:
            fits = fits and len(ack.steps) == order.steps and (ack.look is not None) == bool(order.look)
        if ack.look is not None:
            numbers = len(ack.look.positions) / 24, len(ack.look.extents) / 56
            fits = fits and len(ack.look.states) == len(movers) == numbers[0] == numbers[1]
        if not fits:
            raise PeerError(
                f"secondary {shown(ack.sender)} doesn't say what was asked of it, in step {self.step}",
                advice="use one version of Worldline everywhere",
            )

    # --- Steps ---

    def _settle_step(self, index: int, acks: list[StepAck]) -> None:
        self._fail_if_any(acks, index)
        step = self.step + 1
        state_hash = _hash_of(step, acks, index)
        self._progress = _Progress(self.iteration + 1, step, state_hash, chained(self.chain, state_hash))
        self._looks.is_current = False
        positions: dict[str, Vector] = {}
        poses: dict[str, bytes] = {}
        self._last = []
        for ack in acks:
            seen = ack.steps[index]
            self._last.append((self._arranged.movers[ack.sender], seen.positions))
            for number, mover in self._arranged.performing[ack.sender]:
                positions[mover] = unpack_from("<3d", seen.positions, 24 * number)
            if seen.poses:
                poses |= self._unpacked_poses(ack.sender, seen.poses)
        self._note_levels(positions)
        self._spectator.stepped(self.iteration, self.step, poses, self.state_hash)

    def _check_repetition(self, acks: list[StepAck]) -> None:
        steps, self._looks.overrun = self._looks.overrun, None
        assert steps is not None
        self._fail_if_any(acks, steps)
        if steps and _hash_of(self.step, acks, steps - 1) != self.state_hash:
            raise InternalError(f"step {self.step} was computed twice and differs")

    def _note_levels(self, positions: Mapping[str, Vector]) -> None:
        if changed := self.cast.move(positions):
            self._pending.changed.update(changed)
            self._looks.next = self.iteration

    def _is_only_too_fast(self, acks: list[StepAck], index: int) -> bool:
        """Whether the step of that index only failed since a mover got faster than the last look could foresee (C1)."""
        failures = [ack.failure for ack in acks if ack.failure is not None and len(ack.steps) == index]
        can_look = self._looks.last < self.iteration or self._looks.leeway < _LEEWAY_MAX
        return bool(failures) and all(each.too_fast for each in failures) and can_look

    def _fail_if_any(self, acks: list[StepAck], index: int) -> None:
        """Raise what kept a group from the step of that index; of several groups, the least one's."""
        failures = [ack.failure for ack in acks if ack.failure is not None and len(ack.steps) == index]
        if failures:
            failure = min(failures, key=lambda each: each.group)
            raise ModelError(
                failure.problem,
                at=failure.step * self.file.step,
                advice=failure.advice or None,
                entity=failure.entity,
                step=failure.step,
            )

    def _unpacked_poses(self, secondary: str, packed: bytes) -> dict[str, bytes]:
        poses = {}
        start = 0
        for mover in self._arranged.movers[secondary]:
            stop = start + 56 * len(self._told.models[mover].links)
            poses[mover] = packed[start:stop]
            start = stop
        return poses

    # --- Looks ---

    def _see(self, secondary: str, look: LookSeen, changes: Iterable[tuple[str, EntityChange]]) -> None:
        put = {entity for entity, change in changes if isinstance(change, SetPose)}
        positions = iter_unpack("<3d", look.positions)
        extents = iter_unpack("<7d", look.extents)
        moved = {}
        for mover, state, position, numbers in zip(
            self._arranged.movers[secondary], look.states, positions, extents, strict=True
        ):
            x, y, z = position
            extent = Extent(numbers[:3], numbers[3:6], numbers[6])
            self._seen[mover] = MoverSeen(state, (x, y, z), extent)
            if mover in put:  # It may be in other levels there.
                moved[mover] = (x, y, z)
        if moved:
            self._note_levels({mover: at for mover, at in moved.items() if mover in self.cast.levels.performers()})

    def _regroup(self) -> None:
        """Work out groups, placement and what secondaries have to be told of both."""
        cast = self.cast
        wanted = cast.loaded()
        statics = {name: model for name, model in wanted.items() if model.static}
        self._seen = {
            name: self._seen[name] if name in self._seen and name not in self._pending.gone else self._newcomer(name)
            for name in wanted
            if name not in statics
        }
        performers, active = frozenset(cast.levels.performers()), frozenset(cast.levels.active())
        if self._looks.last < self.iteration:
            self._looks.leeway = 1
        movers = [
            Mover(
                name,
                seen.extent.center,
                seen.extent.half,
                seen.extent.speed * self._looks.leeway,
                levels=cast.levels.of(name)
                if name in performers
                else tuple(level for level in cast.levels_naming(name) if level in active),
                performs=name in performers,
            )
            for name, seen in self._seen.items()
        ]
        surroundings = self._arranged.surroundings
        if list(surroundings) != list(statics):
            surroundings = {name: static_region(model) for name, model in statics.items()}
        last = Arrangement(self._arranged.groups, self.affinities, self.secondaries, self._arranged.surroundings)
        self._arranged = arrange(
            movers,
            self._looks.span * self.file.step,
            self.secondaries,
            surroundings,
            last,
            self._pending.changed & performers,
        )
        self._tell(last)
        self._told.is_stale = False
        self._pending = _Pending(self._pending.told)
        self._pending.keep(wanted.__contains__)
        self._steps_max = max(1, _ACK_MAX // max(map(self._ack_size, self.secondaries)))
        if wanted != self._told.models or last.affinities != self.affinities:
            self._spectator.changed(self.iteration, self.step, wanted, self.affinities)
        self._told.models = wanted
        self._looks.last, self._looks.next = self.iteration, self.iteration + self._looks.span

    def _ack_size(self, secondary: str) -> int:
        """Return about how many bytes a secondary says of a step."""
        movers = self._arranged.movers[secondary]
        links = sum(len(self.cast.world.models[mover].links) for mover in movers) if self._spectator.every else 0
        return 64 + 24 * len(movers) + 56 * links

    def _newcomer(self, name: str) -> MoverSeen:
        """Find out what has to be known of a mover that isn't simulated yet."""
        return self._engine.newcomer(name, self.step, self._looks.span)

    def _tell(self, last: Arrangement) -> None:
        """Have the news for secondaries ready; what they have of those removed or from before a reset is forgotten."""
        copies = self.cast.copies
        forgotten = self._pending.gone
        if self._told.is_stale:
            forgotten = {name for each in last.groups.values() for name in each.group.members()}
        states = {name: seen.state for name, seen in self._seen.items()}
        for secondary in self.secondaries:
            found = news(secondary, last, self._arranged, states, forgotten)
            if copies != self._told.copies:
                found = structs.replace(found or NO_NEWS, copies=list(copies))
            if found is not None:
                self._told.news[secondary] = found
        self._told.copies = list(copies)

    # --- Interaction ---

    def interact(self, change: Change) -> None:
        """Have something take effect before the next step; what isn't possible raises and changes nothing."""
        if self._round is not None:
            raise UsageError("a round is under way")
        match change:
            case SetCommand():
                self._command(change)
            case CommandMotors():
                self._command_motors(change)
            case SetPose():
                self._put_elsewhere(change)
            case InsertPerformer():
                self.cast.insert(change)
                self._engine.change_world(self.cast.world)
                self._pending.changed.add(change.name)
            case RemovePerformer():
                self._remove(change.name)
            case Reset():
                self._begin_anew(self._looks.span)
        self._looks.next = self.iteration
        self._spectator.interacted(self.iteration, self.step, change)

    def _command(self, change: SetCommand) -> None:
        model = self.cast.mover(change.entity)
        if model.drive is None:
            raise UsageError(f"model {shown(change.entity)} has no drive, so it takes no commands")
        linear, angular = checked_twist(change.linear, change.angular)
        self._pending.told.append((change.entity, SetCommand(change.entity, linear, angular)))

    def _command_motors(self, change: CommandMotors) -> None:
        """Tell all motors that hear the topic: a topic of the file's own may be that of several models."""
        heard = {
            (name, absolute_topic(motor.topic, name))
            for name, model in self.cast.loaded().items()
            for motor in model.motors
        }
        value = checked_motor_command(change.value)
        told = sorted(name for name, topic in heard if topic == change.topic)
        if not told:
            advice = (
                nearest(change.topic, sorted({topic for _, topic in heard})) or "--check lists the topics of motors"
            )
            raise UsageError(f"no motor of a loaded model hears {shown(change.topic)}", advice=advice)
        self._pending.told += [(name, CommandMotors(change.topic, value)) for name in told]

    def _put_elsewhere(self, change: SetPose) -> None:
        model = self.cast.mover(change.entity)
        held = {joint.child for joint in model.joints}
        if model.motion is not None or all(link.name in held for link in model.links):
            raise UsageError(f"model {shown(change.entity)} is held or scripted and can't be put elsewhere")
        checked_pose(Pose(change.position, change.quaternion))
        self._pending.told.append((change.entity, change))

    def _remove(self, name: str) -> None:
        self.cast.remove(name)
        self._engine.change_world(self.cast.world)
        self._pending.changed.discard(name)
        self._pending.gone.add(name)  # A copy of another model may get its name, and mustn't get its state.
        self._pending.keep(lambda entity: entity != name)


def _hash_of(step: int, acks: list[StepAck], index: int) -> bytes:
    """Return the state hash of a step (C4), which is the one of that index in these acks."""
    total = sum_of_hashes([ack.steps[index].hash_part for ack in acks])
    return blake2b(pack("<Q", step) + total, digest_size=HASH_SIZE).digest()
