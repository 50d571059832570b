"""Groups: who has to be simulated together.

Theory of operation
-------------------
A *mover* is whatever can change its place: a performer, or an entity that isn't static. A group is the unit of
placement and of physics: one model, on one secondary. Two movers are in one group if a chain of these connects them:

G1. Performers that are in one level.
G2. Movers that could touch before the groups are looked at again. Each is in a box around its center now, and grown by
    speed × time on every side, the box holds it until then. Movers whose grown boxes touch could meet.

So a performer's group also has the entities that it could push, and those that they could push in turn. Levels connect
performers alone: a level may name a thousand boxes that nobody comes near, and whoever simulates the level need not
have them in one model.

Why it is safe: a mover stays in its grown box until the groups are looked at again, and the grown boxes of two groups
don't touch, so neither do their movers. A contact that isn't in one model would be missed: they would pass through each
other. So rounding must not separate boxes that touch. After each operation, half sizes go up to the next double, which
is more than the operation can have been off. Adding them to a center then needs no such care: rounding keeps the order
of numbers, so bounds that are exactly equal, or overlap, still do when both are rounded.

That holds if the caller's figures do. `half` must hold the mover in every orientation that it may have until then, and
`speed` is what no point of it will exceed, whoever of its group pushes it. Where that depends on the group, a fast one
that joins makes all the others faster, and these may reach more in turn: `settle_groups` goes on until none does.

Groups without a performer (*loose* ones) are groups too: what falls has to fall somewhere.

The groups are the connected parts of a graph, so neither the order of the input nor that of the search shows. A group
has the name of its least member, performer or entity; all names of a world differ, and so do those of its groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import NamedTuple

from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.time import SECOND
from worldline.world.levels import Point


class Mover(NamedTuple):
    """Whatever can change its place, as far as it matters here; meters and meters per second.

    `levels` are those that a performer is in, and of those that name an entity, the active ones.
    """

    name: str
    center: Point
    half: Point
    speed: float
    levels: tuple[str, ...] = ()
    performs: bool = False


class Group(NamedTuple):
    """Movers that are simulated together; all names are sorted. Without performers, it is loose."""

    name: str
    performers: tuple[str, ...]
    entities: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()

    def members(self) -> tuple[str, ...]:
        return (*self.performers, *self.entities)


def find_groups(movers: Iterable[Mover], span_ns: int) -> tuple[Group, ...]:
    """Return the groups, by name. `span_ns` is the time until they are looked at again."""
    ordered = sorted(movers, key=lambda mover: mover.name)
    for mover, other in pairwise(ordered):
        if mover.name == other.name:
            raise UsageError(f"there are two movers named {shown(mover.name)}", advice="give each a name of its own")
    union = _Union(len(ordered))
    _join_by_levels(ordered, union)
    _join_by_boxes([_grown(mover, span_ns) for mover in ordered], union)
    parts: dict[int, list[Mover]] = {}
    for number, mover in enumerate(ordered):
        parts.setdefault(union.root(number), []).append(mover)
    return tuple(_group(part) for part in parts.values())


def settle_groups(movers: Iterable[Mover], span_ns: int) -> tuple[tuple[Group, ...], dict[str, float]]:
    """Return groups in which everybody may get as fast as the fastest could by itself, and that speed of each."""
    known = {mover.name: mover for mover in movers}
    while True:
        groups = find_groups(known.values(), span_ns)
        speeds = {group.name: max(known[name].speed for name in group.members()) for group in groups}
        slower = [
            (name, speeds[group.name])
            for group in groups
            for name in group.members()
            if known[name].speed < speeds[group.name]
        ]
        if not slower:
            return groups, speeds
        for name, speed in slower:
            known[name] = known[name]._replace(speed=speed)


def _group(part: list[Mover]) -> Group:
    performers = [mover for mover in part if mover.performs]
    return Group(
        part[0].name,
        tuple(mover.name for mover in performers),
        tuple(mover.name for mover in part if not mover.performs),
        # What performers push doesn't bring its own levels along: a level is where its performers are.
        tuple(sorted({level for mover in performers or part for level in mover.levels})),
    )


class _Union:
    """Disjoint parts of 0, 1, 2, …; the root of each is its least number."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def root(self, number: int) -> int:
        parents = self._parents
        while (parent := parents[number]) != number:
            parents[number] = number = parents[parent]
        return number

    def join(self, one: int, other: int) -> None:
        one, other = self.root(one), self.root(other)
        self._parents[max(one, other)] = min(one, other)


def _join_by_levels(movers: list[Mover], union: _Union) -> None:
    first: dict[str, int] = {}
    for number, mover in enumerate(movers):
        if mover.performs:
            for level in mover.levels:
                union.join(first.setdefault(level, number), number)


_GrownBox = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


def _grown(mover: Mover, span_ns: int) -> _GrownBox:
    """Return the box that holds a mover for a while: the least and the greatest coordinate by axis."""
    (x, y, z), (x_half, y_half, z_half), speed = mover.center, mover.half, mover.speed
    if not isfinite(x + y + z + x_half + y_half + z_half + speed) or min(x_half, y_half, z_half, speed) < 0:
        _check(mover)  # Only now: it takes longer than all the rest.
    way = nextafter(nextafter(speed * span_ns, inf) / SECOND, inf)
    x_half, y_half, z_half = nextafter(x_half + way, inf), nextafter(y_half + way, inf), nextafter(z_half + way, inf)
    return (x - x_half, x + x_half), (y - y_half, y + y_half), (z - z_half, z + z_half)


def _check(mover: Mover) -> None:
    for what, figures, least in (
        ("center", mover.center, -inf),
        ("half", mover.half, 0.0),
        ("speed", (mover.speed,), 0.0),
    ):
        if not all(isfinite(figure) and figure >= least for figure in figures):
            raise ModelError(
                f"the {what} of {shown(mover.name)} is {shown(getattr(mover, what))}",
                advice="all figures must be finite, and sizes and speeds at least 0",
            )


def _join_by_boxes(boxes: list[_GrownBox], union: _Union) -> None:
    """Join all whose boxes touch, by a sweep along the axis on which they are spread most."""
    if not boxes:
        return
    spreads = [max(box[axis][0] for box in boxes) - min(box[axis][0] for box in boxes) for axis in range(3)]
    first = spreads.index(max(spreads))
    second, third = (axis for axis in range(3) if axis != first)
    swept: list[tuple[float, float, float, float, float, int]] = []  # Those that the sweep hasn't left behind.
    for start, number in sorted((box[first][0], number) for number, box in enumerate(boxes)):
        box = boxes[number]
        (_, stop), (low, high), (bottom, top) = box[first], box[second], box[third]
        swept = [other for other in swept if other[0] >= start]
        for _, other_low, other_high, other_bottom, other_top, other_number in swept:
            if other_low <= high and low <= other_high and other_bottom <= top and bottom <= other_top:
                union.join(other_number, number)
        swept.append((stop, low, high, bottom, top, number))
