"""Finds places for nodes in a picture, as far apart as they are in the graph, and ways for edges around them.

The stress of a picture is how much distances in it differ from those in the graph, where short ones count more. It is
brought down pair by pair: each pair in turn is moved toward the distance that it should have, first all the way, later
less and less, so that in the end all agree (Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient Descent").
In large graphs only neighbors are taken as pairs, and all nodes with some pivots, each of which stands for those
around it (Ortmann, Klimenta and Brandes, "A Sparse Stress Model").

Only sums, products and square roots are computed, which every machine rounds in the same way, and long sums by `fsum`,
as `sum` doesn't do the same in all versions of Python: the same graph has the same picture everywhere.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from worldline.model.randomness import Stream
from worldline.nodes.topology import Edge, Topology
from worldline.pictures.svg import Curve, LabelSpace, Point, at_origin, between, distance, on_curve

_ALL_PAIRS_UP_TO = 500
_PIVOTS_LEAST, _PIVOTS_MOST = 40, 100
_PIVOT_PULLS = 80_000  # Between least and most, as many pivots as make so many pulls.
_SLOWLY_UP_TO = 120
_COOLING_SLOWLY, _COOLING_FAST = 0.75, 0.5  # How much less pairs are moved from round to round.
_FINEST = 0.02  # When neighbors are moved by less than this share of what is missing, it is enough.
_ROUNDS_APART = 40
_GAP = 1.2  # Between components, where 1 is the length of an edge.
_ASPECT = 1.5


Pull = tuple[int, int, int, float, float]
"""Two nodes, the distance that they should have, and how much that matters to each of them."""


def arranged(topology: Topology) -> list[Point]:
    """Return a place for every node; edges are about 1 long, and components stand side by side."""
    places: list[Point] = [(0.0, 0.0)] * topology.num_nodes
    boxes = []
    for nodes in topology.components():
        numbers = {node: number for number, node in enumerate(nodes)}
        rows = [[numbers[neighbor] for neighbor in topology.neighbors[node]] for node in nodes]
        boxes.append((nodes, upright(connected_places(rows))))
    for nodes, corner, inside in packed(boxes):
        for node, (x, y) in zip(nodes, inside, strict=True):
            places[node] = (corner[0] + x, corner[1] + y)
    return places


# -- One component


def connected_places(rows: Sequence[Sequence[int]]) -> list[Point]:
    """Return places of the nodes of a connected graph, given their neighbors."""
    if len(rows) == 1:
        return [(0.0, 0.0)]
    draws = Stream(0, "picture", "layout")
    pulls = _all_pulls(rows) if len(rows) <= _ALL_PAIRS_UP_TO else _sparse_pulls(rows)
    # One order for all rounds, forth and back: it has to be without system, and drawing it takes as long as a round.
    draws.shuffle(pulls)
    xs = [draws.random() for _ in rows]
    ys = [draws.random() for _ in rows]
    cooling = _COOLING_SLOWLY if len(rows) <= _SLOWLY_UP_TO else _COOLING_FAST
    strength = 1.0 / min(matters for pull in pulls for matters in pull[3:] if matters > 0)
    while strength > _FINEST:
        _pull_together(xs, ys, pulls, strength)
        pulls.reverse()
        strength *= cooling
    return list(zip(xs, ys, strict=True))


def _pull_together(xs: list[float], ys: list[float], pulls: Sequence[Pull], strength: float) -> None:
    root = math.sqrt
    for a, b, wanted, matters_to_a, matters_to_b in pulls:
        x, y = xs[a] - xs[b], ys[a] - ys[b]
        apart = root(x * x + y * y) or 1e-9
        missing = (wanted - apart) / (2 * apart)
        share = strength * matters_to_a
        share = missing if share >= 1 else missing * share
        xs[a] += x * share
        ys[a] += y * share
        share = strength * matters_to_b
        share = missing if share >= 1 else missing * share
        xs[b] -= x * share
        ys[b] -= y * share


def _all_pulls(rows: Sequence[Sequence[int]]) -> list[Pull]:
    pulls: list[Pull] = []
    for a in range(len(rows)):
        distances = hops(rows, a)
        for b in range(a):
            matters = 1 / (distances[b] * distances[b])
            pulls.append((a, b, distances[b], matters, matters))
    return pulls


def _sparse_pulls(rows: Sequence[Sequence[int]]) -> list[Pull]:
    pulls: list[Pull] = [(a, b, 1, 1.0, 1.0) for a, row in enumerate(rows) for b in row if b < a]
    near = [frozenset(row) for row in rows]
    pivots, distances, nearest = _pivots(rows)
    for place, pivot in enumerate(pivots):
        own = sorted(distances[place][node] for node in range(len(rows)) if nearest[node] == place)
        for node, far in enumerate(distances[place]):
            if far and node not in near[pivot]:
                # Those that the pivot stands for, as far as it is nearer to them than the node is.
                pulls.append((node, pivot, far, bisect_right(own, far // 2) / (far * far), 0.0))
    return pulls


def _pivots(rows: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]], list[int]]:
    """Choose pivots far from each other; return them, the distances from each, and each node's nearest pivot."""
    pivots, distances = [0], [hops(rows, 0)]
    nearest = [0] * len(rows)
    least = list(distances[0])
    wanted = max(_PIVOTS_LEAST, min(_PIVOTS_MOST, _PIVOT_PULLS // len(rows)))
    while len(pivots) < wanted:
        farthest = max(range(len(rows)), key=lambda node: (least[node], -node))
        pivots.append(farthest)
        distances.append(hops(rows, farthest))
        for node, far in enumerate(distances[-1]):
            if far < least[node]:
                least[node], nearest[node] = far, len(pivots) - 1
    return pivots, distances, nearest


def hops(rows: Sequence[Sequence[int]], source: int) -> list[int]:
    """Return how many edges it is from one node to each; all must be reachable."""
    distances = [-1] * len(rows)
    distances[source] = 0
    reached = [source]
    for node in reached:  # Grows while it is walked.
        for neighbor in rows[node]:
            if distances[neighbor] < 0:
                distances[neighbor] = distances[node] + 1
                reached.append(neighbor)
    return distances


# -- Putting things in order


def upright(places: Sequence[Point]) -> list[Point]:
    """Turn places so that they spread from left to right, and move them to the corner (0, 0)."""
    n = len(places)
    middle_x, middle_y = math.fsum(x for x, _ in places) / n, math.fsum(y for _, y in places) / n
    moved = [(x - middle_x, y - middle_y) for x, y in places]
    xx, yy = math.fsum(x * x for x, _ in moved), math.fsum(y * y for _, y in moved)
    xy = math.fsum(x * y for x, y in moved)
    # The direction in which they spread most is that of the larger eigenvector of their covariances.
    turn_x = xx - yy + math.sqrt((xx - yy) * (xx - yy) + 4 * xy * xy)
    turn_y = 2 * xy
    length = math.sqrt(turn_x * turn_x + turn_y * turn_y)
    cosine, sine = (turn_x / length, turn_y / length) if length > 1e-9 * (xx + yy) else (0.0, 1.0)
    return at_origin([(x * cosine + y * sine, y * cosine - x * sine) for x, y in moved])


Box = tuple[list[int], list[Point]]


def packed(boxes: Sequence[Box]) -> list[tuple[list[int], Point, list[Point]]]:
    """Set boxes side by side, in rows, large ones first; return them with their corners."""
    ordered = sorted(boxes, key=lambda box: (-len(box[0]), box[0][0]))
    sizes = [(max(x for x, _ in inside) + _GAP, max(y for _, y in inside) + _GAP) for _, inside in ordered]
    room = math.sqrt(_ASPECT * math.fsum(width * height for width, height in sizes))
    across = max(room, max(width for width, _ in sizes))
    found = []
    x = y = row_height = 0.0
    for (nodes, inside), (width, height) in zip(ordered, sizes, strict=True):
        if x and x + width > across * 1.001:
            x, y, row_height = 0.0, y + row_height, 0.0
        found.append((nodes, (x, y), inside))
        x, row_height = x + width, max(row_height, height)
    return found


def apart(places: Sequence[Point], least: float) -> list[Point]:
    """Push nodes away from each other that are nearer than `least`, until none is, or for as long as it makes sense."""
    xs, ys = [x for x, _ in places], [y for _, y in places]
    for _ in range(_ROUNDS_APART):
        if not _push(xs, ys, least):
            break
    return list(zip(xs, ys, strict=True))


def _push(xs: list[float], ys: list[float], least: float) -> bool:
    cells: dict[tuple[int, int], list[int]] = {}
    pushed = False
    for node in range(len(xs)):
        column, row = math.floor(xs[node] / least), math.floor(ys[node] / least)
        near = [
            other
            for x in range(column - 1, column + 2)
            for y in range(row - 1, row + 2)
            for other in cells.get((x, y), ())
        ]
        for other in near:
            x, y = xs[node] - xs[other], ys[node] - ys[other]
            length = math.sqrt(x * x + y * y)
            if length < least * 0.999:
                pushed = True
                missing = least - length
                if length < least * 1e-6:
                    # At one place: every pair leaves it in a direction of its own.
                    x, y, missing = 1.0 + node % 7, 1.0 + other % 5 - 2.0 * (node % 2), least
                    length = math.sqrt(x * x + y * y)
                step = missing / (2 * length)
                xs[node], ys[node] = xs[node] + x * step, ys[node] + y * step
                xs[other], ys[other] = xs[other] - x * step, ys[other] - y * step
        cells.setdefault((column, row), []).append(node)
    return pushed


# Chooses where a topology's nodes stand in its picture, how large they are, and which way edges take around them.

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
    """Whether two nodes would stand on the same spot, as far as can be seen."""
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
        for offset in (0.0, 2.4, -2.4, 3.6, -3.6, 5.0, -5.0):
            if abs(offset) * frame.radius <= length * 0.4:
                share = offset * frame.radius / length
                x, y = between(start, end, 0.5)
                bend = x - (end[1] - start[1]) * share, y + (end[0] - start[0]) * share
                if _is_clear((start, bend, end), frame.radius, room):
                    if offset:
                        found[edge] = bend
                    break
    return found


def _is_clear(curve: Curve, radius: float, room: LabelSpace) -> bool:
    """Whether a curve touches no nodes but those at its ends."""
    length = distance(curve[0], curve[2])
    count = math.ceil(length / (radius * 0.9))
    near = radius * 1.9 / (length or 1.0)
    return all(
        room.clearance((*on_curve(curve, place / count), radius * 0.15)) >= 0
        for place in range(1, count)
        if near < place / count < 1 - near
    )
