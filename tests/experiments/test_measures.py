"""What runs measure: the same in every room, exact, and independent of who reports first."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import worldline
from worldline import Federation, Observer, Participant, Program
from worldline.errors import ModelError, UsageError
from worldline.experiments.measures import FieldMonitors, MeasuredSeries, RunMeasures, histogram, own_numbers
from worldline.history.monitor import Monitor, Monitors
from worldline.kernel import Entity, Simulation
from worldline.nodes import Algorithm, Event, Node
from worldline.nodes.trial import Trial
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9))
observations = st.lists(st.tuples(st.integers(0, 1000), numbers), min_size=1, max_size=30).map(
    lambda found: sorted(found, key=lambda each: each[0])
)


def monitor(values: list[tuple[int, float]], end: int = 0) -> Monitor:
    made = Monitor()
    for at, value in values:
        made.record(at, value)
    made.end = end
    return made


@given(observations, observations, st.integers(1000, 2000))
def test_statistics_are_exact(first: list[tuple[int, float]], second: list[tuple[int, float]], end: int) -> None:
    found = MeasuredSeries([("a", monitor(first, end)), ("b", monitor(second, end))])
    values = sorted(value for _, value in first + second)
    mean = sum(map(Fraction, values)) / len(values)
    assert found.statistic("mean") == pytest.approx(float(mean), rel=1e-15, abs=1e-300)
    assert found.statistic("count") == len(values)
    assert (found.statistic("min"), found.statistic("max")) == (values[0], values[-1])
    for percent in (50, 90, 99):
        assert found.statistic(f"p{percent}") == values[ceil(percent * len(values) / 100) - 1]
    held = Fraction(0)
    for series in (first, second):
        for (at, value), (until, _) in zip(series, [*series[1:], (end, 0)], strict=True):
            held += Fraction(value) * (until - at)
    lasted = 2 * end - first[0][0] - second[0][0]
    if lasted:
        scale = max(abs(value) for value in values)
        assert found.statistic("time_mean") == pytest.approx(float(held / lasted), rel=1e-12, abs=scale * 1e-12)


@given(observations, observations)
def test_nothing_depends_on_the_order_of_members(a: list[tuple[int, float]], b: list[tuple[int, float]]) -> None:
    pooled = [Monitors({("x", "wait"): monitor(a), ("y", "wait"): monitor(b)}) for _ in range(2)]
    swapped = Monitors(reversed(pooled[1].items()))
    assert RunMeasures(pooled[0], {}).columns() == RunMeasures(swapped, {}).columns()


@given(st.lists(numbers, max_size=50))
def test_histograms_of_runs_can_be_added_up(values: list[float]) -> None:
    whole = histogram(values)
    assert sum(count for _, _, count in whole) == len(values)
    for lower, upper, count in whole:
        inside = [each for each in values if (lower <= each < upper if lower >= 0 else lower < each <= upper)]
        assert count == (len(inside) if lower != upper else values.count(0))
    parts = {}
    for part in (histogram(values[::2]), histogram(values[1::2])):
        for lower, upper, count in part:
            parts[lower, upper] = parts.get((lower, upper), 0) + count
    assert parts == {(lower, upper): count for lower, upper, count in whole}


def test_warm_up_leaves_out_what_was_before() -> None:
    values = [(0, 100), (10, 1), (20, 3)]
    found = MeasuredSeries([("a", monitor(values, 30))], 15)
    assert (found.statistic("count"), found.statistic("mean"), found.statistic("time_mean")) == (1, 3, 7 / 3)
    steady = MeasuredSeries([("a", monitor([(at, 50.0 if at < 20 else at % 3) for at in range(200)], 200))], "mser5")
    assert steady.statistic("max") == 2
    assert steady.statistic("count") == 180


def test_a_column_is_named_by_series_or_member() -> None:
    found = RunMeasures(
        Monitors({("a", "wait"): monitor([(0, 1)]), ("b", "wait"): monitor([(0, 3)])}), {"late": 2}, facts={"events": 9}
    )
    assert found.columns(["wait.mean", "b/wait.mean", "late", "events"]) == {
        "wait.mean": 2.0,
        "b/wait.mean": 3.0,
        "late": 2,
        "events": 9,
    }
    with pytest.raises(UsageError, match=r"nothing measures 'wiat.mean' \(did you mean 'wait.mean'\?\)"):
        found.columns(["wiat.mean"])
    with pytest.raises(UsageError, match="wait is many values"):
        found.columns(["wait"])


@pytest.mark.parametrize("said", [3, {"late": "much"}, {"late": float("nan")}, {3: 4}])
def test_what_measures_returns_must_be_numbers(said: object) -> None:
    with pytest.raises(UsageError, match=r"measures\(\)"):
        own_numbers(said, "shop")


# -- Every room


class Counter(Entity):
    def start(self) -> object:
        for number in range(3):
            self.measure("number", number)
            yield "10ns"


class Greeter(Node):
    def execute(self, event: Event) -> None:
        self.measure("number", self.id)


class Still(Agent):
    def count(self, number: int) -> None:
        self.measure("number", number)
        if number < 2:
            self.after(1.0, Still.count, number + 1)


def counting(self: Participant) -> None:
    for number in range(3):
        self.measure("number", number)
        self.advance(by="1s")


def kernel() -> worldline.Outcome:
    simulation = Simulation()
    simulation.add("counter", Counter())
    return simulation.run()


def federation() -> worldline.Outcome:
    return worldline.run(Federation({"counter": Program(counting, publishes=[])}, until="10s"))


def nodes() -> worldline.Outcome:
    return Trial(algorithm=Algorithm(name="greetings", node=Greeter, topology="ring:3")).run()


def spacetime() -> worldline.Outcome:
    with ForwardSimulation(Minkowski(2)) as simulation:
        Still().count(0)
    return simulation.run(until=5.0)


@pytest.mark.parametrize("run", [kernel, federation, nodes, spacetime])
def test_every_room_measures_in_the_same_way(run: object) -> None:
    outcome = run()  # type: ignore[operator]
    assert RunMeasures(outcome.monitors, {}).columns(["number.mean", "number.count"]) == {
        "number.mean": 1.0,
        "number.count": 3,
    }


def test_measures_are_in_no_digest_and_observers_are_told() -> None:
    class Listener(Observer):
        heard: list[tuple[str, int, bytes | None]]

        def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: object = None) -> None:
            if topic == "worldline/measure":
                self.heard.append((who, at, payload))

    def silent(self: Participant) -> None:
        for _ in range(3):
            self.advance(by="1s")

    listener = Listener()
    listener.heard = []
    loud = worldline.run(Federation({"counter": Program(counting, publishes=[])}, until="10s"), observer=listener)
    assert loud.digest == worldline.run(Federation({"counter": Program(silent, publishes=[])}, until="10s")).digest
    assert listener.heard == [("counter", each * 10**9, b'{"number":%d}' % each) for each in range(3)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "3", None])
def test_only_finite_numbers_are_measured(value: object) -> None:
    class Wrong(Entity):
        def start(self) -> None:
            self.measure("number", value)  # type: ignore[arg-type]

    simulation = Simulation()
    simulation.add("wrong", Wrong())
    with pytest.raises(ModelError, match="number can't be"):
        simulation.run()


def test_workers_measure_the_same(tmp_path: Path) -> None:
    def made() -> Simulation:
        simulation = Simulation()
        for name in "abcd":
            simulation.add(name, Counter())
        return simulation

    assert made().run(executor="processes(2)").monitors == made().run().monitors


def test_fields_of_messages_are_series() -> None:
    fields = FieldMonitors(["pose.x", "scan.ranges[1]", "level", "pose.name"])
    fields.sent("a", 0, "pose", 5, b'{"x": 1.5, "name": "arm"}', 6)
    fields.sent("a", 1, "pose", 7, b'{"y": 1}', 8)
    fields.sent("b", 0, "scan", 7, b'{"ranges": [1, 2]}', 8)
    fields.sent("b", 1, "level", 9, b"3", 10)
    fields.sent("b", 2, "poses", 9, b"\xff", 10)
    assert {key: list(each) for key, each in fields.monitors.items()} == {
        ("a", "pose.x"): [(5, 1.5)],
        ("b", "scan.ranges[1]"): [(7, 2)],
        ("b", "level"): [(9, 3)],
    }
    assert "pose.name" in str(fields.missing())
    with pytest.raises(UsageError, match="its payloads aren't JSON"):
        fields.sent("a", 2, "pose", 9, b"\xff", 10)
