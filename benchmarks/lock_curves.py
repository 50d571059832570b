"""How the arbiter's costs grow: per event over the number of participants and of topics, and per late subscription.

They should grow with what an event touches, and not with what there is. Whoever publishes to everybody touches
everybody (a clique), and so does a subscription to what anybody may publish (topics that aren't declared); all else
should be nearly level. It rises a little where there is more than fits into the processor's caches.

Microseconds of processor time, medians. `--picture FILE.svg` draws the curves; `--quick` leaves out the largest sizes.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lock import (
    PAYLOAD,
    STEP,
    Neighbors,
    Workload,
    clique,
    federation,
    grid,
    one_way_ring,
    passing,
    ring,
    spend,
    stepping,
)
from rich.console import Console
from rich.table import Table

from worldline.lock import Advance, Arbiter, Join, Publish, Subscribe, Subscription, Unsubscribe
from worldline.model import Network, Plan, link
from worldline.pictures.svg import FAINT, PALETTE, SOFT, document, element, path, text_at

REPEATS = 3
EVENTS = 20_000
ROUNDS = 1000
SIZES = (8, 32, 100, 320, 1000, 3200, 10_000)
CLIQUES = (8, 16, 32, 64, 125, 250, 500)
TOPICS = (1, 10, 100, 1000, 10_000, 50_000)
SUBSCRIBERS = (8, 32, 100, 250, 500)

Points = list[tuple[int, float]]
"""Sizes, and the microseconds at each."""


class Curve(NamedTuple):
    """A cost over a size."""

    name: str
    points: Points


class Panel(NamedTuple):
    """Curves over the same size."""

    title: str
    over: str
    curves: list[Curve]


# --- What is measured ---


def over_participants(largest: int) -> Panel:
    """Everybody steps and publishes to its neighbors, or sleeps until somebody wakes it by a message, and answers."""
    kinds: list[tuple[str, Callable[[int], Neighbors], Workload, Sequence[int]]] = [
        ("ring", ring, stepping, SIZES),
        ("grid", grid, stepping, SIZES),
        ("ring, asleep", ring, passing, SIZES),
        ("one-way ring, asleep", one_way_ring, passing, SIZES),
        ("clique: everybody to everybody", clique, stepping, CLIQUES),
    ]
    curves = [
        Curve(name, [(size, event_cost(make, size, work)) for size in sizes if size <= largest])
        for name, make, work, sizes in kinds
    ]
    return Panel("One event", "participants", curves)


def event_cost(make: Callable[[int], Neighbors], size: int, work: Workload) -> float:
    neighbors = make(size)
    events_made = work(federation(neighbors), list(neighbors))
    spend(events_made, 8 * size)
    events = max(EVENTS, 4 * size)
    return cost(lambda: spend(events_made, events), events)


def over_topics(largest: int) -> Panel:
    """One publishes on one of its topics at every step, another listens to all of them, a third comes and goes."""
    costs: dict[str, Points] = {}
    for count in (count for count in TOPICS if count <= largest):
        topics = tuple(f"t{number}" for number in range(count))
        arbiter = joined({"a": Join(topics, ()), "b": Join((), subscriptions(topics)), "c": Join((), ())})
        for topic in topics:
            arbiter.hear("a", [Publish(topic, PAYLOAD, 0)])
        round_of_three = rounds(arbiter, topics)
        spend(round_of_three, ROUNDS)
        measured = {
            "a step: publish, and all advance": cost(lambda made=round_of_three: spend(made, ROUNDS), ROUNDS),
            "a late subscription, and its end": cost(lambda: come_and_go(arbiter, topics), ROUNDS),  # noqa: B023
        }
        for name, value in measured.items():
            costs.setdefault(name, []).append((count, value))
    return Panel("One step, and one late subscription", "topics", [Curve(*curve) for curve in costs.items()])


def rounds(arbiter: Arbiter, topics: Sequence[str]) -> Iterator[int]:
    now = number = 0
    while True:
        arbiter.hear("a", [Publish(topics[scattered(number, topics)], PAYLOAD, now), Advance(now + STEP)])
        for name in ("b", "c"):
            arbiter.hear(name, [Advance(now + STEP)])
        now, number = now + STEP, number + 1
        yield 1


def come_and_go(arbiter: Arbiter, topics: Sequence[str]) -> None:
    now = arbiter.members["c"].now
    for number in range(ROUNDS):
        topic = topics[scattered(number, topics)]
        arbiter.hear("c", [Subscribe(Subscription(topic), now, now)])
        arbiter.hear("c", [Unsubscribe(topic, now, now)])


def scattered(number: int, things: Sequence[object]) -> int:
    """Return the place of one of some things, far from that of the number before."""
    return number * 7919 % len(things)


def over_subscribers(largest: int) -> Panel:
    """All have started, and subscribe only then: each to its neighbor, or each to everybody in one frame."""

    def to_neighbor(names: list[str], place: int) -> list[Subscribe]:
        return [Subscribe(Subscription(names[place - 1]), 0, 0)]

    def to_all(names: list[str], place: int) -> list[Subscribe]:
        return [Subscribe(Subscription(name), 0, 0) for name in names if name != names[place]]

    kinds = (
        ("to a neighbor's topic", to_neighbor, True),
        ("to everybody's topics at once", to_all, True),
        ("to a topic that anybody may publish on", to_neighbor, False),
    )
    curves = [
        Curve(name, [(size, late_cost(size, wishes, declared)) for size in SUBSCRIBERS if size <= largest])
        for name, wishes, declared in kinds
    ]
    return Panel("One late subscription, when everybody makes one", "participants", curves)


def late_cost(size: int, wishes: Callable[[list[str], int], list[Subscribe]], declared: bool) -> float:
    names = list(ring(size))
    taken = []
    for _ in range(REPEATS):
        arbiter = joined({name: Join((name,) if declared else None, ()) for name in names})
        frames = [(name, wishes(names, place)) for place, name in enumerate(names)]
        taken.append(cost(lambda: [arbiter.hear(*frame) for frame in frames], 1, 1))  # noqa: B023
    return statistics.median(taken) / sum(len(events) for _, events in frames)


def joined(joins: dict[str, Join]) -> Arbiter:
    arbiter = Arbiter(Plan(roster=tuple(joins), network=Network(default=link(STEP))))
    for name, join in joins.items():
        arbiter.handle(name, join)
    return arbiter


def subscriptions(topics: Sequence[str]) -> tuple[Subscription, ...]:
    return tuple(Subscription(topic) for topic in topics)


def cost(work: Callable[[], object], units: int, repeats: int = REPEATS) -> float:
    """Return the microseconds that a unit of some work takes."""
    taken = []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) / units * 1e6)
    return statistics.median(taken)


# --- What is shown ---


def tell(console: Console, panel: Panel) -> None:
    table = Table(title=f"{panel.title} (µs), over {panel.over}")
    table.add_column("")
    sizes = sorted({size for curve in panel.curves for size, _ in curve.points})
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for curve in panel.curves:
        found = dict(curve.points)
        table.add_row(curve.name, *(f"{found[size]:.1f}" if size in found else "" for size in sizes))
    console.print(table)


_WIDTH, _LEFT, _RIGHT, _TOP = 960.0, 70.0, 270.0, 96.0
_PANEL, _GAP, _BOTTOM = 200.0, 84.0, 56.0
_END = _WIDTH - _RIGHT
_ROW = 19.0


def draw(panels: list[Panel]) -> str:
    title = "What the arbiter's work costs, over what there is"
    parts = [
        text_at(_LEFT, 36, title, size=19),
        text_at(_LEFT, 58, "µs of processor time, both axes logarithmic", size=13, fill=SOFT),
    ]
    for place, panel in enumerate(panels):
        parts += _drawn(panel, _TOP + place * (_PANEL + _GAP))
    height = _TOP + len(panels) * (_PANEL + _GAP) - _GAP + _BOTTOM
    return document(_WIDTH, height, parts, kind="curves", title=title)


def _drawn(panel: Panel, top: float) -> Iterator[str]:
    points = [point for curve in panel.curves for point in curve.points]
    across = _Axis([size for size, _ in points], _LEFT, _END)
    up = _Axis([value for _, value in points], top + _PANEL, top)
    yield text_at(_LEFT, top - 12, f"{panel.title}, µs", size=13)
    for value in across.powers:
        yield path(((across(value), top), (across(value), top + _PANEL)), stroke=FAINT, stroke_width=0.7)
        yield text_at(across(value), top + _PANEL + 17, f"{value:,}", size=11, fill=SOFT, text_anchor="middle")
    for value in up.powers:
        yield path(((_LEFT, up(value)), (_END, up(value))), stroke=FAINT, stroke_width=0.7)
        yield text_at(_LEFT - 8, up(value) + 4, f"{value:,}", size=11, fill=SOFT, text_anchor="end")
    yield text_at((_LEFT + _END) / 2, top + _PANEL + 36, panel.over, size=12, fill=SOFT, text_anchor="middle")
    for place, (curve, color) in enumerate(zip(panel.curves, PALETTE, strict=False)):
        placed = [(across(size), up(value)) for size, value in curve.points]
        yield path(placed, fill="none", stroke=color, stroke_width=1.8)
        for x, y in placed:
            yield element("circle", cx=x, cy=y, r=2.6, fill=color)
        row = top + 12 + _ROW * place
        yield path(((_END + 14, row - 4), (_END + 38, row - 4)), stroke=color, stroke_width=1.8)
        yield text_at(_END + 46, row, curve.name, size=12)


class _Axis:
    """A logarithmic axis from one pixel to another, from 1 to a power of ten above all values."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.powers = [1, 10]
        while self.powers[-1] < max(values):
            self.powers.append(self.powers[-1] * 10)
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        steps = len(self.powers) - 1
        return self._begin + math.log10(max(1.0, value)) / steps * (self._end - self._begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="where to draw it, as SVG")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 of everything")
    options = parser.parse_args()
    largest = 1000 if options.quick else 50_000
    console = Console(width=120, highlight=False)
    panels = []
    for measured in (over_participants, over_topics, over_subscribers):
        panels.append(measured(largest))
        tell(console, panels[-1])
    if options.picture is not None:
        options.picture.write_text(draw(panels), encoding="utf-8")
        print(f"the picture is {options.picture}")


if __name__ == "__main__":
    main()
