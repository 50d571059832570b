"""Monitors: values over time, and their means."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.actors import Actor, Steps, error_of, stage
from worldline.kernel import Monitor, process
from worldline.model import NS, SECOND, ConfigurationError, ModelError, UsageError
from worldline.model.errors import shown


def monitor(*recorded: tuple[int, Any]) -> Monitor:
    made = Monitor()
    for time, value in recorded:
        made.record(time, value)
    return made


def test_a_value_holds_from_its_time_on_until_the_next() -> None:
    made = monitor((10, 1), (20, 5), (20, 6), (30, None))
    assert [made.at(time) for time in (0, 9, 10, 19, 20, 29, 30, 1_000)] == [None, None, 1, 1, 6, 6, None, None]
    assert list(made) == [(10, 1), (20, 5), (20, 6), (30, None)]
    assert (len(made), made.times, made.values) == (4, [10, 20, 20, 30], [1, 5, 6, None])
    assert repr(made) == "<Monitor of 4 values>"


def test_the_mean_of_one_moment_is_the_value() -> None:
    assert monitor((5, 7)).mean() == 7.0
    assert monitor((5, 7)).mean(until=5) == 7.0
    assert monitor((5, 7)).mean(until=9) == 7.0
    assert type(monitor((5, 7)).mean()) is float


def test_the_last_value_counts_until_the_end() -> None:
    made = monitor((0, 0), (10, 4))
    assert made.mean() == 0  # It isn't known yet how long it holds.
    made.end = 40
    assert made.mean() == 4 * 30 / 40
    assert made.mean(until=20) == 4 * 10 / 20
    made.record(50, 1)  # The run goes on.
    assert made.mean() == 4 * 40 / 50


def test_times_are_nanoseconds_or_text() -> None:
    made = Monitor()
    made.record("1s", 1)
    made.record("3s", 5)
    assert made.times == [SECOND, 3 * SECOND]
    assert [made.at(time) for time in ("999ms", "1s", "2.5s", 3 * SECOND)] == [None, 1, 1, 5]
    assert made.mean(until="4s") == made.mean(until=4 * SECOND) == 7 / 3
    for wrong in (1.5, True, "soon", -1):
        with pytest.raises(ConfigurationError, match="isn't a time"):
            made.at(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="isn't a time"):
            made.mean(until=wrong)  # type: ignore[arg-type]


def test_values_are_recorded_in_the_order_of_their_times() -> None:
    with pytest.raises(UsageError, match="a value for 4ns can't be recorded after one for 5ns"):
        monitor((5, 1), (4, 2))


def test_there_is_no_mean_of_what_is_no_number() -> None:
    for values in (("rain", "sun"), (None, 1), (1, None)):
        with pytest.raises(UsageError, match="only numbers have a mean"):
            monitor(*((10 * place, value) for place, value in enumerate(values))).mean(until=20)
    with pytest.raises(UsageError, match="only numbers have a mean"):
        monitor((5, "7")).mean()


def test_there_is_no_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was recorded"):
        Monitor().mean()
    with pytest.raises(ValueError, match="nothing was recorded before 4ns: the first value is of 5ns"):
        monitor((5, 7)).mean(until=4)
    assert Monitor().at(5) is None
    assert list(Monitor()) == []


RECORDED = st.lists(st.tuples(st.integers(0, 40), st.integers(-9, 9)), min_size=1, max_size=12).map(
    lambda pairs: sorted(pairs, key=lambda pair: pair[0])
)


@given(RECORDED, st.integers(0, 50))
def test_value_and_mean_are_those_that_counting_nanoseconds_gives(recorded: list[tuple[int, int]], until: int) -> None:
    made = monitor(*recorded)
    held = {}
    for time in range(60):
        values = [value for since, value in recorded if since <= time]
        held[time] = values[-1] if values else None
        assert made.at(time) == held[time]
    first = recorded[0][0]
    if until > first:
        total = sum(held[time] or 0 for time in range(first, until))
        assert made.mean(until=until) == pytest.approx(total / (until - first))


def test_monitors_compare_by_what_they_hold() -> None:
    assert monitor((1, 2)) == monitor((1, 2))
    assert monitor((1, 2)) != monitor((1, 3))
    assert monitor((1, 2)) != [(1, 2)]
    assert pickle.loads(pickle.dumps(monitor((1, 2)))) == monitor((1, 2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(monitor())


def test_an_entity_records_values_as_of_now() -> None:
    def act(me: Actor) -> Steps:
        me.record("level", 1)
        yield 5 * NS
        me.record("level", 2)
        me.record("weather", "rain")

    result = stage(act, z=act).run()
    assert result.monitors == {
        ("a", "level"): monitor((0, 1), (5, 2)),
        ("a", "weather"): monitor((5, "rain")),
        ("z", "level"): monitor((0, 1), (5, 2)),
        ("z", "weather"): monitor((5, "rain")),
    }
    assert list(result.monitors) == sorted(result.monitors)


def test_what_is_recorded_is_part_of_the_history() -> None:
    def digest(*values: Any) -> bytes:
        return stage(lambda me: [me.record("x", value) for value in values] and None).run().digest

    assert digest(1) == digest(1)
    histories = [digest(), digest(1), digest(2), digest(1, 2), digest(2, 1), digest("1"), digest([1])]
    assert len(set(histories)) == len(histories)


def test_what_somebody_recorded_who_was_created_and_has_ended_is_part_of_the_history() -> None:
    def digest(value: int, name: str) -> bytes:
        def brief(me: Any) -> Steps:
            me.record("x", value)
            yield 1 * NS

        return stage(lambda me: me.create(process(brief), name) and None).run().digest

    assert digest(1, "kim") == digest(1, "kim")
    assert len({digest(1, "kim"), digest(2, "kim"), digest(1, "lee")}) == 3


@pytest.mark.parametrize("value", [object(), [1, {2: object()}], error_of])
def test_what_cannot_be_part_of_the_history_is_refused(value: object) -> None:
    error = error_of(lambda me: me.record("queue", value), ModelError)
    assert f"queue can't be {shown(value)}" in str(error)
    assert "(record numbers, text" in str(error)
    assert error.participant == "a"


def test_a_created_entity_that_has_ended_leaves_its_monitors_too() -> None:
    def customer(me: Any) -> Steps:
        me.record("waited", 5)
        yield 1 * NS

    def act(me: Actor) -> Steps:
        me.create(process(customer), "ann")
        yield 10 * NS

    assert stage(act).run().monitors == {("a/ann", "waited"): monitor((0, 5))}


def test_results_of_a_run_that_goes_on_show_what_was_recorded_so_far() -> None:
    def act(me: Actor) -> Steps:
        while True:
            me.record("x", me.now)
            yield 10 * NS

    simulation = stage(act)
    assert len(simulation.run(until=25).monitors["a", "x"]) == 3
    assert simulation.result().monitors["a", "x"].mean() == (10 * 10 + 20 * 5) / 25
    assert len(simulation.run(until=50).monitors["a", "x"]) == 5
    assert simulation.result().monitors["a", "x"].mean() == 20


def test_a_mean_ends_with_the_run_or_with_the_entity() -> None:
    def brief(me: Any) -> Steps:
        me.record("x", 0)
        yield 10 * NS
        me.record("x", 8)
        yield 10 * NS  # It ends at 20.

    def act(me: Actor) -> Steps:
        me.create(process(brief), "kim")
        me.record("x", 0)
        yield 10 * NS
        me.record("x", 8)
        yield 70 * NS

    def leave(me: Actor) -> Steps:
        yield from brief(me)
        me.end()

    for until, end in ((None, 80), (160, 160)):
        monitors = stage(act, c=leave).run(until=until).monitors
        assert {name: made.end for (name, _), made in monitors.items()} == {"a": end, "a/kim": 20, "c": 20}
        assert {name: made.mean() for (name, _), made in monitors.items()} == {
            "a": 8 * (end - 10) / end,
            "a/kim": 4,
            "c": 4,
        }


def test_a_monitor_that_isnt_there_is_refused_with_the_nearest_name() -> None:
    def act(me: Actor) -> None:
        me.record("queue", 1)

    monitors = stage(act).run().monitors
    assert monitors["a", "queue"].values == [1]
    assert ("a", "queu") not in monitors
    assert monitors.get(("a", "queu")) is None
    for key, advice in {
        ("a", "queu"): "did you mean 'queue'?",
        ("a", "zzz"): "a has recorded queue",
        ("A!", "queue"): 'write monitors["entity", "name"], of what was recorded',
        "queue": 'write monitors["entity", "name"], of what was recorded',
    }.items():
        with pytest.raises(UsageError, match=r"there is no monitor") as refused:
            monitors[key]  # type: ignore[index]
        assert refused.value.advice == advice
