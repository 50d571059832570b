"""The time axis: how wide it is, and what is written at it."""

from __future__ import annotations

from itertools import pairwise

from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US
from worldline.nodes.pictures.happenings import Story

WIDTH_MAX = 6_000
_NARROWEST = 820.0

_UNITS = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", MS), ("µs", US), ("ns", NS))


def width_of(story: Story, num_nodes: int, for_labels: float) -> float:
    """Choose a width: wide enough for what happens soon after each other, and for labels, but not without end."""
    times = _times(story)
    events = sum(map(len, times))
    gaps = sorted(later - earlier for own in times for earlier, later in pairwise(own))
    # A quarter of them may be closer than this: what happens in bursts can't all be drawn out.
    for_events = 10 * (story.end - story.begin) / gaps[len(gaps) // 4] if gaps else 0.0
    # How many messages go from one lifeline to the next, or past it, on average.
    crossing = sum(abs(each.sender - each.receiver) for each in story.messages) / max(1, num_nodes - 1)
    wanted = max(for_events, 18.0 * crossing, for_labels, _NARROWEST)
    return float(round(min(wanted, _NARROWEST + 6.0 * events, WIDTH_MAX)))


def _times(story: Story) -> list[list[int]]:
    """Return when something happens to a node, for each to whom something does."""
    times: dict[int, dict[int, None]] = {}
    for message in story.messages:
        times.setdefault(message.sender, {})[message.sent] = None
        if message.end is not None and message.end <= story.end:
            times.setdefault(message.receiver, {})[message.end] = None
    for mark in story.marks:
        if mark.node is not None:
            times.setdefault(mark.node, {})[mark.at] = None
    return [sorted(own) for own in times.values()]


def ticks(begin: int, end: int, most: float) -> tuple[str, int, int]:
    """Return the unit of a time axis, its size, and how far its ticks are apart: 1, 2 or 5 of some power of ten."""
    unit, size = next(((unit, size) for unit, size in _UNITS if end >= 2 * size), _UNITS[-1])
    least = max(1.0, (end - begin) / max(1.0, most))
    step = size
    while step > least and step % 10 == 0:
        step //= 10
    while step < least:
        step *= 10
    for part in (5, 2):
        if step % part == 0 and step // part >= least:
            return unit, size, step // part
    return unit, size, step


def decimal(time: int, size: int) -> str:
    """Write a time in a unit, exactly, if it has up to nine digits behind the point."""
    return f"{time / size:.9f}".rstrip("0").rstrip(".")
