"""Reads topologies that people write: ``"grid:4x5"``, ``"0-1,0-2,1-2"``, a file, a networkx graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from worldline.model.errors import ConfigurationError, shown
from worldline.nodes import shapes
from worldline.nodes.topology import Topology, of_adjacency, of_graph

_SIZES = re.compile(r"([0-9]{1,8})(?:x([0-9]{1,8}))?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")

# Name → what makes it, how many sizes it takes, the options it has and their kinds, whether it draws.
_SHAPES: dict[str, tuple[Callable[..., Topology], int, dict[str, type], bool]] = {
    "clique": (shapes.clique, 1, {}, False),
    "ring": (shapes.ring, 1, {}, False),
    "line": (shapes.line, 1, {}, False),
    "star": (shapes.star, 1, {}, False),
    "tree": (shapes.tree, 1, {"arity": int}, False),
    "grid": (shapes.grid, 2, {}, False),
    "torus": (shapes.torus, 2, {}, False),
    "hypercube": (shapes.hypercube, 1, {}, False),
    "random": (shapes.random, 1, {"p": float, "degree": float}, True),
    "scale-free": (shapes.scale_free, 1, {"m": int}, True),
    "small-world": (shapes.small_world, 1, {"k": int, "p": float}, True),
    "geometric": (shapes.geometric, 1, {"radius": float}, True),
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


def parse_edges(text: str, num_nodes: int | None = None) -> Topology:
    """Read ``"0-1,0-2,1-2"``, or with weights ``"0-1=5,0-2=3"``; nodes go up to the largest one that is named."""
    edges: list[tuple[int, ...]] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        pair, equals, weight = word.partition("=")
        ends = pair.split("-")
        numbers = [*ends, *([weight] if equals else [])]
        if len(ends) != 2 or not all(_NUMBER.fullmatch(number) for number in numbers):
            raise ConfigurationError(f"{shown(word)} isn't an edge", advice="write 0-1,0-2,1-2 or with weights 0-1=5")
        edges.append(tuple(int(number) for number in numbers))
    if not edges and num_nodes is None:
        raise ConfigurationError("there are no edges", advice="write 0-1,0-2,1-2")
    largest = max((max(edge[:2]) for edge in edges), default=0)
    return Topology.of_edges(largest + 1 if num_nodes is None else num_nodes, edges, name=text)


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
    # Everybody's tools write directed graphs and mean edges; two that only differ in direction are one.
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
        topology = shapes.connected(topology, seed=seed)
    if "shuffled" in changes:
        topology = shapes.shuffled(topology, seed=seed)
    if "weights" in changes:
        span = _RANGE.fullmatch(changes["weights"])
        if span is None:
            raise ConfigurationError(f"{shown(text)}: the weights aren't a range", advice="write weights=1-10")
        topology = shapes.weighted(topology, int(span[1]), int(span[2]), distinct="distinct" in changes, seed=seed)
    elif "distinct" in changes:
        raise ConfigurationError(f"{shown(text)}: distinct weights need a range", advice="write weights=1-100,distinct")
    return topology


def _value(kind: type, key: str, value: str, text: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ConfigurationError(f"{shown(text)}: {key} can't be {shown(value)}", advice="write a number") from None
