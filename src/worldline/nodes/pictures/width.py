"""Chooses how wide a diagram is."""

from __future__ import annotations

from itertools import pairwise

from worldline.nodes.pictures.happenings import NodesPicture

WIDTH_MAX = 6_000
_NARROWEST = 820.0


def width_of(story: NodesPicture, num_nodes: int, for_labels: float) -> float:
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


def _times(story: NodesPicture) -> list[list[int]]:
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
