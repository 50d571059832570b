"""Minkowski diagrams: where lines are, what is said, what is left out, and the same bytes every time."""

from __future__ import annotations

import re
import time
from itertools import combinations, pairwise
from typing import Any

import pytest

from tests.pictures.reading import Element, Spot, of_class, of_tag, parsed, points, texts, titles
from tests.pictures.spacetime.runs import crowd, lambdas, ping, straight
from tests.pictures.spacetime.test_looks import lived
from worldline.model.errors import UsageError
from worldline.pictures.spacetime import diagram, minkowski_svg
from worldline.pictures.svg import ALARM, PALETTE, text_width
from worldline.spacetime import AgentRecord, Boundary, LambdaField, box


def drawn(records: list[AgentRecord], n: int = 2, **options: Any) -> Element:
    return parsed(minkowski_svg(records, n, **options))


def paths(group: Element) -> list[Element]:
    return of_tag(group, "path")


def names(root: Element) -> list[str]:
    return [text for group in of_class(root, "names") for text in texts(group)]


def arrows(root: Element) -> list[tuple[Spot, Spot]]:
    return [(points(paths(each)[0])[0], points(paths(each)[-1])[-1]) for each in of_class(root, "lambda")]


def test_time_goes_up_and_light_runs_at_45_degrees() -> None:
    root = drawn(ping().records)
    lines = sorted(arrows(root), key=lambda line: -line[0][1])
    assert len(lines) == 4
    for place, ((x, y), (to_x, to_y)) in enumerate(lines):
        assert to_y < y
        assert abs(to_x - x) == pytest.approx(y - to_y, abs=0.03)
        assert (to_x > x) == (place % 2 == 0)
    for _, edge in (paths(cone)[-2:] for cone in of_class(root, "cone")):
        left, apex, right = points(edge)
        assert apex[0] - left[0] == pytest.approx(apex[1] - left[1], abs=0.03)
        assert right[0] - apex[0] == pytest.approx(apex[1] - right[1], abs=0.03)
    assert of_class(root, "cone")


def test_worldlines_run_through_their_corners() -> None:
    root = drawn([*straight("a", (0, 0), (5, 3), (10, 0)), *straight("b", (0, 4), (10, 4))])
    a, b = (points(of_class(each, "way")[0]) for each in of_class(root, "worldline"))
    assert len(a) == 3
    unit = (b[0][1] - b[1][1]) / 10
    assert b[0][0] == b[1][0]
    assert a[1][0] - a[0][0] == pytest.approx(3 * unit, abs=0.02)
    assert a[0][1] - a[1][1] == pytest.approx(5 * unit, abs=0.02)
    assert b[0][0] - a[0][0] == pytest.approx(4 * unit, abs=0.02)
    assert [each.get("stroke") for each in of_class(root, "worldline")] == list(PALETTE[:2])


def test_lambdas_go_from_worldline_to_worldline() -> None:
    root = drawn(crowd(6, 2).records, field=LambdaField(c=0.01))
    ways = {}
    for line in of_class(root, "worldline"):
        ways[titles(line)[0].split(":")[0]] = [points(way) for way in of_class(line, "way")]
    absorbed = of_class(root, "absorbed")
    assert len(absorbed) > 5
    for each in absorbed:
        source, target = re.match(r"hear, (\S+) → (\S+):", titles(each)[0]).groups()  # type: ignore[union-attr]
        start, end = points(paths(each)[0])
        assert is_on(ways[source], start)
        assert is_on(ways[target], end)


def is_on(lines: list[list[Spot]], spot: Spot) -> bool:
    for line in lines:
        for (x, y), (to_x, to_y) in pairwise(line):
            if to_y - 0.02 <= spot[1] <= y + 0.02:
                share = (spot[1] - y) / (to_y - y) if y != to_y else 0.0
                if abs(x + (to_x - x) * share - spot[0]) < 0.1:
                    return True
    return False


def test_a_jump_is_dashed_and_no_part_of_the_way() -> None:
    root = drawn(crowd(6, 2, action="wrap", side=3.0).records)
    jumps = of_class(root, "jump")
    assert jumps
    assert all(jump.get("stroke-dasharray") for jump in jumps)
    for line in jumps[0].get("d", "").split("M")[1:]:
        (x, y), (to_x, to_y) = re.findall(r"([\d.]+) ([\d.]+)", line)
        assert abs(float(to_x) - float(x)) == pytest.approx(float(y) - float(to_y), abs=0.05)
    assert "jump" in texts(root)


def test_what_happened_is_marked_and_told_under_the_mouse() -> None:
    run = crowd(8, 2, 20.0, 4.0)
    root = drawn(run.records)
    said = [title for each in of_class(root, "event") for title in titles(each)]
    died = [record for record in run.records if record.kind == "died"]
    assert died
    assert sum("died" in text for text in said) == len(died)
    assert any(
        re.match(r"w\d at \([\d.]+, -?[\d.]+\), local time [\d.]+: absorbed hear from w\d", text) for text in said
    )
    assert any("born of w" in text for text in said)
    assert any("crossed x1 " in text for text in said)
    legend = texts(of_class(root, "legend")[0])
    assert {"worldline", "lambda", "never absorbed", "light cone", "death", "birth", "boundary reached"} <= set(legend)
    assert "farewell" in texts(root)


def test_the_legend_only_has_what_there_is() -> None:
    root = drawn(straight("a", (0, 0), (5, 3)))
    assert texts(of_class(root, "legend")[0]) == ["worldline"]
    assert "1 agent, no lambdas" in texts(root)


def test_ends_of_channels_are_dashed_and_their_arrival_marked() -> None:
    common: dict[str, Any] = {"channel": "a:1", "order": 0, "what": "attach"}
    records = [*straight("a", (0, 0), (9, 0)), *straight("b", (0, 3), (9, 3))]
    records += [
        AgentRecord("a", 5, "sent", (1.0, 0.0), 1.0, peer="b", **common),
        AgentRecord("b", 5, "absorbed", (4.0, 3.0), 4.0, peer="a", emitted=(1.0, 0.0), **common),
        AgentRecord("b", 6, "attached", (4.0, 3.0), 4.0, channel="c:1", peer="c"),
    ]
    root = drawn(records)
    (line,) = of_class(root, "absorbed")
    assert paths(line)[0].get("stroke-dasharray")
    assert {"end of a channel", "channel attached"} <= set(texts(of_class(root, "legend")[0]))


def test_a_worldline_changes_its_color_where_its_agent_does() -> None:
    root = drawn([*lived("a", (0.0, "well"), (2.0, "ill"), (6.0, "well"), end=10.0), *lived("b", (0.0, "well"))])
    line, other = of_class(root, "worldline")
    well, ill = (points(each) for each in of_class(line, "way"))
    colors = [each.get("stroke") or line.get("stroke") for each in of_class(line, "way")]
    assert colors == list(PALETTE[:2])
    assert other.get("stroke") == PALETTE[0]
    unit = (well[0][1] - well[-1][1]) / 10
    assert [y for _, y in well] == pytest.approx([well[0][1] - unit * time for time in (0, 2, 6, 10)], abs=0.02)
    assert [y for _, y in ill] == pytest.approx([well[0][1] - unit * time for time in (2, 6)], abs=0.02)
    assert texts(of_class(root, "legend")[0]) == ["well", "ill"]
    # A name that stands beside a line of several colors has none of them.
    assert [each.get("fill") for group in of_class(root, "names") for each in group] == [None, None]


def test_a_change_on_the_way_and_at_a_jump() -> None:
    records = [
        AgentRecord("a", 0, "born", (0.0, 0.0), 0.0, what="A"),
        AgentRecord("a", 1, "turned", (1.0, 0.0), 1.0, velocity=(1.25, 0.75)),
        AgentRecord("a", 2, "shown", (2.0, 0.6), 1.8, what="B"),
        AgentRecord("a", 3, "timer", (3.0, 1.2), 2.6),
        AgentRecord("a", 4, "jumped", (6.0, 3.0), 2.6, emitted=(3.0, 1.2)),
        AgentRecord("a", 5, "shown", (6.0, 3.0), 2.6, what="C"),
        AgentRecord("a", 6, "ended", (7.0, 3.0), 3.6),
    ]
    (line,) = of_class(drawn(records), "worldline")
    first, second, third = (points(each) for each in of_class(line, "way"))
    assert first[-1] == second[0]
    assert len(first) == 3
    assert [len(second), len(third)] == [2, 2]
    ((start, end),) = [points(each) for each in of_class(line, "jump")]
    assert (start, end) == (second[-1], third[0])


def test_lambdas_and_marks_have_the_color_of_that_moment() -> None:
    records = [*lived("a", (0.0, "well"), (2.0, "ill")), *lived("b", (0.0, "well"))]
    records += lambdas("a", "b", ((1.0, 0.0), (1.5, 0.0)), ((3.0, 0.0), (3.5, 0.0)))
    root = drawn(records)
    groups = [each for each in root.iter() if any("lambda" in (child.get("class") or "") for child in each)]
    assert [group.get("stroke") for group in groups] == list(PALETTE[:2])
    marks = {titles(each)[0].split(",")[0]: each for each in of_class(root, "event")}
    assert {key: each[-1].get("fill") for key, each in marks.items()} == {
        "a at (1": PALETTE[0],
        "a at (3": PALETTE[1],
        "b at (1.5": PALETTE[0],
        "b at (3.5": PALETTE[0],
    }


def test_every_look_is_in_the_legend_and_can_be_told_apart() -> None:
    records = [each for i in range(40) for each in lived(f"a{i}", (0.0, f"state {i}"))]
    root = drawn(records)
    legend = of_class(root, "legend")[0]
    assert texts(legend)[:31] == [f"state {i}" for i in range(31)]
    assert texts(legend)[31] == "9 others"
    samples = [(each.get("stroke"), each.get("stroke-dasharray")) for each in paths(legend)]
    assert len(set(samples[:32])) == 32


def test_a_failure_is_marked_where_it_happened() -> None:
    records = [
        *lived("a", (0.0, "fine"))[:2],
        AgentRecord(
            "a", 2, "failed", (4.0, 0.0), 4.0, what="ZeroDivisionError: division by zero, in Clock.tick at (4, 0)"
        ),
        AgentRecord("b", 0, "born", (0.0, 3.0), 0.0, what="Person", velocity=(1.25, -0.75)),
    ]
    root = drawn(records, until=50.0)
    (event,) = [each for each in of_class(root, "event") if "failed" in titles(each)[0]]
    assert {each.get("stroke") for each in event if each.get("stroke")} == {ALARM}
    assert "failure" in texts(of_class(root, "legend")[0])
    assert any(text.startswith("Failed: a: ZeroDivisionError: division by zero") for text in texts(root))
    assert any(text.startswith("ZeroDivisionError") for text in texts(of_class(root, "failures")[0]))
    # The picture ends there, and whoever was under way then has got as far.
    a, b = (points(of_class(each, "way")[0]) for each in of_class(root, "worldline"))
    assert a[-1][1] == b[-1][1]
    assert (b[0][0] - b[-1][0]) / (b[0][1] - b[-1][1]) == pytest.approx(0.6, abs=0.01)


def test_names_dont_overlap() -> None:
    for count in (2, 12, 30, 90):
        records = [each for i in range(count) for each in straight(f"agent-{i}", (0, i / 7), (9, i / 7 + i % 3))]
        root = drawn(records)
        boxes = []
        for group in of_class(root, "names"):
            for each in group:
                x, y, size = (float(each.get(key, "0")) for key in ("x", "y", "font-size"))
                boxes.append((x, y - size * 0.7, x + text_width(each.text or "", size), y))
        assert boxes
        left_out = [text for text in texts(root) if text.startswith("For want of room, ")]
        missing = count - len(boxes)
        said = f"For want of room, {'a name is' if missing == 1 else f'{missing} names are'} left out."
        assert left_out == ([said] if missing else [])
        for one, other in combinations(boxes, 2):
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


def test_with_few_agents_every_name_is_there() -> None:
    assert sorted(names(drawn(crowd(6, 2).records))) == sorted({record.agent for record in crowd(6, 2).records})


def test_the_scale_is_stated_where_light_isnt_at_45_degrees() -> None:
    root = drawn(ping(until=2000.0).records)
    (line,) = [text for text in texts(root) if text.startswith("Space is drawn")]
    stretch = float(re.findall(r"[\d.]+", line)[0])
    (x, y), (to_x, to_y) = arrows(root)[0]
    assert (to_x - x) / (y - to_y) == pytest.approx(stretch, rel=0.05)
    wide = drawn([*straight("a", (0, 0), (1, 0)), *straight("b", (0, 1e6), (1, 1e6))])
    assert any("times smaller than time" in text for text in texts(wide))
    assert not any(text.startswith("Space is drawn") for text in texts(drawn(ping().records)))


def test_a_field_is_drawn_as_it_is() -> None:
    run = ping(field=LambdaField(R=(1.0, 0.0)))
    lead, _, edge = paths(of_class(drawn(run.records, field=LambdaField(R=(1.0, 0.0))), "cone")[0])
    start, apex = points(lead)
    assert points(edge)[1] == apex
    assert apex[1] < start[1]
    run = ping(field=LambdaField(c=4.0))
    root = drawn(run.records, field=LambdaField(c=4.0))
    curve = points(paths(of_class(root, "cone")[0])[-1])
    assert len(curve) > 20
    (x, y), end = arrows(root)[0]
    # What the picture shows agrees with what happened: the first lambda is absorbed on the hyperbola.
    unit = (y - end[1]) / (4.0 + 9.0) ** 0.5
    for curve_x, curve_y in curve:
        away = (curve_x - x) / unit
        assert (y - curve_y) / unit == pytest.approx((away * away + 4.0) ** 0.5, abs=0.01)


def test_cones_can_be_left_out() -> None:
    root = drawn(ping().records, cones=False)
    assert not of_class(root, "cone")
    assert "light cone" not in texts(root)


def test_boundaries_are_drawn_where_they_are() -> None:
    records = straight("a", (0, 0), (4, 2))
    root = drawn(records, boundaries=[*box([0.0], [2.5]), Boundary([0.5, 1.0], 0.0, name="moving")])
    (way,) = (points(each) for each in of_class(root, "way"))
    unit = (way[1][0] - way[0][0]) / 2
    left, right, moving = (points(paths(each)[0]) for each in of_class(root, "boundary"))
    assert [x for x, _ in left] == [way[0][0]] * 2
    assert right[0][0] - left[0][0] == pytest.approx(2.5 * unit, abs=0.02)
    # Where t / 2 − x = 0 is where the agent is.
    assert moving[0] == pytest.approx(way[0], abs=0.02)
    assert moving[1] == pytest.approx(way[1], abs=0.02)
    assert {"x1 > 0", "x1 < 2.5"} <= set(texts(root))


def test_a_boundary_that_isnt_seen_from_the_side_isnt_drawn() -> None:
    records = straight("a", (0, 0, 0), (4, 2, 0))
    assert len(of_class(drawn(records, 3, axis=1, boundaries=box([0, 0], [2, 2])), "boundary")) == 2
    assert not of_class(drawn(records, 3, axis=1, boundaries=[Boundary([0, 1, 1], 1)]), "boundary")
    assert of_class(drawn(records, 3, axis=1, boundaries=[Boundary([0, 1, 0], 1)]), "boundary")
    assert not of_class(drawn(records, 3, boundaries=[Boundary([-1, 0, 0], 9)]), "boundary")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_number_of_dimensions(n: int) -> None:
    run = ping(n, field=LambdaField(c=1.0))
    root = drawn(run.records, n, field=LambdaField(c=1.0), until=run.until)
    assert sorted(names(root)) == ["alice", "bob"]
    assert len(of_class(root, "lambda")) == len([record for record in run.records if record.kind == "sent"])
    assert bool(of_class(root, "cone")) == (n > 1)
    assert ("x3" in texts(root)) == (n == 4)
    assert any("dimensions of space" in text for text in texts(root)) == (n > 2)


def test_without_space_lifelines_are_side_by_side() -> None:
    root = drawn(ping(1, field=LambdaField(c=1.0)).records, 1)
    alice, bob = (points(each) for each in of_class(root, "way"))
    assert alice[0][0] == alice[1][0] < bob[0][0] == bob[1][0]
    for start, end in arrows(root)[:-1]:
        assert {start[0], end[0]} == {alice[0][0], bob[0][0]}


def test_an_axis_can_be_chosen() -> None:
    records = [*straight("a", (0, 0, 0), (4, 2, 0)), *straight("b", (0, 0, 1), (4, 0, 1))]
    across = points(of_class(drawn(records, 3, axis=1), "way")[0])
    assert across[0][0] != across[1][0]
    along = points(of_class(drawn(records, 3, axis=2), "way")[0])
    assert along[0][0] == along[1][0]


def test_nothing_and_little_can_be_drawn() -> None:
    for n in (1, 2, 3):
        root = drawn([], n, title="Empty", until=5.0)
        assert "Nothing happened: there are no records." in texts(root)
        assert "Empty" in texts(root)
        lone = drawn([AgentRecord("only", 0, "born", (1.0,) * n, 0.0)], n)
        assert names(lone) == ["only"]
    assert "1 agent, no lambdas" in texts(drawn(straight("a", (0, 0), (0, 0))))
    assert "Nothing happened: there are no records." in texts(drawn(ping().records, until=-1.0))


@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e12, 1e99])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_huge_and_tiny_coordinates(size: float, offset: float) -> None:
    def scaled(*at: float) -> tuple[float, ...]:
        return tuple((each + offset) * size for each in at)

    records = [*straight("a", scaled(0, 0), scaled(9, 1)), *straight("b", scaled(0, 4), scaled(9, 4))]
    records += lambdas("b", "a", (scaled(1, 4), scaled(4.6, 0.4)))
    svg = minkowski_svg(records, 2)
    assert not re.search(r"nan|inf\b", svg)
    root = parsed(svg)
    assert 300 < float(root.get("width", "0")) < 2_000
    assert 300 < float(root.get("height", "0")) < 2_500
    ((x, y), (to_x, to_y)) = arrows(root)[0]
    assert x - to_x == pytest.approx(y - to_y, abs=0.03)


def test_far_away_and_close_together() -> None:
    records = [*straight("a", (1e9, 1e9), (1e9 + 2, 1e9)), *straight("b", (1e9, 1e9 + 1), (1e9 + 2, 1e9 + 1))]
    found = texts(drawn(records))
    assert "lab time − 1000000000" in found
    assert any(text.startswith("x − ") for text in found)


def test_the_end_cuts_and_extends() -> None:
    records = straight("a", (0, 0), (10, 5))
    cut = points(of_class(drawn(records, until=4.0), "way")[0])
    assert (cut[0][1] - cut[1][1]) / (cut[1][0] - cut[0][0]) == pytest.approx(2.0, abs=0.01)
    root = drawn(records, until=20.0)
    assert "20" in texts(root)
    assert "20" not in texts(drawn(records))


def test_too_much_is_thinned_and_the_picture_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in (("AGENTS_MAX", 40), ("LAMBDAS_MAX", 30), ("EVENTS_MAX", 20)):
        assert getattr(diagram, limit) >= 10 * most
        monkeypatch.setattr(diagram, limit, most)
    records = [each for i in range(50) for each in straight(f"a{i}", (0, i), (9, i))]
    root = drawn(
        [*records, *lambdas("a0", "a4", ((1.0, 0.0), (5.0, 4.0))), *lambdas("a0", "a2", ((1.0, 0.0), (3.0, 2.0)))]
    )
    assert len(of_class(root, "worldline")) == 40
    assert [titles(each)[0][:13] for each in of_class(root, "lambda")] == ["call, a0 → a2"]
    assert "Only 40 of 50 agents are drawn, and lambdas between these." in texts(root)
    assert titles(of_class(root, "worldline")[-1])[0].startswith("a49:")
    ways = [((0.1 * i, 0.0), (0.1 * i + 1, 1.0)) for i in range(80)]
    root = drawn([*records[:4], *lambdas("a0", "a1", *ways)])
    assert len(of_class(root, "lambda")) == 30
    assert len(of_class(root, "event")) == 20
    assert {"Only 30 of 80 lambdas are drawn.", "Only 20 of 160 events are marked."} <= set(texts(root))
    assert "2 agents, 80 lambdas: 80 absorbed" in texts(root)


def test_ten_thousand_records_are_drawn_soon() -> None:
    records: list[AgentRecord] = []
    for i in range(200):
        records += straight(f"a{i}", (0, i), (3, i + i % 3), (9, i))
    for i in range(199):
        ways = [((3.0 + j / 5, float(i)), (4.0 + j / 5, i + 1.0)) for j in range(24)]
        records += lambdas(f"a{i}", f"a{i + 1}", *ways)
    assert len(records) > 10_000
    started = time.process_time()
    svg = minkowski_svg(records, 2)
    assert time.process_time() - started < 6.0
    assert len(svg) < 3_000_000


def test_whatever_names_are_the_picture_is_well_formed() -> None:
    evil = "<b>\"&'\x00</svg>"
    root = drawn([*straight(evil, (0, 0), (9, 0)), *lambdas(evil, evil, ((1.0, 0.0), (2.0, 0.0)))], title=evil)
    assert names(root) == ["<b>\"&'\ufffd</svg>"]
    assert titles(root)[0] == "<b>\"&'\ufffd</svg>"


def test_a_long_name_is_shortened_but_told_under_the_mouse() -> None:
    root = drawn(straight("n" * 90, (0, 0), (9, 0)))
    assert names(root) == ["n" * 25 + "…"]
    assert titles(of_class(root, "worldline")[0])[0].startswith("n" * 90)


@pytest.mark.parametrize("axis", [0, 2, "1"])
def test_wrong_axes_are_refused(axis: Any) -> None:
    with pytest.raises(UsageError, match="axis"):
        minkowski_svg(ping().records, 2, axis=axis)


def test_the_order_of_records_doesnt_matter() -> None:
    run = crowd(5, 3)
    assert minkowski_svg(run.records[::-1], 3) == minkowski_svg(run.records, 3)
