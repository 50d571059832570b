"""Draws a topology, and the routes that lead through it to one node."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from worldline.model.errors import ConfigurationError
from worldline.model.randomness import Stream
from worldline.model.text import counted
from worldline.nodes.topology import Edge, Topology
from worldline.pictures import svg
from worldline.pictures.sheet import Sheet
from worldline.pictures.svg import Curve, LabelSpace, Point, Value, at_origin, between, distance, on_curve

NODES_MAX = 5_000
EDGES_MAX = 30_000
"""More than that isn't drawn: it couldn't be seen, and viewers would take minutes."""

_IDS_UP_TO = 500
_DISTANCES_UP_TO = 200
_WEIGHTS_UP_TO = 200  # Edges.
_LINKS_UP_TO = 120  # Edges.
_LINK = 8.5  # The size of their numbers.
_HOVER_UP_TO = 3_000  # Edges.
_STUB = 20.0  # How far edges go that go around a torus.
_NARROWEST = 380.0

_ROUTE = "#0072b2"
_ROOT = "#08415c"
_NODE = "#e8eef4"
_LINK_INK = "#7a4a00"
# From near to far; black stands out on all of them.
_SHADES = ("#8fc7e8", "#a9d3ec", "#c1dff1", "#d5e9f5", "#e6f2f9")


class Routes(Struct, frozen=True):
    """How messages get to `root`: for each node the local link that they leave by, and how far it is, if known."""

    root: int
    links: Mapping[int, int]
    distances: Mapping[int, int]


def routes_to(root: int, tables: Sequence[Sequence[tuple[int | None, int | None]]]) -> Routes:
    """Take from routing tables, each node's distances and local links by goal, what concerns one goal."""
    entries = {node: table[root] for node, table in enumerate(tables)}
    return Routes(
        root,
        {node: link for node, (_, link) in entries.items() if link is not None and node != root},
        {node: distance for node, (distance, _) in entries.items() if distance is not None},
    )


def topology_svg(topology: Topology, *, routes: Routes | None = None, title: str = "") -> svg.Svg:
    """Draw a topology; with routes, what leads to their root stands out."""
    if topology.num_nodes > NODES_MAX:
        too_many = f"{topology.num_nodes:,} nodes and {len(topology.weights):,} edges are too many to draw."
        lines = [too_many, f"Pictures have up to {NODES_MAX:,} nodes."]
        return Sheet(title or topology.name, 480).text([], lines, 56, kind="topology", untitled="Topology")
    steps = _steps(topology, routes)
    return _Plot(topology, routes, steps, title or topology.name).text()


def _steps(topology: Topology, routes: Routes | None) -> dict[int, int]:
    """Return each node's next one on its route."""
    if routes is None:
        return {}
    found: dict[int, int] = {}
    for node, link in sorted(routes.links.items()):
        if not 0 <= node < topology.num_nodes or not 0 <= link < len(topology.neighbors[node]):
            raise ConfigurationError(f"a route leads from {node} over its link {link}, and there is no such link")
        found[node] = topology.neighbors[node][link]
    return found


class _Plot:
    def __init__(self, topology: Topology, routes: Routes | None, steps: Mapping[int, int], title: str) -> None:
        self.topology = topology
        self.routes = routes
        self.steps = steps
        self.title = title
        self.edges = topology.edges
        self.shows_ids = topology.num_nodes <= _IDS_UP_TO
        self.wraps = _wraps(topology)
        self.shows_weights = len(self.edges) <= _WEIGHTS_UP_TO and any(each != 1 for each in topology.weights.values())
        self.shows_links = 0 < len(self.edges) <= _LINKS_UP_TO
        self.shows_distances = routes is not None and topology.num_nodes <= _DISTANCES_UP_TO
        around = 2.4 if self.shows_weights else 1.6 if self.shows_links else 1.2 if self.shows_distances else 0.4
        self.frame = framed(topology, around, 24.0 if self.wraps else 0.0)
        self.room = LabelSpace()
        self.room.take((x, y, self.frame.radius) for x, y in self.frame.places)
        self.bends = bends_around(self.frame, [edge for edge in self.edges if edge not in self.wraps], self.room)
        self.shows_edges = len(self.edges) <= EDGES_MAX

    def text(self) -> svg.Svg:
        width = max(self.frame.width, _NARROWEST)
        links = self._link_numbers()  # They find their room first: they have to be at their ends.
        parts = (self._edges(), self._routes(), links, self._weights(), self._nodes(), self._distances())
        moved = f"translate({svg.number((width - self.frame.width) / 2)} 36)"
        return Sheet(self.title, width).text(
            [svg.element("g", (each for part in parts for each in part), transform=moved)],
            self._caption(),
            self.frame.height + 44,
            kind="topology",
            untitled="Topology",
            definitions=[svg.arrow_head(_ROUTE, self._head)] if self.steps else [],
            style=".worldline-topology .edge:hover{stroke:#d55e00;stroke-opacity:1;stroke-width:3}",
        )

    def _caption(self) -> list[str]:
        n, m = self.topology.num_nodes, len(self.edges)
        lines = [f"{counted(n, 'node')}, {counted(m, 'edge')}"]
        if not self.shows_edges:
            lines.append("These are too many edges to draw.")
        if self.shows_links:
            lines.append("At the ends of edges: numbers of local links.")
        if self.wraps:
            lines.append("Edges that leave at the border come in on the other side.")
        if self.routes is not None:
            root = self.routes.root
            lines.append(f"Arrows: the next step toward {root}.")
            lines.append("Small figures: distances. The nearer, the darker.")
            without = sum(node != root and node not in self.steps for node in range(n))
            if without:
                lines.append(f"{without:,} {'node has' if without == 1 else 'nodes have'} no route (dashed).")
        return lines

    # -- Edges

    @property
    def _head(self) -> float:
        return max(5.0, min(11.0, self.frame.radius * 0.85))

    def _edges(self) -> list[str]:
        if not self.shows_edges:
            return []
        used = {(min(a, b), max(a, b)) for a, b in self.steps.items()}
        light = [edge for edge in self.edges if edge not in used]
        # So many lines that they would be a dark mass are thin and let through what is under them.
        crowd = len(self.edges) / self.topology.num_nodes * (4 if self.topology.num_nodes > _IDS_UP_TO else 1)
        looks: dict[str, Value] = {
            "fill": "none",
            "stroke": svg.FAINT if self.routes is not None else "#8795a3",
            "stroke_width": 1.4 if crowd < 6 else 0.9,
            "stroke_opacity": max(0.18, min(1.0, 8 / max(crowd, 0.1))),
        }
        if len(self.edges) <= _HOVER_UP_TO:
            drawn = [
                svg.element("path", svg.hover(self._said(a, b)), class_="edge", d=self._line((a, b)))
                for a, b in light
                if (a, b) not in self.wraps
            ]
        else:
            drawn = [svg.element("path", d="".join(self._line(edge) for edge in light if edge not in self.wraps))]
        stubs = [part for edge in light if edge in self.wraps for part in self._stubs(edge)]
        return [svg.element("g", [*drawn, *stubs], **looks)]

    def _routes(self) -> list[str]:
        drawn: list[str] = []
        for a, b in sorted(self.steps.items()):
            if (min(a, b), max(a, b)) in self.wraps:
                drawn += self._stubs((a, b))
            else:
                said = svg.hover(f"{a} → {b}")
                drawn.append(
                    svg.element(
                        "path", said, class_="route", d=self._line((a, b)), marker_end=svg.arrow_end(_ROUTE, self._head)
                    )
                )
        width = max(1.2, min(2.6, self.frame.radius / 5))
        return [svg.element("g", drawn, fill="none", stroke=_ROUTE, stroke_width=width)] if drawn else []

    def _said(self, a: int, b: int) -> str:
        weight = self.topology.weight(a, b)
        return f"{a} – {b}" if weight == 1 else f"{a} – {b}, weight {weight}"

    def _line(self, edge: Edge) -> str:
        """Write the way from the border of one node to that of another, around others that stand in it."""
        start, end = self.frame.places[edge[0]], self.frame.places[edge[1]]
        bend = self.bends.get((min(edge), max(edge)))
        if bend is None:
            return svg.way((svg.toward(start, end, self.frame.radius), svg.toward(end, start, self.frame.radius + 0.8)))
        first, last = svg.toward(start, bend, self.frame.radius), svg.toward(end, bend, self.frame.radius + 0.8)
        points = " ".join(map(svg.number, (*bend, *last)))
        return f"{svg.way((first,))}Q{points}"

    def _stubs(self, edge: Edge) -> list[str]:
        """Draw an edge of a torus that goes around: a short line at either end, which says where it leads."""
        is_route = edge[0] in self.steps and self.steps[edge[0]] == edge[1]
        drawn = []
        for here, there, leaves in ((edge[0], edge[1], True), (edge[1], edge[0], False)):
            inner, outer = (self._outside(here, there, distance) for distance in (0.0, _STUB))
            points = (inner, outer) if leaves or not is_route else (outer, inner)
            said = svg.hover(f"{edge[0]} → {edge[1]}" if is_route else self._said(*edge))
            looks: dict[str, Value | None] = {
                "class_": "route" if is_route else "edge",
                "stroke_dasharray": None if is_route else "4 3",
                "marker_end": svg.arrow_end(_ROUTE, self._head) if is_route else None,
            }
            drawn.append(svg.element("path", said, d=svg.way(points), **looks))
            self.room.take(svg.line_discs((inner, outer), 1.5))
            if self.shows_ids:
                x, y = self._outside(here, there, _STUB + 8)
                color = _ROUTE if is_route else svg.SOFT
                drawn.append(svg.text_at(x, y + 3, str(there), size=9, fill=color, stroke="none", text_anchor="middle"))
                self.room.take(svg.text_discs((x, y), svg.text_width(str(there), 9), 9))
        return drawn

    def _outside(self, here: int, there: int, distance: float) -> Point:
        """Return the point so far from a node's border that is opposite to where the other one is."""
        start = self.frame.places[here]
        x, y = (start[axis] - self.frame.places[there][axis] for axis in (0, 1))
        distance += self.frame.radius
        if abs(x) > abs(y):
            return start[0] + math.copysign(distance, x), start[1]
        return start[0], start[1] + math.copysign(distance, y)

    def _link_numbers(self) -> list[str]:
        """Write at each end of an edge under which number the node there knows it: on the line, where there is room."""
        if not self.shows_links:
            return []
        drawn = []
        for edge in self.edges:
            for here, there in (edge, edge[::-1]):
                text = str(self.topology.neighbors[here].index(there))
                spot = self._spot_of_link(here, there, text)
                if spot is not None:
                    radius = _LINK * 0.62 + (len(text) - 1) * 2.2
                    back = svg.element("circle", cx=spot[0], cy=spot[1], r=radius, fill=svg.PAPER)
                    said = svg.hover(f"link {text} of {here}, to {there}")
                    label = svg.text_at(spot[0], spot[1] + _LINK * 0.36, text, size=_LINK)
                    drawn.append(svg.element("g", (said, back, label), class_="link"))
        return [svg.element("g", drawn, class_="links", text_anchor="middle", fill=_LINK_INK)]

    def _spot_of_link(self, here: int, there: int, text: str) -> Point | None:
        """Find the nearest place to a node, on the line of a link, that covers no other label or node."""
        width = svg.text_width(text, _LINK)
        head = self._head if self.steps.get(there) == here else 0.0  # An arrow that ends here isn't covered.
        near = self.frame.radius + 3.0 + max(width, _LINK) / 2 + head
        if (min(here, there), max(here, there)) in self.wraps:
            spots = [self._outside(here, there, near - self.frame.radius)]
        else:
            curve = self._curve((min(here, there), max(here, there)))
            length = svg.distance(curve[0], curve[2])
            shares = [(near + step) / length for step in (0.0, 3.0, 6.0, 10.0, 14.0, 19.0)]
            spots = [svg.on_curve(curve, share if here < there else 1 - share) for share in shares if share < 0.5]
        discs = {spot: svg.text_discs(spot, width, _LINK) for spot in spots}
        free = next((spot for spot, taken in discs.items() if self.room.is_free(taken)), None)
        if free is not None:
            self.room.take(discs[free])
        return free

    def _weights(self) -> list[str]:
        """Write the weights beside the middle of edges, or where there is room."""
        if not self.shows_weights:
            return []
        drawn = []
        for edge in self.edges:
            text = str(self.topology.weights[edge])
            drawn += [svg.text_at(x, y + 3.5, text, size=10) for x, y in self._spots(edge, svg.text_width(text, 10))]
        return svg.haloed(drawn, class_="weights", text_anchor="middle", fill="#52606d")

    def _spots(self, edge: Edge, width: float) -> list[Point]:
        """Find where a label of this edge covers nothing and is as far as possible from other edges."""
        if edge in self.wraps:
            return [self._outside(here, there, _STUB * 0.45) for here, there in (edge, edge[::-1])]
        spots = [svg.on_curve(self._curve(edge), share) for share in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)]
        free = [spot for spot in spots if self.room.is_free(svg.text_discs(spot, width, 11))]
        if not free:
            return []
        best = max(free, key=lambda spot: min(9.0, self._distance_from_others(spot, edge)))
        self.room.take(svg.text_discs(best, width, 11))
        return [best]

    def _distance_from_others(self, spot: Point, edge: Edge) -> float:
        lines = [(self.frame.places[a], self.frame.places[b]) for a, b in self.edges if (a, b) != edge]
        return min((svg.distance_from_line(spot, *line) for line in lines), default=math.inf)

    def _curve(self, edge: Edge) -> Curve:
        start, end = (self.frame.places[each] for each in edge)
        return start, self.bends.get(edge, svg.between(start, end, 0.5)), end

    # -- Nodes

    def _nodes(self) -> list[str]:
        drawn = []
        radius = self.frame.radius
        digits = len(str(self.topology.num_nodes - 1))
        size = min(13.0, 1.75 * radius / max(1.7, 0.62 * digits))
        for node, (x, y) in enumerate(self.frame.places):
            fill, stroke, ink = self._colors(node)
            lost = self.routes is not None and node != self.routes.root and node not in self.steps
            dash = "3 2" if lost else None
            circle = svg.element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=stroke, stroke_dasharray=dash)
            shown = self.shows_ids and size >= 5
            label = svg.text_at(x, y + size * 0.36, str(node), size=size, fill=ink) if shown else ""
            drawn.append(svg.element("g", (svg.hover(self._described(node)), circle, label), class_="node"))
        return [svg.element("g", drawn, text_anchor="middle", stroke_width=max(0.7, min(1.4, radius / 8)))]

    def _colors(self, node: int) -> tuple[str, str, str]:
        """Return the colors of a node's inside, of its border and of its id."""
        if self.routes is None:
            return _NODE, "#52606d", svg.INK
        if node == self.routes.root:
            return _ROOT, _ROOT, svg.PAPER
        if node not in self.steps:
            return svg.PAPER, svg.SOFT, svg.SOFT
        far = max(1, *self.routes.distances.values(), 1)
        share = self.routes.distances.get(node, far) / far
        return _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))], _ROUTE, svg.INK

    def _described(self, node: int) -> str:
        links = ", ".join(f"{link}-{each}" for link, each in enumerate(self.topology.neighbors[node]))
        said = f"node {node}; links: {links}" if links else f"node {node}; no links"
        if self.routes is not None and node in self.routes.distances:
            said = f"{said}; distance to {self.routes.root}: {self.routes.distances[node]}"
        return said

    def _distances(self) -> list[str]:
        """Write each node's distance beside it, where it is least in the way."""
        if self.routes is None or not self.shows_distances:
            return []
        size = 10.0 if self.frame.radius > 9 else 8.5
        for a, b in self.steps.items():
            self.room.take(svg.line_discs((self.frame.places[a], self.frame.places[b]), 1.5))
        drawn = []
        for node, (x, y) in enumerate(self.frame.places):
            if node == self.routes.root or node not in self.routes.distances:
                continue
            text = str(self.routes.distances[node])
            width = svg.text_width(text, size)
            out = self.frame.radius + 2 + size * 0.5
            spots = [(x + dx * (out + (width - size * 0.6) / 2), y + dy * out) for dx, dy in _AROUND]
            best = max(spots, key=lambda spot: min(map(self.room.clearance, svg.text_discs(spot, width, size))))
            self.room.take(svg.text_discs(best, width, size))
            drawn.append(svg.text_at(best[0], best[1] + size * 0.36, text, size=size))
        return svg.haloed(drawn, class_="distances", text_anchor="middle", font_weight=600, fill=_ROOT)


_AROUND = ((0.75, -0.75), (-0.75, -0.75), (0.75, 0.75), (-0.75, 0.75), (1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0))


def _wraps(topology: Topology) -> frozenset[Edge]:
    """Return the edges of a torus that go around it; drawn straight, they would run over all of a row."""
    if not topology.name.startswith("torus:") or topology.positions is None:
        return frozenset()
    places = topology.positions
    return frozenset(
        (a, b) for a, b in topology.edges if abs(places[a][0] - places[b][0]) + abs(places[a][1] - places[b][1]) > 1.5
    )


# Finds places for nodes in a picture, as far apart as they are in the graph, and ways for edges around them.
#
# The stress of a picture is how much distances in it differ from those in the graph, where short ones count more. It
# is brought down pair by pair: each pair in turn is moved toward the distance that it should have, first all the way,
# later less and less, so that in the end all agree (Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient
# Descent"). In large graphs only neighbors are taken as pairs, and all nodes with some pivots, each of which stands for
# those around it (Ortmann, Klimenta and Brandes, "A Sparse Stress Model").
#
# Only sums, products and square roots are computed, which every machine rounds in the same way, and long sums by
# `fsum`, as `sum` doesn't do the same in all versions of Python: the same graph has the same picture everywhere.

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
