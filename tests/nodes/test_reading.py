"""Reading topologies: texts and files that people write, good and bad."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import ConfigurationError
from worldline.nodes.shapes import as_topology, parse, parse_edges, read_file
from worldline.nodes.topology import Topology

# -- Texts

BAD_TEXTS = [
    ("", "isn't a topology .*clique:5"),
    ("foo:3", "isn't a topology .*clique:5"),
    ("ring", "write ring:8"),
    ("ring:", "write ring:8"),
    ("ring:x", "write ring:8"),
    ("ring:-3", "write ring:8"),
    ("ring:3x4", "write ring:8"),
    ("ring:123456789", "write ring:8"),
    ("grid:4", "write grid:4x5"),
    ("grid:4x", "write grid:4x5"),
    ("ring:8,foo", "'foo' isn't an option .*shuffled"),
    ("ring:8,p=3", "isn't an option"),
    ("ring:8,", "isn't an option"),
    ("ring:8,shuffled=1", "isn't an option"),
    ("ring:8,weights", "isn't an option"),
    ("ring:8,weights=a", "write weights=1-10"),
    ("ring:8,weights=9-1", "9 to 1"),
    ("ring:8,weights=1-3,distinct", "8 edges can't have different weights"),
    ("ring:8,distinct", "need a range"),
    ("tree:5,arity=x", "arity can't be 'x'"),
    ("tree:5,arity=1.5", "arity can't be"),
    ("random:5", "p=0.2 or random:20,degree=4"),
    ("random:5,p=0.5,degree=2", "p=0.2 or random:20,degree=4"),
    ("random:5,p=2", "use 0 to 1"),
    ("random:5,p=-0.1", "use 0 to 1"),
    ("random:5,p=nan", "use 0 to 1"),
    ("random:5,p=1e400", "use 0 to 1"),
    ("random:5,degree=9", "use 0 to 1"),
    ("geometric:5", "radius=0.25"),
    ("geometric:5,radius=nan", "isn't a radius"),
    ("geometric:5,radius=-1", "isn't a radius"),
    ("small-world:50,p=nan", "no small world"),
    ("small-world:10,k=3,p=0", "no small world"),
    ("small-world:4,k=4", "no small world"),
    ("clique:００３", "write clique:8"),
]


@pytest.mark.parametrize(("text", "says"), BAD_TEXTS, ids=[text for text, _ in BAD_TEXTS])
def test_a_bad_text_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        parse(text)


@given(st.text(max_size=30) | st.text(alphabet="ring:,x=0123456789pdegshuflw-.", max_size=24))
def test_no_text_raises_anything_but_a_configuration_error(text: str) -> None:
    digits = sum(letter.isdigit() for letter in text)
    if digits < 4:  # Larger ones take a while.
        with suppress(ConfigurationError):
            assert as_topology(text).num_nodes > 0


def test_blanks_after_commas_are_allowed() -> None:
    assert parse("tree: 7, arity=3").neighbors == parse("tree:7,arity=3").neighbors


# -- Edges


def test_edges_of_the_command_line() -> None:
    assert parse_edges("0-1, 0-2,1-2").neighbors == ((1, 2), (0, 2), (0, 1))
    assert parse_edges("0-1=5,2-1=0").weights == {(0, 1): 5, (1, 2): 0}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there are no edges"),
        (" , ", "there are no edges"),
        ("0", "isn't an edge"),
        ("0-", "isn't an edge"),
        ("a-b", "isn't an edge"),
        ("0--1", "isn't an edge"),
        ("0-1-2", "isn't an edge"),
        ("0-1=", "isn't an edge"),
        ("0-1=x", "isn't an edge"),
        ("0-1=-5", "isn't an edge"),
        ("0-0", "itself"),
        ("0-1,1-0", "two edges"),
        ("0-999999999999999999", "isn't a number of nodes"),
        ("0-9999999999999999999", "isn't an edge"),
        ("0-٣", "isn't an edge"),
    ],
)
def test_bad_edges_are_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        parse_edges(text)


# -- Edge lists


def written(folder: Path, data: str | bytes, name: str = "net.edges") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    ("text", "neighbors"),
    [
        ("0 1\n1 2\n", ((1,), (0, 2), (1,))),
        ("# a comment\n\n0 1 # another\r\n2\t1\r\n", ((1,), (0, 2), (1,))),
        ("1 3\n", ((), (3,), (), (1,))),
        ("00 1\n0 2", ((1, 2), (0,), (0,))),
        ("rome paris\nparis oslo", ((1,), (0, 2), (1,))),
        ("é ü", ((1,), (0,))),
        ("0 1000000", ((1,), (0,))),
        (f"0 {'9' * 30}", ((1,), (0,))),
    ],
)
def test_edge_lists(tmp_path: Path, text: str, neighbors: Any) -> None:
    path = written(tmp_path, text)
    assert read_file(path).neighbors == neighbors
    assert as_topology(str(path)).neighbors == as_topology(path).neighbors == neighbors


def test_weights_of_an_edge_list(tmp_path: Path) -> None:
    assert read_file(written(tmp_path, "a b 7\nb c")).weights == {(0, 1): 7, (1, 2): 1}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "there are no edges"),
        (b"# only a comment\n", "there are no edges"),
        (b"0 1\n1 2 x\n", "line 2 isn't an edge"),
        (b"0 1\n\n1\n", "line 3 isn't an edge"),
        (b"0,1\n", "line 1 isn't an edge"),
        (b"0 1 2 3", "line 1 isn't an edge"),
        (b"0 1 -3", "whole weight"),
        (b"0 1 2.5", "whole weight"),
        (b"0 1 " + b"9" * 5000, "line 1 isn't an edge"),
        (b"0 0", "itself"),
        (b"0 1\n1 0", "two edges between 1 and 0"),
        (b"\xff\xfe\x00\x01", "can't be read"),
        (bytes(range(256)) * 4, "can't be read"),
    ],
)
def test_bad_edge_lists_are_refused_by_name(tmp_path: Path, data: bytes, says: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(ConfigurationError, match=says) as refused:
        read_file(path)
    assert str(path) in str(refused.value)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff1 0\n0 2\n")
    assert read_file(path).neighbors == ((1, 2), (0,), (0,))


@pytest.mark.parametrize("name", ["nothing.edges", "nothing.graphml", "\0.txt", "", "a" * 5000 + ".txt"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"can't be read: .*GraphML or a list of edges"):
        as_topology(tmp_path / name)


# -- GraphML

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
WEIGHT = '<key id="d0" for="edge" attr.name="weight" attr.type="{}"/>'
ONE = '<graph edgedefault="undirected"><node id="a"/><edge source="a" target="b">{}</edge></graph></graphml>'


def graphml(folder: Path, text: str | bytes) -> Topology:
    return read_file(written(folder, text, "net.graphml"))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_what_networkx_writes_can_be_read(tmp_path: Path, kind: Any) -> None:
    graph = nx.Graph()
    graph.add_edge("rome", "oslo", weight=3)
    graph.add_edge("oslo", "bonn", weight=4.0)
    nx.write_graphml_xml(kind(graph), tmp_path / "net.graphml")
    topology = as_topology(str(tmp_path / "net.graphml"))
    assert topology.neighbors == ((1,), (0, 2), (1,))
    assert topology.weights == {(0, 1): 3, (1, 2): 4}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "isn't GraphML"),
        (b"\x00\xff\x80\x1f\x8b", "isn't GraphML"),
        ("0 1\n1 2", "isn't GraphML"),
        ("<a/>", "isn't GraphML"),
        ("<graphml/>", "isn't GraphML"),
        (HEAD + "</graphml>", "isn't GraphML"),
        (HEAD + "<graph", "isn't GraphML"),
        (HEAD + '<graph edgedefault="undirected"/></graphml>', "0 isn't a number of nodes"),
        (HEAD + WEIGHT.format("int") + ONE.format('<data key="d0">many</data>'), "isn't GraphML"),
        (HEAD + WEIGHT.format("color") + ONE.format('<data key="d0">3</data>'), "isn't GraphML"),
        (HEAD + WEIGHT.format("int") + ONE.format(f'<data key="d0">{"9" * 5000}</data>'), "isn't GraphML"),
        (HEAD + WEIGHT.format("int") + ONE.format("<data>3</data>"), "isn't GraphML"),
        (HEAD + WEIGHT.format("double") + ONE.format('<data key="d0">2.5</data>'), r"2\.5 isn't a weight"),
        (HEAD + WEIGHT.format("double") + ONE.format('<data key="d0">NaN</data>'), "nan isn't a weight"),
        (HEAD + WEIGHT.format("int") + ONE.format('<data key="d0">-2</data>'), "-2 isn't a weight"),
        (HEAD + WEIGHT.format("string") + ONE.format('<data key="d0">3</data>'), "'3' isn't a weight"),
        (HEAD + ONE.format("").replace('target="b"', 'target="a"'), "itself"),
        (HEAD + '<graph edgedefault="undirected"><hyperedge/></graph></graphml>', "isn't GraphML"),
    ],
)
def test_bad_graphml_is_refused_by_name(tmp_path: Path, data: str | bytes, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        graphml(tmp_path, data)
    assert "net.graphml" in str(refused.value)


def test_graphml_with_positions_as_text(tmp_path: Path) -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, "1.5,2", "pos")
    nx.write_graphml_xml(graph, tmp_path / "net.graphml")
    assert read_file(tmp_path / "net.graphml").num_nodes == 3


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_configuration_error(tmp_path_factory: Any, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("net.edges", "net.graphml"):
        with suppress(ConfigurationError):
            assert read_file(written(folder, data, name)).num_nodes > 0


# -- Anything


@pytest.mark.parametrize("given_", [None, 5, 2.5, object()])
def test_what_is_no_topology_is_refused_with_what_is_one(given_: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"isn't a topology .*networkx graph"):
        as_topology(given_)


def test_a_topology_is_one_already() -> None:
    topology = parse("ring:3")
    assert as_topology(topology) is topology
