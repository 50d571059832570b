"""Chooses where a topology's nodes stand in its picture, how large they are, and which way edges take around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from worldline.drawing.labels import Disc, LabelSpace
from worldline.drawing.plane import Curve, Point, at_origin, between, distance, on_curve
from worldline.nodes.pictures.layout import apart, arranged
from worldline.nodes.topology import Edge, Topology

_MARGIN = 30.0
_SHORTEST, _LONGEST = 300.0, 1350.0  # The longer side, before the margins.
_TREE_ASPECT = 2.2
_BENT_UP_TO = 3_000  # Edges.


class TopologyLayout(NamedTuple):
    """Where everything is, in pixels, without title and caption."""

    places: list[Point]
    radius: float
    width: float
    height: float


def framed(topology: Topology, around: float, outside: float) -> TopologyLayout:
    """Choose places and sizes: nodes as large as their number allows, and none over another.

    `around` is the room for labels between nodes, in radiuses, `outside` the width of what is beyond the outermost.
    """
    given = topology.positions
    is_given = given is not None and not _coincide(given)
    places = at_origin(given if given is not None and is_given else arranged(topology))
    if is_given and len(topology.weights) == topology.num_nodes - 1:
        places = _stretched(places)
    n = topology.num_nodes
    radius = 17.0 if n <= 12 else 14.0 if n <= 40 else 11.0 if n <= 120 else 8.5 if n <= 500 else 5.0
    extent = _extent(places)
    scale = radius * (3.0 + (around if is_given or n <= 40 else 0.0)) / _usual_gap(places) if n > 1 else 1.0
    if extent > 0:
        scale = max(min(scale, _LONGEST / extent), min(_SHORTEST / extent, 5 * scale))
    spread = [(x * scale, y * scale) for x, y in places]
    gap = _usual_gap(spread) if n > 1 else 4 * radius
    # Where some stand close together they are pushed apart: all needn't be as small as that for it.
    roomy = 0.17 * math.sqrt(scale * scale * _area(places) / n)
    radius = max(2.0, min(radius, max(gap * 0.36, roomy)))
    spread = at_origin(apart(spread, radius * 2.7))
    margin = _MARGIN + radius + outside
    width = max(x for x, _ in spread) + 2 * margin
    height = max(y for _, y in spread) + 2 * margin
    return TopologyLayout([(x + margin, y + margin) for x, y in spread], radius, width, height)


def _area(places: Sequence[Point]) -> float:
    return max(x for x, _ in places) * max(y for _, y in places)


def _stretched(places: Sequence[Point]) -> list[Point]:
    """Make a tree higher that would be flat; how far levels are from each other means nothing."""
    width, height = max(x for x, _ in places), max(y for _, y in places)
    factor = max(1.0, width / (_TREE_ASPECT * height)) if height > 1e-9 else 1.0
    return [(x, y * factor) for x, y in places]


def _coincide(places: Sequence[Point]) -> bool:
    """Whether two nodes would stand on the same spot, as far as anybody can see."""
    moved = at_origin(places)
    grain = max(_extent(moved), 1e-9) * 1e-6
    return len({(round(x / grain), round(y / grain)) for x, y in moved}) < len(moved)


def _extent(places: Sequence[Point]) -> float:
    """Return the longer side of what begins at (0, 0)."""
    return max(max(point) for point in places)


def _usual_gap(places: Sequence[Point]) -> float:
    """Return how far nodes usually are from the nearest other: fewer than one in ten has less room."""
    ordered = sorted(places)
    gaps = []
    for place, (x, _) in enumerate(ordered):
        nearest = math.inf
        for step in (1, -1):
            other = place + step
            while 0 <= other < len(ordered) and abs(ordered[other][0] - x) < nearest:
                nearest = min(nearest, distance(ordered[other], ordered[place]))
                other += step
        gaps.append(nearest)
    return max(sorted(gaps)[len(gaps) // 10], 1e-9)


def bends_around(frame: TopologyLayout, edges: Sequence[Edge], room: LabelSpace) -> dict[Edge, Point]:
    """Return control points for edges that would run over other nodes, so that they go around these."""
    if len(edges) > _BENT_UP_TO:
        return {}
    found: dict[Edge, Point] = {}
    for edge in edges:
        start, end = frame.places[edge[0]], frame.places[edge[1]]
        length = distance(start, end)
        for aside in (0.0, 2.4, -2.4, 3.6, -3.6, 5.0, -5.0):
            if abs(aside) * frame.radius <= length * 0.4:
                share = aside * frame.radius / length
                x, y = between(start, end, 0.5)
                bend = x - (end[1] - start[1]) * share, y + (end[0] - start[0]) * share
                if _is_clear((start, bend, end), frame.radius, room):
                    if aside:
                        found[edge] = bend
                    break
    return found


def _is_clear(curve: Curve, radius: float, room: LabelSpace) -> bool:
    """Whether a curve touches no nodes but those at its ends."""
    length = distance(curve[0], curve[2])
    count = math.ceil(length / (radius * 0.9))
    near = radius * 1.9 / (length or 1.0)
    return all(
        room.clearance(Disc(*on_curve(curve, place / count), radius * 0.15)) >= 0
        for place in range(1, count)
        if near < place / count < 1 - near
    )
