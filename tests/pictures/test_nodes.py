"""Pictures: what is in them, where it is, and that they are the same every time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

from tests.pictures.reading import Element, of_class, of_tag, parsed, points, texts, titles
from worldline.model.errors import ConfigurationError, ModelError
from worldline.model.links import link
from worldline.model.time import MS, SECOND, format_time
from worldline.nodes.algorithms.bellman_ford import BellmanFord
from worldline.nodes.node import Event, Node, Start
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.shapes import as_topology
from worldline.nodes.topology import Topology
from worldline.nodes.trace import NodeRecord
from worldline.pictures.nodes import Routes, diagram_svg, routes_to, topology_svg
from worldline.pictures.nodes.diagram import told
from worldline.pictures.nodes.topology import apart, arranged
from worldline.pictures.svg import distance, distance_from_line

FAULTS = ("400ms crash 1", "700ms recover 1", "100ms partition 0", "300ms repair", "500ms down 0 2", "800ms up 0 2")


def line_of(message: Element) -> Element:
    """Return what is drawn for a message, which isn't what can be hit by the mouse."""
    return next(each for each in of_tag(message, "path") if each.get("class") != "target")


def lifelines(root: Element) -> list[float]:
    return [points(of_tag(each, "path")[0])[0][1] for each in of_class(root, "lifeline")]


def ran(topology: Any, node: type[Node] = BellmanFord, until: str | None = None, **options: Any) -> Scheduler:
    run = Scheduler.over(topology, node, trace=True, **options)
    run.start_all_nodes()
    run.run(until)
    return run


def drawn(run: Scheduler, **options: Any) -> Element:
    return parsed(diagram_svg(run.records, run.num_nodes, **options))


def faulty_run() -> Scheduler:
    over = link("uniform(1ms,500ms)", loss=0.2, duplication=0.2)
    return ran("clique:3", faults=FAULTS, link=over)


def circles(root: Element) -> list[tuple[float, float]]:
    nodes = [of_tag(each, "circle")[0] for each in of_class(root, "node")]
    return [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in nodes]


# -- The layout

GRAPHS = (
    "clique:1",
    "clique:2",
    "line:9",
    "ring:12",
    "star:9",
    "tree:20",
    "grid:4x5",
    "torus:4x5",
    "hypercube:3",
    "hypercube:5",
    "random:20,p=0.2",
    "random:30,p=0.02",
    "scale-free:40",
    "geometric:60,radius=0.2",
)


def without_positions(text: str) -> Topology:
    return Topology(as_topology(text).neighbors)


@pytest.mark.parametrize("text", GRAPHS)
def test_no_two_nodes_are_at_one_place(text: str) -> None:
    places = arranged(without_positions(text))
    assert all(distance(a, b) > 0.05 for a, b in combinations(places, 2))
    assert places == arranged(without_positions(text))


def test_a_path_comes_out_straight() -> None:
    places = arranged(without_positions("line:40"))
    left, right = places[0], places[-1]
    assert distance(left, right) > 0.97 * 39
    assert all(distance_from_line(place, left, right) < 0.05 * 39 for place in places)
    assert abs(left[1] - right[1]) < 1  # It lies, it doesn't stand.


@pytest.mark.parametrize("text", ["line:60", "ring:60", "grid:6x10"])
def test_large_graphs_take_pivots_and_have_the_right_shape_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.pictures.nodes.topology._ALL_PAIRS_UP_TO", 50)
    monkeypatch.setattr("worldline.pictures.nodes.topology._PIVOTS_LEAST", 15)
    monkeypatch.setattr("worldline.pictures.nodes.topology._PIVOTS_MOST", 15)
    topology = without_positions(text)
    places = arranged(topology)
    assert all(0.5 < distance(places[a], places[b]) < 2 for a, b in topology.edges)
    middle = 30 if text == "ring:60" else 59
    assert distance(places[0], places[middle]) > {"line:60": 55, "ring:60": 17, "grid:6x10": 9}[text]


def test_components_stand_side_by_side() -> None:
    topology = Topology.of_edges(9, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (6, 7)])
    places = arranged(topology)
    boxes = []
    for group in topology.components():
        xs, ys = [places[node][0] for node in group], [places[node][1] for node in group]
        boxes.append((min(xs), max(xs), min(ys), max(ys)))
    for one, other in combinations(boxes, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]


def test_what_is_too_close_is_pushed_apart() -> None:
    pushed = apart([(0.0, 0.0), (0.0, 0.0), (0.1, 0.0), (50.0, 50.0)], 10.0)
    assert all(distance(a, b) > 9.9 for a, b in combinations(pushed, 2))
    assert pushed[3] == (50.0, 50.0)


# -- Topologies


@pytest.mark.parametrize("text", GRAPHS)
def test_a_topology_has_all_its_nodes_and_edges(text: str) -> None:
    topology = as_topology(text)
    root = parsed(topology_svg(topology))
    places = circles(root)
    assert len(places) == topology.num_nodes
    radius = float(of_tag(root, "circle")[0].get("r", ""))
    assert all(distance(a, b) >= 2 * radius for a, b in combinations(places, 2))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    assert all(radius < x < width and radius < y < height for x, y in places)
    around = 9 if text == "torus:4x5" else 0  # Those are drawn in two parts.
    assert len(of_class(root, "edge")) == len(topology.edges) + around
    assert [text for text in texts(root) if text.isdecimal()][-topology.num_nodes :] == [
        str(node) for node in range(topology.num_nodes)
    ]


def test_positions_are_those_of_the_shape() -> None:
    places = circles(parsed(topology_svg(as_topology("grid:3x4"))))
    assert len({x for x, _ in places}) == 4
    assert len({y for _, y in places}) == 3


def test_positions_where_nodes_would_cover_each_other_are_not_taken() -> None:
    topology = Topology.of_edges(4, [(0, 1), (1, 2), (2, 3)], positions=[(0, 0), (1, 1), (0, 0), (2, 2)])
    places = circles(parsed(topology_svg(topology)))
    assert all(distance(a, b) > 20 for a, b in combinations(places, 2))
    assert distance(places[0], places[3]) > 2.5 * distance(places[0], places[1])  # It is a path again.


def test_edges_go_around_nodes_that_are_in_their_way() -> None:
    topology = Topology.of_edges(3, [(0, 1), (1, 2), (0, 2)], positions=[(0, 0), (1, 0), (2, 0)])
    ways = {titles(edge)[0]: edge.get("d", "") for edge in of_class(parsed(topology_svg(topology)), "edge")}
    assert "Q" in ways["0 – 2"]
    assert "Q" not in ways["0 – 1"] + ways["1 – 2"]


def test_weights_are_written_if_any_is_not_1() -> None:
    edges = [(0, 1, 1), (1, 2, 1)]
    assert not of_class(parsed(topology_svg(Topology.of_edges(3, edges))), "weights")
    root = parsed(topology_svg(Topology.of_edges(3, [*edges, (0, 2, 7)])))
    assert sorted(texts(of_class(root, "weights")[0])) == ["1", "1", "7"]


def test_edges_around_a_torus_are_stubs_that_say_where_they_lead() -> None:
    topology = as_topology("torus:3x4,weights=5-9")
    root = parsed(topology_svg(topology))
    places = circles(root)
    stubs = [edge for edge in of_class(root, "edge") if edge.get("stroke-dasharray")]
    assert len(stubs) == 2 * (3 + 4)
    for stub in stubs:
        a, b = (int(number) for number in titles(stub)[0].split(",")[0].split(" – "))
        inner, outer = points(stub)
        assert distance(inner, outer) < 25
        assert min(distance(inner, places[a]), distance(inner, places[b])) < 20
    assert "other side" in " ".join(texts(root))


def test_large_topologies_lose_their_labels_then_their_edges_then_everything() -> None:
    root = parsed(topology_svg(as_topology("grid:20x26")))
    assert len(circles(root)) == 520
    assert not [text for text in texts(root) if text.isdecimal()]
    root = parsed(topology_svg(as_topology("clique:250")))
    assert len(circles(root)) == 250
    assert not of_class(root, "edge")
    assert any("too many edges" in text for text in texts(root))
    root = parsed(topology_svg(as_topology("ring:5001")))
    assert not circles(root)
    assert "5,001 nodes and 5,001 edges are too many to draw." in texts(root)


def test_routes_are_arrows_to_the_next_node() -> None:
    run = ran("random:12,p=0.3,connected,weights=1-9", seed=4)
    tables = [node.routing for node in run.nodes]
    root = parsed(topology_svg(run.topology, routes=routes_to(5, tables)))
    steps = [tuple(int(number) for number in titles(each)[0].split(" → ")) for each in of_class(root, "route")]
    expected = [(node, run.topology.neighbors[node][table[5][1]]) for node, table in enumerate(tables) if node != 5]
    assert steps == expected
    places = circles(root)
    for (a, b), arrow in zip(steps, of_class(root, "route"), strict=True):
        assert "head" in arrow.get("marker-end", "")
        if "Q" not in arrow.get("d", ""):
            start, end = points(arrow)
            assert distance(start, places[a]) < 20
            assert distance(end, places[b]) < 20
    assert texts(of_class(root, "distances")[0]) == [str(table[5][0]) for node, table in enumerate(tables) if node != 5]
    assert len(of_class(root, "edge")) == len(run.topology.edges) - 11


def test_routes_around_a_torus_leave_and_come_in() -> None:
    topology = as_topology("torus:3x3")
    link_to_0 = topology.neighbors[2].index(0)
    root = parsed(topology_svg(topology, routes=Routes(0, {2: link_to_0}, {0: 0, 2: 1})))
    leaving, coming = of_class(root, "route")
    places = circles(root)
    assert points(leaving)[0][0] > places[2][0]
    assert points(leaving)[1][0] > points(leaving)[0][0]
    assert points(coming)[0][0] < points(coming)[1][0] < places[0][0]


def test_nodes_without_a_route_are_dashed() -> None:
    topology = Topology.of_edges(4, [(0, 1), (2, 3)])
    root = parsed(topology_svg(topology, routes=Routes(0, {1: 0}, {0: 0, 1: 1})))
    dashed = [titles(each)[0] for each in of_class(root, "node") if of_tag(each, "circle")[0].get("stroke-dasharray")]
    assert [text.partition(";")[0] for text in dashed] == ["node 2", "node 3"]
    assert "2 nodes have no route (dashed)." in texts(root)


def test_a_route_over_a_link_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="from 1 over its link 7"):
        topology_svg(as_topology("ring:4"), routes=Routes(0, {1: 7}, {}))


# -- Diagrams: messages


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_delivery_is_an_arrow_between_the_right_lifelines_at_the_right_times(seed: int) -> None:
    run = ran("random:8,p=0.3,connected", seed=seed)
    root = drawn(run)
    rows = lifelines(root)
    assert len(rows) == 8
    deliveries = [record for record in run.records if record.kind == "received" and record.peer is not None]
    arrows = [line_of(each) for each in of_class(root, "received")]
    assert len(arrows) == len(deliveries) > 0
    assert all("head" in arrow.get("marker-end", "") for arrow in arrows)
    left = min(points(arrow)[0][0] for arrow in arrows)
    last = max(record.at for record in deliveries)
    scale = (max(points(arrow)[1][0] for arrow in arrows) - left) / last
    for record, arrow in zip(deliveries, arrows, strict=True):
        assert record.peer is not None
        assert record.node is not None
        assert record.sent is not None
        (start_x, start_y), (end_x, end_y) = points(arrow)
        assert start_y == pytest.approx(rows[record.peer], abs=0.02)
        assert end_y == pytest.approx(rows[record.node], abs=0.02)
        assert start_x == pytest.approx(left + record.sent * scale, abs=0.02)
        assert end_x == pytest.approx(left + record.at * scale, abs=0.02)


def test_lost_and_dropped_messages_end_in_a_cross() -> None:
    run = faulty_run()
    root = drawn(run)
    rows = lifelines(root)
    lost = [record for record in run.records if record.kind == "sent" and not record.arrivals]
    dropped = [record for record in run.records if record.kind == "dropped"]
    assert len(of_class(root, "lost")) == len(lost) > 0
    assert len(of_class(root, "dropped")) == len(dropped) > 0
    for record, message in zip((*lost, *dropped), (*of_class(root, "lost"), *of_class(root, "dropped")), strict=True):
        assert record.node is not None
        assert record.peer is not None
        sender, receiver = (record.node, record.peer) if record.kind == "sent" else (record.peer, record.node)
        _, line, mark = of_tag(message, "path")
        assert record.reason in titles(message)[0]
        assert line.get("marker-end") is None
        start, end = points(line)
        assert start[1] == pytest.approx(rows[sender], abs=0.02)
        assert min(rows[sender], rows[receiver]) < end[1] < max(rows[sender], rows[receiver])
        corners = points(mark)
        assert len(corners) == 4
        assert all(distance(corner, end) < 8 for corner in corners)
    assert "lost" in texts(of_class(root, "legend")[0])


def test_messages_under_way_at_the_end_fade() -> None:
    run = ran("clique:4", until="300ms")
    root = drawn(run)
    sent = sum(len(record.arrivals) for record in run.records if record.kind == "sent")
    received = sum(record.peer is not None for record in run.records if record.kind == "received")
    fading = of_class(root, "under-way")
    assert len(fading) == sent - received > 0
    width = float(root.get("width", ""))
    for message in fading:
        shades = [float(each.get("stroke-opacity", "")) for each in of_tag(message, "path")][1:]
        assert shades == sorted(shades, reverse=True)
        assert shades[-1] < 0.2
        assert all(x < width for part in of_tag(message, "path") for x, _ in points(part))


def test_what_a_link_has_kept_back_arrives_when_it_is_up_again() -> None:
    run = ran("clique:2", faults=("100ms down 0 1", "2s up 0 1"), link="500ms", on_link_down="keep")
    story = told(run.records)
    assert [(message.sent, message.end, message.fate) for message in story.messages[:2]] == [
        (0, 2 * SECOND, "received"),
        (0, 2 * SECOND, "received"),
    ]
    assert all(message.fate == "received" for message in story.messages)
    assert not of_class(drawn(run), "under-way")


def test_copies_are_messages_of_their_own() -> None:
    run = ran("clique:2", link=link("uniform(1ms,20ms)", duplication=1.0))
    sent = sum(record.kind == "sent" for record in run.records)
    assert len(of_class(drawn(run), "received")) == 2 * sent


def test_messages_between_the_same_nodes_at_the_same_time_are_matched_in_order() -> None:
    """Two are sent at once: the first is still under way, the second has arrived."""
    both = [
        NodeRecord(at=0, kind="sent", text=text, node=0, peer=1, what="str", arrivals=(arrival,))
        for text, arrival in (("slow", 90), ("fast", 10))
    ]
    arrived = NodeRecord(at=10, kind="received", text="fast", node=1, peer=0, what="str", sent=0)
    fates = {message.record.text: message.fate for message in told([*both, arrived]).messages}
    assert fates == {"slow": "under way", "fast": "received"}


def test_kinds_have_colors_in_the_order_in_which_they_come_up() -> None:
    records = [
        NodeRecord(at=place, kind="sent", text="x", node=0, peer=1, what=what, arrivals=(place + 5,))
        for place, what in enumerate(("Zebra", "Ant", "Zebra", "Cat"))
    ]
    root = parsed(diagram_svg(records, 2))
    legend = of_class(root, "legend")[0]
    assert texts(legend)[:3] == ["Zebra (2)", "Ant (1)", "Cat (1)"]
    samples = [of_tag(each, "path")[0].get("stroke") for each in legend][:3]
    assert samples == ["#0072b2", "#d55e00", "#009e73"]
    groups = [each.get("stroke") for each in root if each.get("stroke-opacity") and len(of_class(each, "message")) > 0]
    assert groups == samples


def test_kinds_beyond_the_palette_have_dashes() -> None:
    records = [
        NodeRecord(at=place, kind="received", text="x", node=1, peer=0, what=f"Kind{place}", sent=0)
        for place in range(20)
    ]
    root = parsed(diagram_svg(records, 2))
    looks = [
        (line_of(each).get("stroke-dasharray"), line_of(each).get("marker-end")) for each in of_class(root, "received")
    ]
    assert len(set(looks)) == 20
    assert "and 6 other kinds" in texts(of_class(root, "legend")[0])


def test_few_messages_have_labels_and_many_have_none() -> None:
    run = ran("clique:3")
    labels = texts(of_class(drawn(run), "texts")[0])
    assert labels
    whole = {message.text for message in run.records if message.kind == "sent"}
    assert all(label in whole or label == "Table" for label in labels)  # None is cut: instead, it is the kind.
    assert not of_class(drawn(ran("clique:5")), "texts")


# -- Diagrams: what else happens


def test_a_crash_interrupts_the_lifeline_until_the_recovery() -> None:
    root = drawn(faulty_run())
    interrupted = [of_class(each, "down") for each in of_class(root, "lifeline")]
    assert [len(parts) for parts in interrupted] == [0, 1, 0]
    marks = {titles(each)[0].partition(",")[0]: each for each in of_class(root, "mark")}
    start, end = points(interrupted[1][0])
    cross = points(of_tag(marks["1: Crash"], "path")[0])
    assert sum(x for x, _ in cross) / 4 == pytest.approx(start[0], abs=0.02)
    assert float(of_tag(marks["1: Recover"], "circle")[0].get("cx", "")) == pytest.approx(end[0], abs=0.02)
    assert {"Crash", "Recover"} <= set(texts(of_class(root, "mark-texts")[0]))
    assert {"crash", "recovery", "link down", "link up", "start"} <= set(texts(of_class(root, "legend")[0]))


def test_who_never_recovers_is_down_to_the_end() -> None:
    root = drawn(ran("clique:3", faults=("100ms crash 2",)))
    (down,) = of_class(root, "down")
    whole = points(of_tag(of_class(root, "lifeline")[0], "path")[0])
    assert points(down)[1][0] == whole[1][0]


def test_partitions_are_bands_with_the_group_standing_out() -> None:
    root = drawn(faulty_run())
    (band,) = of_class(root, "partition")
    whole, row = of_tag(band, "rect")
    lines = of_class(root, "happened")
    assert [titles(line)[0] for line in lines] == ["Partition 0, at 100ms", "Repair, at 300ms"]
    begin, end = (points(of_tag(line, "path")[0])[0][0] for line in lines)
    assert float(whole.get("x", "")) == pytest.approx(begin, abs=0.02)
    assert float(whole.get("x", "")) + float(whole.get("width", "")) == pytest.approx(end, abs=0.02)
    top = float(row.get("y", ""))
    assert top < lifelines(root)[0] < top + float(row.get("height", ""))


def test_labels_of_what_happens_at_once_are_in_rows_of_their_own() -> None:
    faults = ("100ms partition 0", "101ms partition 1", "102ms repair")
    labels = [of_tag(each, "text")[0] for each in of_class(drawn(ran("clique:3", faults=faults)), "happened")]
    assert len({label.get("y") for label in labels}) == 3


class Talker(Node):
    """Logs, sets a timer, and sends what is hard to write down."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.log("first <line>")
            self.log("second & last")
            self.set_timer("5ms", "tea")
            self.broadcast("<b>&\"'\x00\x1b]]>\nnew line\u4f60\u597d")


def test_whatever_is_in_messages_and_logs_the_picture_is_well_formed() -> None:
    run = ran("clique:2", Talker, link="10ms")
    root = parsed(diagram_svg(run.records, 2, title='<script>"&\ud800'))
    expected = "<b>&\"'\ufffd\ufffd]]> new line\u4f60\u597d"
    assert (
        titles(of_class(root, "received")[0])[0] == f"str 0 → 1, sent at 0s, received at 10ms, after 10ms: {expected}"
    )
    assert expected in texts(root)
    assert '<script>"&\ufffd' in texts(root)
    assert not of_tag(root, "script")


def test_notes_of_one_moment_are_one_dot_with_all_lines() -> None:
    root = drawn(ran("clique:2", Talker, link="10ms"))
    notes = of_class(root, "note")
    assert [titles(each)[0] for each in notes] == [f"{node}, at 0s: first <line>; second & last" for node in (0, 1)]
    assert "first <line>; second & last" in texts(of_class(root, "note-texts")[0])
    assert "tea" in texts(root)


# -- Diagrams: sizes


def test_a_run_in_which_nothing_happens() -> None:
    root = parsed(diagram_svg([], 3))
    assert len(of_class(root, "lifeline")) == 3
    assert "3 nodes, no messages" in texts(root)


def test_a_run_of_one_node() -> None:
    root = drawn(ran("clique:1"))
    assert len(lifelines(root)) == 1
    assert texts(of_class(root, "names")[0]) == ["0"]


def test_everything_at_one_moment() -> None:
    records = [NodeRecord(at=7, kind="sent", text="x", node=0, peer=1, what="str", arrivals=(9,))]
    root = parsed(diagram_svg(records, 2))
    assert len(of_class(root, "under-way")) == 1


def received(count: int, nodes: int, every: int = MS) -> Iterable[NodeRecord]:
    for place in range(count):
        yield NodeRecord(
            at=(place + 1) * every,
            kind="received",
            text="x",
            what="str",
            node=place % nodes,
            peer=(place + 1) % nodes,
            sent=place * every,
        )


def test_of_a_long_run_the_first_part_is_drawn_and_the_picture_says_so() -> None:
    records = list(received(5_100, 4))
    svg = diagram_svg(records, 4, until=9 * SECOND)
    root = parsed(svg)
    assert len(of_class(root, "received")) == 5_000
    assert "Only the first 5,000 of 5,100 records are drawn." in texts(root)
    assert float(root.get("width", "")) < 6_200
    assert len(svg) < 2_000_000


def test_of_many_nodes_the_first_are_drawn_and_the_picture_says_so() -> None:
    records = list(received(400, 1_000))
    root = parsed(diagram_svg(records, 1_000))
    assert len(of_class(root, "lifeline")) == 300
    assert len(of_class(root, "received")) == 299
    assert any(text.startswith("Only the first 300 of 1,000 nodes") for text in texts(root))


def test_the_width_grows_with_what_happens_and_wide_pictures_have_names_on_both_sides() -> None:
    short, long = (parsed(diagram_svg(list(received(count, 5)), 5)) for count in (10, 1_000))
    assert float(short.get("width", "")) < 1_000 < float(long.get("width", ""))
    assert len(texts(of_class(short, "names")[0])) == 5
    assert len(texts(of_class(long, "names")[0])) == 10


def test_the_run_goes_on_until_its_end() -> None:
    root = parsed(diagram_svg(list(received(3, 2)), 2, until=100 * MS))
    assert "100" in texts(of_class(root, "axis")[0])
    assert max(points(line_of(each))[1][0] for each in of_class(root, "received")) < 100


# -- What went wrong


def test_a_failure_stands_out_where_and_when_it_was() -> None:
    run = ran("clique:3")
    at = run.records[len(run.records) // 2].at
    failure = ModelError("property failed: all is well: 1 < 2", participant="node 1", at=at)
    root = drawn(run, failure=failure)
    (mark,) = of_class(root, "failure")
    assert titles(mark)[0] == str(failure)
    line, sign = points(of_tag(mark, "path")[0]), points(of_tag(mark, "path")[1])
    assert line[0][0] == line[1][0] == pytest.approx(sign[0][0])
    height = lifelines(root)[1]
    assert min(y for _, y in sign) < height < max(y for _, y in sign)
    message = next(each for each in of_class(root, "message") if f"at {format_time(at)}," in titles(each)[0])
    assert line[0][0] in (
        pytest.approx(points(line_of(message))[0][0], abs=0.02),
        pytest.approx(points(line_of(message))[-1][0], abs=0.02),
    )
    assert "here it went wrong" in texts(of_class(root, "legend")[0])
    assert str(failure) in texts(root)


def test_a_failure_of_nobody_s_is_a_line_through_all() -> None:
    root = drawn(ran("clique:3"), failure=ModelError("in the end", at=0))
    (mark,) = of_class(root, "failure")
    ys = [y for _, y in points(of_tag(mark, "path")[0])]
    assert min(ys) < min(lifelines(root)) <= max(lifelines(root)) < max(ys)
    assert not of_tag(mark, "circle")


def test_links_that_go_down_and_up_have_signs_of_their_own() -> None:
    root = drawn(ran("line:2", faults=["10ms down 0 1", "2s up 0 1"]))
    assert {"link down", "link up"} <= set(texts(of_class(root, "legend")[0]))
    marks = [titles(each)[0] for each in of_class(root, "mark")]
    assert marks[2:] == [f"{node}: Link {what}" for what in ("down 0, at 10ms", "up 0, at 2s") for node in (0, 1)]


# -- Local links


@pytest.mark.parametrize(
    "text", ["clique:3", "clique:8", "ring:8", "line:4", "star:7", "grid:3x4", "tree:15", "torus:4x4"]
)
def test_each_end_of_an_edge_has_the_number_that_its_node_knows_it_by(text: str) -> None:
    topology = as_topology(text)
    links = of_class(parsed(topology_svg(topology)), "link")
    expected = {
        f"link {link} of {here}, to {there}"
        for here, row in enumerate(topology.neighbors)
        for link, there in enumerate(row)
    }
    assert {titles(each)[0] for each in links} == expected
    assert all(titles(each)[0].split()[1] == texts(each)[-1] for each in links)
    labels = [of_tag(each, "text")[0] for each in links]
    places = [(float(each.get("x", "")), float(each.get("y", ""))) for each in labels]
    gaps = [math.dist(a, b) for place, a in enumerate(places) for b in places[:place]]
    assert min(gaps, default=9.0) > 8.0  # None lies upon another.


def test_so_many_edges_have_no_numbers() -> None:
    assert not of_class(parsed(topology_svg(as_topology("clique:20"))), "link")


def test_what_decides_a_failure_is_written() -> None:
    """However much was noted before, the last notes are; and a timer's name isn't repeated."""

    class Counts(Node):
        count = 0

        def execute(self, event: Event) -> None:
            if not isinstance(event, Start):
                self.count += 1
                self.log(f"has counted to {self.count}")
            self.set_timer("1ms", "tick")

    run = ran("clique:2", Counts, until="30ms")
    failure = ModelError("property failed: few are counted", participant="node 1", at=run.now)
    written = texts(parsed(diagram_svg(run.records, 2, failure=failure)))
    assert "has counted to 29" in written
    assert "has counted to 5" not in written
    assert written.count("tick") == 2 * 2  # With its halo, of each node.
