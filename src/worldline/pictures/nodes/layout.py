"""Finds places for nodes that have none: so that as far apart in the picture as they are in the graph.

The stress of a picture is how much distances in it differ from those in the graph, where short ones count more. It is
brought down pair by pair: each pair in turn is moved toward the distance that it should have, first all the way, later
less and less, so that in the end all agree (Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient Descent").
In large graphs only neighbors are taken as pairs, and everybody with some pivots, each of which stands for those
around it (Ortmann, Klimenta and Brandes, "A Sparse Stress Model").

Only sums, products and square roots are computed, which every machine rounds in the same way, and long sums by `fsum`,
as `sum` doesn't do the same in all versions of Python: the same graph has the same picture everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from worldline.model.randomness import Stream
from worldline.nodes.topology import Topology
from worldline.pictures.plane import Point, at_origin

_ALL_PAIRS_UP_TO = 500
_PIVOTS_LEAST, _PIVOTS_MOST = 40, 100
_PIVOT_PULLS = 80_000  # Between least and most, as many pivots as make so many pulls.
_SLOWLY_UP_TO = 120
_COOLING_SLOWLY, _COOLING_FAST = 0.75, 0.5  # How much less pairs are moved from round to round.
_FINEST = 0.02  # When neighbors are moved by less than this share of what is missing, it is enough.
_ROUNDS_APART = 40
_GAP = 1.2  # Between components, where 1 is the length of an edge.
_ASPECT = 1.5


class Pull(NamedTuple):
    """Two nodes, the distance that they should have, and how much that matters to each of them."""

    a: int
    b: int
    distance: int
    matters_to_a: float
    matters_to_b: float


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
    strength = 1.0 / min(min(_positive(pull)) for pull in pulls)
    while strength > _FINEST:
        _pull_together(xs, ys, pulls, strength)
        pulls.reverse()
        strength *= cooling
    return list(zip(xs, ys, strict=True))


def _positive(pull: Pull) -> list[float]:
    return [matters for matters in (pull.matters_to_a, pull.matters_to_b) if matters > 0]


def _pull_together(xs: list[float], ys: list[float], pulls: Sequence[Pull], strength: float) -> None:
    root = math.sqrt
    for a, b, distance, matters_to_a, matters_to_b in pulls:
        x, y = xs[a] - xs[b], ys[a] - ys[b]
        apart = root(x * x + y * y) or 1e-9
        missing = (distance - apart) / (2 * apart)
        share = strength * matters_to_a
        share = missing if share >= 1 else missing * share
        xs[a] += x * share
        ys[a] += y * share
        share = strength * matters_to_b
        share = missing if share >= 1 else missing * share
        xs[b] -= x * share
        ys[b] -= y * share


def _all_pulls(rows: Sequence[Sequence[int]]) -> list[Pull]:
    pulls = []
    for a in range(len(rows)):
        distances = hops(rows, a)
        for b in range(a):
            matters = 1 / (distances[b] * distances[b])
            pulls.append(Pull(a, b, distances[b], matters, matters))
    return pulls


def _sparse_pulls(rows: Sequence[Sequence[int]]) -> list[Pull]:
    pulls = [Pull(a, b, 1, 1.0, 1.0) for a, row in enumerate(rows) for b in row if b < a]
    near = [frozenset(row) for row in rows]
    pivots, distances, nearest = _pivots(rows)
    for place, pivot in enumerate(pivots):
        own = sorted(distances[place][node] for node in range(len(rows)) if nearest[node] == place)
        within = _counts_up_to(own, max(distances[place]) // 2)
        for node, distance in enumerate(distances[place]):
            if distance and node not in near[pivot]:
                # Those whom the pivot stands for, as far as it is nearer to them than the node is.
                pulls.append(Pull(node, pivot, distance, within[distance // 2] / (distance * distance), 0.0))
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
        for node, distance in enumerate(distances[-1]):
            if distance < least[node]:
                least[node], nearest[node] = distance, len(pivots) - 1
    return pivots, distances, nearest


def _counts_up_to(values: Sequence[int], most: int) -> list[int]:
    """Return how many of the values are at most 0, 1, 2, ... `most`."""
    counts = [0] * (most + 1)
    for value in values:
        if value <= most:
            counts[value] += 1
    for place in range(most):
        counts[place + 1] += counts[place]
    return counts


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
            between = math.sqrt(x * x + y * y)
            if between < least * 0.999:
                pushed = True
                if between < least * 1e-6:
                    # At one place: every pair leaves it in a direction of its own.
                    x, y, between = 1.0 + node % 7, 1.0 + other % 5 - 2.0 * (node % 2), 0.0
                    length = math.sqrt(x * x + y * y)
                else:
                    length = between
                step = (least - between) / (2 * length)
                xs[node], ys[node] = xs[node] + x * step, ys[node] + y * step
                xs[other], ys[other] = xs[other] - x * step, ys[other] - y * step
        cells.setdefault((column, row), []).append(node)
    return pushed
