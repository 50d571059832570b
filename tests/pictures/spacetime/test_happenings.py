"""What pictures are made of: ways without the set-up's jumps, lambdas and their fates, and ends that cut."""

from __future__ import annotations

import pytest

from tests.pictures.spacetime.runs import crowd, lambdas, ping, straight
from worldline.model.errors import UsageError
from worldline.pictures.spacetime.happenings import described, failures_of, natural, thinned, told
from worldline.spacetime import AgentRecord, LambdaField


def test_an_agent_begins_where_the_set_up_puts_it() -> None:
    story = told(ping().records, 2, 12.0, None)
    assert [(life.name, life.corners, sorted(life.jumps), life.end) for life in story.lives] == [
        ("alice", [(0.0, 0.0), (12.0, 0.0)], [], "ended"),
        ("bob", [(0.0, 3.0), (12.0, 3.0)], [], "ended"),
    ]
    assert (story.begin, story.end) == (0.0, 12.0)


def test_an_agent_may_be_put_before_the_beginning() -> None:
    # Records are sorted by lab time, so the jump comes first.
    records = [
        AgentRecord("a", 1, "jumped", (-5.0, 1.0), 0.0, emitted=(0.0, 0.0)),
        AgentRecord("a", 0, "born", (0.0, 0.0), 0.0),
        AgentRecord("a", 2, "ended", (3.0, 1.0), 8.0),
    ]
    (life,) = told(records, 2, None, None).lives
    assert life.corners == [(-5.0, 1.0), (3.0, 1.0)]


def test_a_later_jump_is_one() -> None:
    records = [
        *straight("a", (0, 0), (2, 1)),
        AgentRecord("a", 2, "timer", (3.0, 1.5), 3.0),
        AgentRecord("a", 3, "jumped", (8.0, 5.0), 3.0, emitted=(3.0, 1.5)),
        AgentRecord("a", 4, "ended", (9.0, 5.0), 4.0),
    ]
    (life,) = told(records, 2, None, None).lives
    assert life.corners == [(0.0, 0.0), (2.0, 1.0), (3.0, 1.5), (8.0, 5.0), (9.0, 5.0)]
    assert sorted(life.jumps) == [3]
    (cut,) = told(records, 2, 4.0, None).lives
    assert cut.corners[-1] == (4.0, pytest.approx(2.2))
    assert sorted(cut.jumps) == [3]
    assert cut.end == ""


def test_a_run_that_failed_ends_with_what_came_last() -> None:
    velocity = (1.25, 0.75)
    records = [
        AgentRecord("a", 0, "born", (0.0, 0.0), 0.0, velocity=(1.0, 0.0)),
        AgentRecord("a", 1, "failed", (4.0, 0.0), 4.0, what="why"),
        AgentRecord("b", 0, "born", (0.0, 1.0), 0.0, velocity=(1.0, 0.0)),
        AgentRecord("b", 1, "turned", (1.0, 1.0), 1.0, velocity=velocity),
        AgentRecord("c", 0, "born", (0.0, 5.0), 0.0, velocity=velocity),
        AgentRecord("c", 1, "waits", (2.0, 6.2), 1.6, peer="a"),
        AgentRecord("d", 0, "born", (0.0, 7.0), 0.0, velocity=velocity),
        AgentRecord("d", 1, "died", (1.0, 7.6), 0.8),
    ]
    story = told(records, 2, 30.0, None)
    assert story.end == 4.0
    assert {life.name: life.corners[-1] for life in story.lives} == {
        "a": (4.0, 0.0),
        "b": (4.0, pytest.approx(2.8)),  # It goes on as it did, since nothing happened to it.
        "c": (2.0, 6.2),  # It can't.
        "d": (1.0, 7.6),
    }
    assert failures_of(story) == ["Failed: a: why"]
    assert told(records, 2, 3.0, None).end == 3.0


def test_every_lambda_of_a_run_is_there_with_its_fate() -> None:
    run = crowd(8, 2, 20.0, 4.0)
    story = told(run.records, 2, run.until, LambdaField(c=0.01))
    sent = [record for record in run.records if record.kind == "sent"]
    absorbed = [record for record in run.records if record.kind == "absorbed"]
    fates = [flight.fate for flight in story.flights]
    assert len(fates) == len(sent)
    assert fates.count("absorbed") == len(absorbed) > 10
    assert {"vanished", "under way"} <= set(fates)
    for flight in story.flights:
        assert flight.emitted[0] <= flight.end[0] <= run.until
        assert abs(flight.end[1] - flight.emitted[1]) <= flight.end[0] - flight.emitted[0] + 1e-9


def test_what_nobody_absorbed_goes_as_fast_as_the_field_says() -> None:
    sent = AgentRecord("a", 9, "sent", (1.0, 0.0), 1.0, channel="c", order=0, what="f", peer="b")
    died = AgentRecord("b", 2, "died", (2.0, 4.0), 2.0)
    records = [*straight("a", (0, 0), (20, 0)), *straight("b", (0, 4), (2, 4))[:1], died, sent]
    (flight,) = told(records, 2, None, None).flights
    assert (flight.end, flight.fate) == ((5.0, 4.0), "vanished")
    (flight,) = told(records, 2, None, LambdaField(R=(2.0, 1.0), c=16.0)).flights
    assert flight.end == (1.0 + 2.0 + 5.0, 4.0)
    (flight,) = told(records, 2, 3.0, None).flights
    assert (flight.end, flight.fate) == ((3.0, 2.0), "under way")


def test_what_is_after_the_end_is_left_out() -> None:
    records = [*straight("a", (0, 0), (10, 5)), *straight("late", (7, 0), (9, 0))]
    records += lambdas("a", "a", ((1.0, 0.5), (2.0, 1.0)), ((1.0, 0.5), (9.0, 4.5)), ((8.0, 4.0), (9.0, 4.5)))
    story = told(records, 2, 5.0, None)
    assert [(life.name, life.corners) for life in story.lives] == [("a", [(0.0, 0.0), (5.0, 2.5)])]
    assert [(flight.end, flight.fate) for flight in story.flights] == [
        ((2.0, 1.0), "absorbed"),
        ((5.0, 2.5), "under way"),
    ]
    assert told(records, 2, -1.0, None).lives == []
    assert told(records, 2, 99.0, None).end == 99.0


def test_what_happens_at_one_point_is_one_moment() -> None:
    (alice, _) = told(ping().records, 2, None, None).lives
    assert [moment.at[0] for moment in alice.moments] == [0.0, 6.0, 12.0]
    assert described(alice.moments[1]) == "absorbed ping from bob; sent ping to bob"


def test_names_are_sorted_as_people_do_and_things_thinned_evenly() -> None:
    assert sorted(["a10", "a9", "b", "a"], key=natural) == ["a", "a9", "a10", "b"]
    assert thinned(range(100), 4) == [0, 33, 66, 99]
    assert thinned("abc", 3) == ["a", "b", "c"]
    assert thinned("abc", 1) == ["a"]
    assert thinned("abc", 0) == []


@pytest.mark.parametrize(("n", "until"), [(3, None), (0, None), (True, None), (2, float("nan")), (2, "5"), (2, True)])
def test_what_cant_be_is_refused(n: int, until: float | None) -> None:
    with pytest.raises(UsageError):
        told(ping().records, n, until, None)
