"""Topologies as people write them: ``"grid:4x5"``, ``"random:20,p=0.2"``, ``"0-1,0-2"``, a file, a networkx graph."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from worldline.model.errors import ConfigurationError, shown
from worldline.model.randomness import Stream
from worldline.nodes.topology import EDGES_MAX, NODES_MAX, Edge, Topology, of_adjacency, of_graph

_HARDLY = 1e-15  # An edge that exists with a lower probability than this doesn't; networkx divides by it.

Positions = list[tuple[float, float]]


def clique(n: int) -> Topology:
    """Every node has a link to every other."""
    _at_least(1, n, "nodes in a clique")
    _check_edges(n * (n - 1) / 2)
    return Topology([[b for b in range(n) if b != a] for a in range(n)], positions=_circle(n), name=f"clique:{n}")


def ring(n: int) -> Topology:
    """Each has a link to the one before it, local link 0, and to the one after it, local link 1."""
    _at_least(3, n, "nodes in a ring")
    return Topology([[(a - 1) % n, (a + 1) % n] for a in range(n)], positions=_circle(n), name=f"ring:{n}")


def line(n: int) -> Topology:
    """A ring that is open between the last and the first."""
    _at_least(1, n, "nodes in a line")
    positions = [(float(a), 0.0) for a in range(n)]
    return Topology.of_edges(n, [(a, a + 1) for a in range(n - 1)], positions=positions, name=f"line:{n}")


def star(n: int) -> Topology:
    """Node 0 in the middle has a link to each of the others."""
    _at_least(1, n, "nodes in a star")
    positions = [(0.0, 0.0), *_circle(n - 1)]
    return Topology.of_edges(n, [(0, a) for a in range(1, n)], positions=positions, name=f"star:{n}")


def tree(n: int, arity: int = 2) -> Topology:
    """A complete tree with root 0; every node has up to `arity` children."""
    _at_least(1, n, "nodes in a tree")
    _at_least(1, arity, "children")
    edges = [((a - 1) // arity, a) for a in range(1, n)]
    return Topology.of_edges(n, edges, positions=_layers(n, arity), name=f"tree:{n},arity={arity}")


def grid(rows: int, columns: int) -> Topology:
    """Rows and columns; each has links to those beside, above and below it."""
    _at_least(1, rows, "rows")
    _at_least(1, columns, "columns")
    _check_edges(2 * rows * columns)
    edges = []
    for a in range(rows * columns):
        if (a + 1) % columns:
            edges.append((a, a + 1))
        if a + columns < rows * columns:
            edges.append((a, a + columns))
    positions = [(float(a % columns), float(a // columns)) for a in range(rows * columns)]
    return Topology.of_edges(rows * columns, edges, positions=positions, name=f"grid:{rows}x{columns}")


def torus(rows: int, columns: int) -> Topology:
    """A grid whose last row and column are linked with its first ones."""
    _at_least(3, rows, "rows")
    _at_least(3, columns, "columns")
    _check_edges(2 * rows * columns)
    n = rows * columns
    edges = [(a, a // columns * columns + (a + 1) % columns) for a in range(n)]
    edges += [(a, (a + columns) % n) for a in range(n)]
    positions = [(float(a % columns), float(a // columns)) for a in range(n)]
    return Topology.of_edges(n, edges, positions=positions, name=f"torus:{rows}x{columns}")


def hypercube(dimension: int) -> Topology:
    """2^d nodes; two have a link if their numbers differ in one binary digit, which is the number of the link too."""
    if not 0 <= dimension <= 20:
        raise ConfigurationError(f"a hypercube of {shown(dimension)} dimensions can't be made", advice="use 0 to 20")
    n = 2**dimension
    neighbors = [[a ^ (1 << digit) for digit in range(dimension)] for a in range(n)]
    return Topology(neighbors, positions=_projected(dimension), name=f"hypercube:{dimension}")


# -- Drawn by the seed. networkx has these in their usual form; it is loaded only if one is asked for.


def random(n: int, *, p: float | None = None, degree: float | None = None, seed: int = 0) -> Topology:
    """Erdős–Rényi: every edge exists with probability p, or so that nodes have `degree` neighbors on average."""
    _at_least(1, n)
    if (p is None) == (degree is None):
        raise ConfigurationError(
            "a random topology needs p or a degree", advice="random:20,p=0.2 or random:20,degree=4"
        )
    chance = p if p is not None else degree / max(1, n - 1)  # type: ignore[operator]
    if not 0 <= chance <= 1:
        raise ConfigurationError(f"edges can't exist with probability {chance:g}", advice="use 0 to 1")
    _check_edges(chance * n * (n - 1) / 2)
    name = f"random:{n},p={p!r}" if p is not None else f"random:{n},degree={degree!r}"
    if chance < _HARDLY:
        return Topology([[] for _ in range(n)], name=name)
    return _drawn(name, seed, lambda nx, draws: nx.fast_gnp_random_graph(n, chance, seed=draws))


def scale_free(n: int, *, m: int = 2, seed: int = 0) -> Topology:
    """Barabási–Albert: each new node has m links, to old ones that have many already."""
    if not 1 <= m < n:
        raise ConfigurationError(f"{n} nodes can't have {m} links each to older ones", advice="use 1 ≤ m < n")
    _check_edges(n * m)
    return _drawn(f"scale-free:{n},m={m}", seed, lambda nx, draws: nx.barabasi_albert_graph(n, m, seed=draws))


def small_world(n: int, *, k: int = 4, p: float = 0.1, seed: int = 0) -> Topology:
    """Watts–Strogatz: a ring with links to the k nearest, each of which leads elsewhere with probability p."""
    if not 2 <= k < n or k % 2 or not 0 <= p <= 1:
        raise ConfigurationError(
            f"there is no small world with n={n}, k={k}, p={p:g}", advice="use an even k, 2 ≤ k < n, and 0 ≤ p ≤ 1"
        )
    _check_edges(n * k / 2)
    return _drawn(
        f"small-world:{n},k={k},p={p!r}", seed, lambda nx, draws: nx.watts_strogatz_graph(n, k, p, seed=draws)
    )


def geometric(n: int, *, radius: float, seed: int = 0) -> Topology:
    """Nodes anywhere in a square of side 1; those that are no further apart than the radius have a link."""
    _at_least(1, n)
    _check_edges(n * (n - 1) / 2)  # So many distances are looked at.
    if not 0 <= radius <= 2:
        raise ConfigurationError(f"{radius:g} isn't a radius", advice="use 0 to 1.5: the square's side is 1")
    draws = Stream(seed, "topology", "positions")
    places = [(draws.random(), draws.random()) for _ in range(n)]
    name = f"geometric:{n},radius={radius!r}"
    # Not networkx's own, which compares distances in another way where scipy is installed.
    edges = [
        (a, b)
        for a, (ax, ay) in enumerate(places)
        for b, (bx, by) in enumerate(places[a + 1 :], a + 1)
        if (ax - bx) * (ax - bx) + (ay - by) * (ay - by) <= radius * radius
    ]
    return Topology.of_edges(n, edges, positions=places, name=name)


# -- What can be done to any of them


def connected(topology: Topology, *, seed: int = 0) -> Topology:
    """Join what isn't connected by as few additional edges as possible, from and to nodes that the seed draws."""
    groups = topology.components()
    if len(groups) == 1:
        return topology
    draws = Stream(seed, "topology", "bridges")
    rows = [list(row) for row in topology.neighbors]
    joined = groups[0]
    for group in groups[1:]:
        a, b = draws.choice(joined), draws.choice(group)
        rows[a].append(b)
        rows[b].append(a)
        joined = joined + group
    return _rewired(topology, rows, topology.weights, _named(topology, "connected"))


def shuffled(topology: Topology, *, seed: int = 0) -> Topology:
    """Give the nodes other numbers, as the seed draws them: the shape stays, also the order of local links."""
    numbers = list(range(topology.num_nodes))
    Stream(seed, "topology", "numbers").shuffle(numbers)
    rows: list[list[int]] = [[] for _ in numbers]
    for node, row in enumerate(topology.neighbors):
        rows[numbers[node]] = [numbers[neighbor] for neighbor in row]
    weights = {_sorted(numbers[a], numbers[b]): weight for (a, b), weight in topology.weights.items()}
    positions = topology.positions
    if positions is not None:
        places = sorted(zip(numbers, positions, strict=True))
        positions = tuple(place for _, place in places)
    return Topology(rows, weights=weights, positions=positions, name=_named(topology, "shuffled"))


def weighted(topology: Topology, least: int, most: int, *, distinct: bool = False, seed: int = 0) -> Topology:
    """Give every edge a whole weight between `least` and `most`; `distinct` ones if there are enough."""
    if not 0 <= least <= most:
        raise ConfigurationError(f"weights from {least} to {most} can't be drawn", advice="use 0 ≤ least ≤ most")
    edges = topology.edges
    draws = Stream(seed, "topology", "weights")
    if distinct:
        if most - least + 1 < len(edges):
            raise ConfigurationError(f"{len(edges)} edges can't have different weights from {least} to {most}")
        drawn = draws.sample(range(least, most + 1), len(edges))
    else:
        drawn = [draws.randint(least, most) for _ in edges]
    weights = dict(zip(edges, drawn, strict=True))
    name = _named(topology, f"weights={least}-{most}" + (",distinct" if distinct else ""))
    return _rewired(topology, topology.neighbors, weights, name)


def _named(topology: Topology, change: str) -> str:
    """Return the name of a topology that was changed; one without a name has none then either."""
    return topology.name and f"{topology.name},{change}"


def _rewired(topology: Topology, rows: Sequence[Sequence[int]], weights: dict[Edge, int], name: str) -> Topology:
    return Topology(rows, weights=weights, positions=topology.positions, name=name)


def _drawn(name: str, seed: int, make: Callable[[Any, Stream], Any]) -> Topology:
    import networkx as nx

    made = of_graph(make(nx, Stream(seed, "topology", name)))
    # Sorted: the order in which networkx lists edges isn't part of what a graph is.
    return Topology.of_edges(made.num_nodes, made.edges, name=name)


def _sorted(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def _at_least(least: int, number: object, of: str = "nodes") -> None:
    if type(number) is not int or number < least:
        raise ConfigurationError(f"{shown(number)} {of} are too few", advice=f"it takes at least {least}")
    if number > NODES_MAX:
        raise ConfigurationError(f"{number:,} {of} are too many", advice=f"use at most {NODES_MAX:,}")


def _check_edges(number: float) -> None:
    """Refuse what would fill the memory, before it does."""
    if number > EDGES_MAX:
        raise ConfigurationError(f"about {number:,.0f} edges are too many", advice=f"use at most {EDGES_MAX:,}")


# -- Where they stand in a picture; y points down


def _circle(n: int) -> Positions:
    """Clockwise from the top."""
    turns = [2 * math.pi * a / max(1, n) - math.pi / 2 for a in range(n)]
    return [(math.cos(turn), math.sin(turn)) for turn in turns]


def _layers(n: int, arity: int) -> Positions:
    """The root at the top, each level below, every parent over the middle of where its children have room."""
    places: Positions = []
    first, size, level = 0, 1, 0
    while first < n:
        places += [((2 * a + 1) / (2 * size), float(level)) for a in range(min(size, n - first))]
        first, size, level = first + size, size * arity, level + 1
    widest = max(1, min(n, size // arity))
    return [(x * widest, y) for x, y in places]


def _projected(dimension: int) -> Positions:
    """Every dimension moves a node in a direction of its own, and a little further: no two sums of steps are equal."""
    turns = [math.pi * digit / max(1, dimension) for digit in range(dimension)]
    steps = [
        ((1 + 0.13 * digit) * math.cos(turn), (1 + 0.13 * digit) * math.sin(turn)) for digit, turn in enumerate(turns)
    ]
    places: Positions = []
    for a in range(2**dimension):
        taken = [step for digit, step in enumerate(steps) if a >> digit & 1]
        places.append((math.fsum(x for x, _ in taken), math.fsum(y for _, y in taken)))
    return places


# -- Read

_SIZES = re.compile(r"([0-9]{1,8})(?:x([0-9]{1,8}))?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")

# Name → what makes it, how many sizes it takes, the options it has and their kinds, whether it draws.
_SHAPES: dict[str, tuple[Callable[..., Topology], int, dict[str, type], bool]] = {
    "clique": (clique, 1, {}, False),
    "ring": (ring, 1, {}, False),
    "line": (line, 1, {}, False),
    "star": (star, 1, {}, False),
    "tree": (tree, 1, {"arity": int}, False),
    "grid": (grid, 2, {}, False),
    "torus": (torus, 2, {}, False),
    "hypercube": (hypercube, 1, {}, False),
    "random": (random, 1, {"p": float, "degree": float}, True),
    "scale-free": (scale_free, 1, {"m": int}, True),
    "small-world": (small_world, 1, {"k": int, "p": float}, True),
    "geometric": (geometric, 1, {"radius": float}, True),
}
FORMS = (
    "clique:5, ring:8, line:4, star:6, tree:15,arity=2, grid:4x5, torus:4x4, hypercube:4, random:20,p=0.2, "
    "random:20,degree=4, scale-free:50,m=2, small-world:50,k=4,p=0.1, geometric:40,radius=0.25; "
    "each with ,connected ,shuffled ,weights=1-10 ,distinct"
)
_SUFFIXES = (".graphml", ".edges", ".edgelist", ".txt")


def as_topology(given: Any, *, seed: int = 0) -> Topology:
    """Take a topology, its text or that of its edges, a file's path, an adjacency list or a networkx graph."""
    if isinstance(given, Topology):
        return given
    if isinstance(given, Path):
        return read_file(given)
    if isinstance(given, str):
        if given.endswith(_SUFFIXES):
            return read_file(Path(given))
        return parse_edges(given) if given[:1].isdecimal() else parse(given, seed=seed)
    if hasattr(given, "is_directed"):
        return of_graph(given)
    if isinstance(given, Mapping | Sequence):
        return of_adjacency(given)
    raise ConfigurationError(f"{shown(given)} isn't a topology", advice=f"use {FORMS}, or a networkx graph")


def parse(text: str, *, seed: int = 0) -> Topology:
    """Read ``"ring:8,shuffled"``; what is random in it is drawn by the seed."""
    name, _, rest = text.partition(":")
    if name not in _SHAPES:
        raise ConfigurationError(f"{shown(text)} isn't a topology", advice=f"use {FORMS}")
    make, sizes_needed, known, is_drawn = _SHAPES[name]
    size, *words = [word.strip() for word in rest.split(",")]
    match = _SIZES.fullmatch(size)
    sizes = [int(number) for number in match.groups() if number] if match else []
    if len(sizes) != sizes_needed:
        form = f"{name}:4x5" if sizes_needed == 2 else f"{name}:8"
        raise ConfigurationError(f"{shown(text)} doesn't say its size", advice=f"write {form}")
    options: dict[str, Any] = {"seed": seed} if is_drawn else {}
    changes: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key in known and equals:
            options[key] = _value(known[key], key, value, text)
        elif key in ("connected", "shuffled", "distinct") and not equals:
            changes[key] = ""
        elif key == "weights" and equals:
            changes[key] = value
        else:
            can = ", ".join((*known, "connected", "shuffled", "weights", "distinct"))
            raise ConfigurationError(f"{shown(text)}: {shown(word)} isn't an option", advice=f"there are: {can}")
    if name == "geometric" and "radius" not in options:
        raise ConfigurationError(f"{shown(text)} needs a radius", advice="write geometric:40,radius=0.25")
    return _changed(make(*sizes, **options), changes, text, seed)


def smaller(text: str, least: int = 1) -> Iterator[str]:
    """Yield the same kind of topology with fewer nodes, fewest first; none for those with rows and columns."""
    name, _, rest = text.partition(":")
    size, comma, options = rest.partition(",")
    if name not in _SHAPES or not _NUMBER.fullmatch(size) or name == "hypercube":
        return
    for number in range(least, int(size)):
        shorter = f"{name}:{number}{comma}{options}"
        try:
            parse(shorter)
        except ConfigurationError:  # Some shapes need more.
            continue
        yield shorter


def parse_edges(text: str) -> Topology:
    """Read ``"0-1,0-2,1-2"``, or with weights ``"0-1=5,0-2=3"``; nodes go up to the largest one that is named."""
    edges: list[tuple[int, ...]] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        pair, equals, weight = word.partition("=")
        ends = pair.split("-")
        numbers = [*ends, *([weight] if equals else [])]
        if len(ends) != 2 or not all(_NUMBER.fullmatch(number) for number in numbers):
            raise ConfigurationError(f"{shown(word)} isn't an edge", advice="write 0-1,0-2,1-2 or with weights 0-1=5")
        edges.append(tuple(int(number) for number in numbers))
    if not edges:
        raise ConfigurationError("there are no edges", advice="write 0-1,0-2,1-2")
    return Topology.of_edges(max(max(edge[:2]) for edge in edges) + 1, edges, name=text)


def read_file(path: Path) -> Topology:
    """Read GraphML, or a list of edges: two node ids and perhaps a weight on each line, ``#`` begins a comment."""
    try:
        return _graphml(path) if path.suffix == ".graphml" else _edge_list(path.read_text(encoding="utf-8-sig"))
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error.problem}", advice=error.advice) from error
    except (OSError, ValueError) as error:  # Of which UnicodeDecodeError is one, and an impossible name another.
        raise ConfigurationError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or error}",
            advice="a topology's file is GraphML or a list of edges",
        ) from error


def _graphml(path: Path) -> Topology:
    from xml.etree.ElementTree import ParseError

    import networkx as nx

    try:
        graph = nx.read_graphml(path, force_multigraph=False)
    except (ParseError, nx.NetworkXError, KeyError, ValueError) as error:
        raise ConfigurationError(f"it isn't GraphML that can be read: {error}") from error
    # Many tools write directed graphs and mean edges; two that only differ in direction are one.
    return of_graph(nx.Graph(graph))


def _edge_list(text: str) -> Topology:
    edges: list[tuple[int, ...]] = []
    names: dict[str, int] = {}
    rows = [(number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    words = [word for _, row in rows for word in row[:2]]
    if words and all(_NUMBER.fullmatch(word) for word in words) and max(map(int, words)) < 2 * len(words) + 1_000:
        names = {str(number): number for number in range(max(map(int, words)) + 1)}
    for number, row in rows:
        if not row:
            continue
        if len(row) not in (2, 3) or (len(row) == 3 and not _NUMBER.fullmatch(row[2])):
            raise ConfigurationError(
                f"line {number} isn't an edge", advice="write two nodes, and perhaps a whole weight"
            )
        ends = [names.setdefault(word.lstrip("0") or "0" if word.isdecimal() else word, len(names)) for word in row[:2]]
        edges.append((*ends, *(int(weight) for weight in row[2:])))
    if not edges:
        raise ConfigurationError("there are no edges in it")
    return Topology.of_edges(len(names), edges)


def _changed(topology: Topology, changes: Mapping[str, str], text: str, seed: int) -> Topology:
    """Do what the words behind a shape ask for; the order in which they stand doesn't matter."""
    if "connected" in changes:
        topology = connected(topology, seed=seed)
    if "shuffled" in changes:
        topology = shuffled(topology, seed=seed)
    if "weights" in changes:
        span = _RANGE.fullmatch(changes["weights"])
        if span is None:
            raise ConfigurationError(f"{shown(text)}: the weights aren't a range", advice="write weights=1-10")
        topology = weighted(topology, int(span[1]), int(span[2]), distinct="distinct" in changes, seed=seed)
    elif "distinct" in changes:
        raise ConfigurationError(f"{shown(text)}: distinct weights need a range", advice="write weights=1-100,distinct")
    return topology


def _value(kind: type, key: str, value: str, text: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ConfigurationError(f"{shown(text)}: {key} can't be {shown(value)}", advice="write a number") from None
