"""Animations of agents: what the page plays is what happened."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.pictures.portable import Page
from tests.pictures.spacetime.runs import crowd, lambdas, ping, straight
from tests.pictures.spacetime.test_looks import lived
from worldline.model.errors import UsageError
from worldline.pictures.spacetime import animation, animation_html
from worldline.spacetime import AgentRecord, Boundary, box


def played(records: list[AgentRecord], n: int, **options: Any) -> dict[str, Any]:
    return Page(animation_html(records, n, **options)).data


def ways(data: dict[str, Any]) -> dict[str, list[tuple[float, ...]]]:
    """Return the corners of all ways, in the coordinates of the run."""
    begin, moment, left, low, place = data["scale"]
    found = {}
    for name, way in zip(data["names"], data["ways"], strict=True):
        t = x = y = 0
        found[name] = []
        for start in range(0, len(way), 3):
            t, x, y = t + way[start], x + way[start + 1], y + way[start + 2]
            found[name].append((begin + t * moment, left + x * place, low + y * place))
    return found


def test_ways_are_where_agents_were() -> None:
    records = [*straight("a", (1, 0, 5), (3, 1, 5), (9, -2, 6)), *straight("b", (0, 4, 4), (9, 4, 4))]
    found = ways(played(records, 3))
    for corner, expected in zip(found["a"], [(1, 0, 5), (3, 1, 5), (9, -2, 6)], strict=True):
        assert corner == pytest.approx(expected, abs=0.01)
    for corner, expected in zip(found["b"], [(0, 4, 4), (9, 4, 4)], strict=True):
        assert corner == pytest.approx(expected, abs=0.01)


def test_lambdas_leave_and_arrive_when_they_did() -> None:
    run = ping(3)
    data = played(run.records, 3, until=run.until)
    _, moment, *_ = data["scale"]
    flights = [data["flights"][start : start + 10] for start in range(0, len(data["flights"]), 10)]
    began, times, ends = 0, [], []
    for wait, lasts, source, target, what, fate, *spots in flights:
        began += wait
        ends.append((spots[:2], spots[2:]))
        times.append((round(began * moment, 2), round(lasts * moment, 2), source, target, data["whats"][what], fate))
    assert times == [
        (0.0, 3.0, 0, 1, "ping", 0),
        (3.0, 3.0, 1, 0, "ping", 0),
        (6.0, 3.0, 0, 1, "ping", 0),
        (9.0, 3.0, 1, 0, "ping", 2),
    ]
    assert [ends[place] for place in (0, 2)] == [ends[0]] * 2
    assert ends[1] == ends[0][::-1]


def test_where_a_lambda_isnt_at_its_agent_is_said() -> None:
    died = AgentRecord("b", 2, "died", (2.0, 4.0, 0.0), 2.0)
    sent = AgentRecord("a", 9, "sent", (1.0, 0.0, 0.0), 1.0, channel="c", order=0, what="f", peer="b")
    records = [*straight("a", (0, 0, 0), (20, 0, 0)), *straight("b", (0, 4, 0), (2, 4, 0))[:1], died, sent]
    data = played(records, 3)
    assert data["flights"][6:] == [0, 0, 4_000, 0]
    assert data["died"] == [1]


def test_jumps_are_told_apart() -> None:
    data = played(crowd(8, 3, action="wrap", side=3.0).records, 3)
    corners = ways(data)
    pairs = list(zip(data["jumps"][::2], data["jumps"][1::2], strict=True))
    assert pairs
    for agent, corner in pairs:
        before, after = corners[data["names"][agent]][corner - 1 : corner + 1]
        assert max(abs(before[1] - after[1]), abs(before[2] - after[2])) == pytest.approx(6.0, abs=0.02)


def test_axes_are_chosen_and_a_line_is_flat() -> None:
    records = straight("a", (0, 1, 2, 3), (9, 1, 2, 3.5))
    data = played(records, 4, axes=(3, 1))
    assert (data["axes"], data["flat"]) == (["x3", "x1"], False)
    assert ways(data)["a"][-1] == pytest.approx((9, 3.5, 1), abs=0.01)
    assert played(records, 4, axes=(2,))["flat"]
    assert played(records, 4)["axes"] == ["x1", "x3"]
    assert played(ping(4).records, 4)["axes"] == ["x1", "x3"]
    assert played(ping().records, 2, axes=(1, 2))["flat"]
    line = played(ping().records, 2)
    assert (line["axes"], line["flat"]) == (["x"], True)
    assert 'id="trails"' in re.search(r"<label hidden>.*", animation_html(ping().records, 2)).group()  # type: ignore[union-attr]


def test_who_is_shown_how_and_since_when() -> None:
    records = [*lived("a", (0.0, "well"), (3.0, "ill")), *lived("b", (0.0, "ill"), end=6.0)]
    data = played(records, 2)
    assert data["looks"] == [["well", 0], ["ill", 1]]
    moment = data["scale"][1]
    shown = [data["shown"][start : start + 3] for start in range(0, len(data["shown"]), 3)]
    assert [(who, round(time * moment, 2), look) for who, time, look in shown] == [(0, 0, 0), (0, 3.0, 1), (1, 0, 1)]
    assert played(ping().records, 2)["looks"] == played(ping().records, 2)["shown"] == []
    many = [each for i in range(40) for each in lived(f"a{i}", (0.0, f"state {i}"))]
    assert played(many, 2)["looks"][-1] == ["9 others", -1]


def test_a_failure_is_told_and_ends_it() -> None:
    failed = AgentRecord("a", 1, "failed", (4.0, 0.0, 0.0), 4.0, what="<no>")
    records = [*straight("b", (0, 1, 0), (2, 1, 0))[:1], *straight("a", (0, 0, 0), (9, 0, 0))[:1], failed]
    html = animation_html(records, 3, until=9.0)
    page = Page(html)
    assert page.data["failures"] == [0, "<no>"]
    assert page.data["end"] * page.data["scale"][1] == pytest.approx(4.0)
    assert page.inside["span"].endswith("Failed: a: <no>")


@pytest.mark.parametrize("axes", [(1, 3), (0, 1), (1, 1), (1, 2, 3), 1, (), ("1", "2"), (True, 2)])
def test_wrong_axes_are_refused(axes: Any) -> None:
    with pytest.raises(UsageError, match=r"ax[ie]s"):
        animation_html(ping(3).records, 3, axes=axes)


def test_without_space_there_is_nothing_to_play() -> None:
    with pytest.raises(UsageError, match="minkowski_svg"):
        animation_html([], 1)


def test_walls_are_lines_in_the_units_of_the_page() -> None:
    records = [*straight("a", (0, 1, 1), (10, 5, 2)), *straight("b", (0, 1, 2), (10, 1, 2))]
    walls = [*box([0, 0], [6, 3]), Boundary([0.5, 1.0, 0.0], 0.0), Boundary([0.0, 0.0, 0.0, 1.0], 0.0)]
    data = played(records, 3, boundaries=walls)
    _, moment, left, low, place = data["scale"]
    at = [(p, q, r, s) for p, q, r, s in data["walls"]]
    assert len(at) == 5
    spots = [(r / p * place + left) if p else (r / q * place + low) for p, q, r, _ in at[:4]]
    assert spots == pytest.approx([0, 6, 0, 3], abs=0.01)
    p, _, r, s = at[4]
    assert (r + s * 10 / moment) / p * place + left == pytest.approx(5, abs=0.01)
    # The box is seen as a whole, although nobody went so far.
    x_least, y_least, x_most, y_most = data["box"]
    assert [left + x_least * place, low + y_least * place] == pytest.approx([0, 0], abs=0.01)
    assert [left + x_most * place, low + y_most * place] == pytest.approx([6, 3], abs=0.01)


def test_nothing_and_little_can_be_played() -> None:
    assert "Nothing happened" in animation_html([], 3)
    data = played([AgentRecord("only", 0, "born", (1.0, 2.0, 3.0), 0.0)], 3)
    assert (data["names"], data["ways"], data["end"]) == (["only"], [[0, 0, 0]], 0)
    left, bottom, right, top = (each * data["scale"][-1] for each in data["box"])
    assert (left, bottom, right, top) == pytest.approx((-1, -1, 1, 1))


@pytest.mark.parametrize("size", [1e-100, 1e99])
def test_huge_and_tiny_coordinates(size: float) -> None:
    records = straight("a", (0, 0, 0), (9 * size, 2 * size, -size))
    html = animation_html(records, 3)
    assert not re.search(r"NaN|Infinity", Page(html).inside["data"])
    assert ways(Page(html).data)["a"][-1] == pytest.approx((9 * size, 2 * size, -size), rel=0.001)


def test_the_end_cuts() -> None:
    data = played(straight("a", (0, 0, 0), (10, 5, 0)), 3, until=4.0)
    assert ways(data)["a"][-1] == pytest.approx((4, 2, 0), abs=0.01)
    assert data["end"] * data["scale"][1] == pytest.approx(4)


def test_too_much_is_thinned_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in (("AGENTS_MAX", 20), ("LAMBDAS_MAX", 10), ("CORNERS_MAX", 100)):
        assert getattr(animation, limit) >= 50 * most
        monkeypatch.setattr(animation, limit, most)
    records = [each for i in range(30) for each in straight(f"a{i}", *((t, i, 0.1 * (t % 2)) for t in range(20)))]
    records += lambdas("a0", "a29", *(((0.1 * i, 0.0, 0.0), (29 + 0.1 * i, 29.0, 0.0)) for i in range(40)))
    html = animation_html(records, 3)
    assert (
        "30 agents, 40 lambdas. 20 of the agents are shown. 10 of the lambdas are shown. Turns are simplified." in html
    )
    data = Page(html).data
    assert (len(data["names"]), len(data["flights"])) == (20, 100)
    assert sum(map(len, data["ways"])) <= 3 * 100


def test_simplified_ways_keep_their_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    run = crowd(8, 3, action="wrap", side=3.0)
    whole = played(run.records, 3)
    monkeypatch.setattr(animation, "CORNERS_MAX", 20)
    simple = played(run.records, 3)
    assert len(simple["jumps"]) == len(whole["jumps"]) > 0
    assert sum(map(len, simple["ways"])) < sum(map(len, whole["ways"]))


def test_a_thousand_agents_fit_into_200_kilobytes() -> None:
    records = []
    for i in range(1_000):
        x, y = i % 37 * 1.37, i % 41 * 1.13
        records += straight(f"agent-{i}", (0, x, y), (3, x + 1, y), (6, x, y + 1), (9, x, y))
        records += lambdas(
            f"agent-{i}", f"agent-{(i + 1) % 1_000}", ((1.0, x, y), (7.0, x, y)), ((2.0, x, y), (8.0, x, y))
        )
    assert len(animation_html(records, 3).encode()) < 200_000
