"""Draws a topology, and the routes that lead through it to one node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from worldline.model.errors import ConfigurationError
from worldline.model.text import counted
from worldline.nodes.topology import Edge, Topology
from worldline.pictures import svg
from worldline.pictures.nodes.layout import bends_around, framed
from worldline.pictures.sheet import Sheet
from worldline.pictures.svg import Curve, LabelSpace, Point, Value

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
