"""Hosting: what a secondary does with its orders. No sockets here: an order in, an ack out.

A secondary has groups, each a model of the engine's. It knows nothing of levels and placement, and decides nothing.
What it says depends on its orders alone.

Models of groups that come back are kept for a while: two robots that pass each other are one group, then two, then one
again, and to build a model takes as long as some dozens of steps.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from struct import pack
from typing import Protocol

from worldline.model.errors import ModelError
from worldline.world.engines.engine import Extent, PhysicsEngine, SimulatedGroup, agreement
from worldline.world.interactions import CommandMotors, SetCommand, SetPose
from worldline.world.orders import (
    HASH_MODULUS,
    HASH_SIZE,
    LookSeen,
    StepAck,
    StepFailure,
    StepOrder,
    StepSeen,
    with_copies,
)
from worldline.world.pose import Pose

# Exchanges: how orders get to secondaries, and acks back.


class Exchange(Protocol):
    """Reaches all secondaries of a run."""

    @property
    def secondaries(self) -> tuple[str, ...]: ...

    @property
    def agreement(self) -> dict[str, str]:
        """What all secondaries simulate: see `engine.agreement`."""

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        """Hand out orders, and hand back acks until that returns true: they are all there."""

    def wait(self, seconds: float) -> None:
        """Let that much time of the wall clock pass, and raise if a secondary goes meanwhile."""


class LocalExchange:
    """Secondaries in this very process, one after the other; one is enough, unless placement is to be seen."""

    def __init__(self, open_engine: Callable[[], PhysicsEngine], names: Iterable[str] = ("local",)) -> None:
        engines = {name: open_engine() for name in names}
        self._hostings = {name: Hosting(name, engine) for name, engine in engines.items()}
        self.agreement = agreement(next(iter(engines.values())))

    @property
    def secondaries(self) -> tuple[str, ...]:
        return tuple(sorted(self._hostings))

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        for name, order in orders.items():
            take(self._hostings[name].carry_out(order))

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


_KEPT_MAX = 64  # Models of groups that aren't simulated at present.


class Hosting:
    """The groups of one secondary."""

    def __init__(self, name: str, engine: PhysicsEngine) -> None:
        self.name = name
        self._engine = engine
        self._file = engine.world
        self._groups: dict[str, SimulatedGroup] = {}
        self._kept: OrderedDict[tuple[tuple[str, ...], tuple[str, ...]], SimulatedGroup] = OrderedDict()
        self._prefixes: dict[str, bytes] = {}  # What the hash of each mover begins with: its name.
        self._states: dict[str, dict[str, bytes]] = {}  # Of all movers, by group, as they are now.
        self._mark: dict[str, dict[str, bytes]] = {}  # And before the steps of the last order.
        self._mark_step = 0
        self._at = ""  # The group that is being simulated.

    def carry_out(self, order: StepOrder) -> StepAck:
        seen: list[StepSeen] = []
        try:
            self._prepare(order)
            while len(seen) < order.steps:
                iteration = order.iteration + len(seen) + 1
                seen.append(self._advance(order.poses_every > 0 and iteration % order.poses_every == 0))
            look = self._look(order.look) if order.look else None
        except ModelError as error:
            failure = StepFailure(
                self._at,
                error.facts.get("entity", ""),
                error.facts.get("step", order.step + len(seen)),
                error.problem,
                error.advice or "",
                error.facts.get("too_fast", False),
            )
            return StepAck(self.name, order.round, order.iteration + len(seen), seen, None, failure)
        return StepAck(self.name, order.round, order.iteration + order.steps, seen, look)

    def _prepare(self, order: StepOrder) -> None:
        """Do all that comes before the steps."""
        self._at = ""
        if order.copies is not None:
            self._engine.change_world(with_copies(self._file, order.copies))
        if order.unload or order.load or order.copies is not None:
            self._regroup(order)
        if order.back:
            for name, states in self._mark.items():
                self._groups[name].set_states(self._mark_step, states)
        for name, speed in order.speeds.items():
            self._groups[name].limit_speeds(speed)
        for entity, change in order.changes:
            group = next(group for group in self._groups.values() if entity in group.movers)
            match change:
                case SetCommand(_, linear, angular):
                    group.command(entity, linear, angular)
                case CommandMotors(topic, value):
                    group.command_motors(entity, topic, value)
                case SetPose(_, position, quaternion):
                    group.place(entity, Pose(position, quaternion))
        if order.back or order.unload or order.load or order.changes:
            self._states = {name: group.states() for name, group in self._groups.items()}
        self._mark, self._mark_step = dict(self._states), order.step

    # --- Groups ---

    def _regroup(self, order: StepOrder) -> None:
        """Take the states out of the groups that end, and put them into those that begin."""
        states: dict[str, bytes] = {}
        for name in order.unload:
            group = self._groups.pop(name)
            states |= group.states()
            self._kept[group.movers, group.statics] = group
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        if order.copies is not None:  # Those that are kept may be of copies whose names are others' now.
            self._kept.clear()
        for each in order.load:
            parts = tuple(each.movers), tuple(each.statics)
            group = self._kept.pop(parts) if parts in self._kept else self._engine.build(*parts)
            group.set_states(order.step, {mover: (states | each.states)[mover] for mover in each.movers})
            self._groups[each.name] = group
        self._groups = {name: self._groups[name] for name in sorted(self._groups)}
        self._prefixes = {mover: mover.encode() + b"\0" for group in self._groups.values() for mover in group.movers}

    # --- Steps ---

    def _advance(self, poses_wanted: bool) -> StepSeen:
        total = 0
        groups = self._groups.values()
        for name, group in self._groups.items():
            self._at = name
            group.advance()
            self._states[name] = group.states()
            for mover, state in self._states[name].items():
                total += self._hash(mover, state)
        return StepSeen(
            (total % HASH_MODULUS).to_bytes(HASH_SIZE, "little"),
            b"".join([group.packed_positions() for group in groups]),
            b"".join([group.packed_poses() for group in groups]) if poses_wanted else b"",
        )

    def _hash(self, mover: str, state: bytes) -> int:
        return int.from_bytes(blake2b(self._prefixes[mover] + state, digest_size=HASH_SIZE).digest(), "little")

    def _look(self, steps: int) -> LookSeen:
        groups = self._groups.values()
        extents: list[Extent] = []
        for name, group in self._groups.items():
            self._at = name
            extents += group.extents(steps).values()
        return LookSeen(
            [state for states in self._states.values() for state in states.values()],
            b"".join([group.packed_positions() for group in groups]),
            b"".join([pack("<7d", *extent.center, *extent.half, extent.speed) for extent in extents]),
        )
