"""Statistics: checked against closed forms, against scipy, and by how often intervals cover the truth."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, factorial, inf
from pathlib import Path

import pytest

import worldline
from worldline.errors import ConfigurationError, UsageError
from worldline.experiments import (
    Interval,
    batch_means,
    comparisons,
    estimates,
    interval,
    mser5,
    paired_interval,
    welch_interval,
)
from worldline.experiments.report import lines
from worldline.experiments.statistics import looks, runs_wanted
from worldline.model.randomness import Stream

MODELS = Path(__file__).parent / "models"
EXPERIMENTS = 1_000


def draws(count: int, *names: str) -> list[float]:
    stream = Stream(0, *names)
    return [stream.expovariate(1.0) for _ in range(count)]


def test_intervals_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")  # Here, since it takes longer to load than all else in this room.
    first, second = draws(20, "first"), draws(30, "second")
    found = interval(first)
    low, high = stats.ttest_1samp(first, 0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    low, high = stats.ttest_rel(second[:20], first).confidence_interval(0.95)
    found = paired_interval(first, second[:20])
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    low, high = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    found = welch_interval(first, second)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_intervals_of_little_and_of_nothing() -> None:
    assert interval([3.0]) == Interval(3.0, inf, 1)
    assert str(interval([3.0])) == "3"
    assert interval([2.0, 2.0]).half_width == 0
    assert welch_interval([1.0], [2.0, 3.0]).half_width == inf
    assert (Interval(0.0, 1.0, 5).relative, Interval(0.0, 0.0, 5).relative) == (inf, 0.0)
    with pytest.raises(UsageError, match="no values"):
        interval([])
    with pytest.raises(ConfigurationError, match="level"):
        interval([1.0, 2.0], 95)


def test_mser_finds_the_end_of_a_transient() -> None:
    noise = draws(2_000, "noise")
    assert mser5([value + max(0.0, 20 - place / 10) for place, value in enumerate(noise)]) in range(150, 300, 5)
    assert mser5(noise) < 300
    assert mser5([1.0] * 100) == mser5([1.0] * 3) == 0
    assert mser5([float(place) for place in range(100)]) == 50  # It never settles: no more than half is cut.


def test_looks_are_few_and_the_last_is_the_limit() -> None:
    assert looks(100) == [10, 15, 22, 33, 49, 73, 100]
    assert looks(5) == [5]


def test_it_must_be_precise_at_two_looks_in_a_row() -> None:
    assert runs_wanted(lambda count: [[1.0] * count], 0.5, 100) == 15
    assert runs_wanted(lambda count: None if count > 10 else [[1.0] * count], 0.5, 100) == 15  # The next look.
    assert runs_wanted(lambda count: [[1.0] * count, [1.0] if count < 30 else [1.0] * count], 0.5, 100) == 49
    assert runs_wanted(lambda _: [[]], 0.5, 100) == 100
    assert runs_wanted(lambda count: [[1.0 + 2 * (each % 2) for each in range(count)]], 1e-9, 33) == 33


# -- How often intervals cover


def covered(estimate: Callable[[Stream], Interval], truth: float) -> float:
    found = [estimate(Stream(seed, "experiment")) for seed in range(EXPERIMENTS)]
    return sum(each.covers(truth) for each in found) / EXPERIMENTS


def mean_of_ten(stream: Stream) -> float:
    return sum(stream.expovariate(1.0) for _ in range(10)) / 10


def test_intervals_over_replications_cover_19_of_20_times() -> None:
    assert 0.93 <= covered(lambda stream: interval([mean_of_ten(stream) for _ in range(10)]), 1.0) <= 0.97


def test_an_interval_that_is_too_narrow_would_be_noticed() -> None:
    def wrong(stream: Stream) -> Interval:
        found = interval([mean_of_ten(stream) for _ in range(10)])
        return found._replace(half_width=found.half_width * 0.8)

    assert covered(wrong, 1.0) < 0.92


def test_the_sequential_rule_keeps_its_coverage() -> None:
    def until_precise(stream: Stream) -> Interval:
        values: list[float] = []

        def sample(count: int) -> list[list[float]]:
            values.extend(mean_of_ten(stream) for _ in range(count - len(values)))
            return [values]

        runs_wanted(sample, 0.2, 500)
        return interval(values)

    assert covered(until_precise, 1.0) >= 0.93


def test_batch_means_of_one_long_run_cover() -> None:
    def long_run(stream: Stream) -> Interval:
        level, values = 0.0, []
        for _ in range(2_000):  # Each value keeps half of the one before, so they aren't independent.
            level = 0.5 * level + stream.expovariate(1.0)
            values.append(level)
        return batch_means(values[mser5(values) :])

    found = [long_run(Stream(seed, "experiment")) for seed in range(200)]
    assert 0.9 <= sum(each.covers(2.0) for each in found) / len(found) <= 0.985
    with pytest.raises(UsageError, match="aren't enough"):
        batch_means([1.0] * 30)


# -- Closed forms, with runs of the kernel


def erlang_c(servers: int, load: float) -> float:
    """Return the mean wait in an M/M/c queue, in mean service times."""
    offered = servers * load
    busy = offered**servers / factorial(servers) / (1 - load)
    waits = busy / (sum(offered**each / factorial(each) for each in range(servers)) + busy)
    return waits / (servers * (1 - load))


@pytest.mark.parametrize(
    ("settings", "truth"),
    [
        ({"load": 0.5}, 0.5 / (1 - 0.5)),  # M/M/1
        ({"load": 0.5, "fixed": True}, 0.5 / (2 * (1 - 0.5))),  # M/D/1
        ({"load": 0.6, "servers": 3}, erlang_c(3, 0.6)),  # M/M/c
    ],
    ids=["M/M/1", "M/D/1", "M/M/3"],
)
def test_queues_wait_as_their_closed_forms_say(tmp_path: Path, settings: dict[str, object], truth: float) -> None:
    table = worldline.sweep(
        MODELS / "station.py",
        {**settings, "customers": 1_000},
        seeds=15,
        warm_up="100ms",
        measures=["wait.mean"],
        path=tmp_path / "queue.sweep",
        executor="inline",
    )
    found = estimates(table, "wait.mean")[0]
    assert found.covers(truth)
    assert found.relative < 0.3


def test_an_epidemic_ends_as_its_closed_form_says(tmp_path: Path) -> None:
    table = worldline.sweep(MODELS / "contagion.py", seeds=20, path=tmp_path / "sir.sweep", executor="inline")
    spared = 0.5
    for _ in range(200):  # s = s0 exp(-R0 (1 - s))
        spared = 0.98 * exp(-2.0 * (1 - spared))
    assert estimates(table, "spared")[0].covers(spared)


def test_common_draws_need_fewer_runs(tmp_path: Path) -> None:
    def swept(common: bool) -> list[str]:
        table = worldline.sweep(
            MODELS / "station.py",
            {"load": [0.5, 0.55], "customers": 100},
            seeds=30,
            common=common,
            measures=["wait.mean"],
            path=tmp_path / f"{common}.sweep",
            executor="inline",
        )
        widths.append(comparisons(table, "wait.mean")[0].difference.half_width)
        return lines(table)

    widths: list[float] = []
    with_them, without = swept(True), swept(False)
    assert widths[0] < 0.5 * widths[1]
    assert "paired, since their draws are common" in with_them[4]
    assert "independent runs" in without[4]
    assert int(with_them[-1].rpartition("unpaired: ")[2].split()[0].replace(",", "")) > 100


def test_antithetic_pairs_narrow_the_interval(tmp_path: Path) -> None:
    widths = [
        estimates(
            worldline.sweep(
                MODELS / "station.py",
                {"load": 0.5, "customers": 100},
                seeds=60,
                antithetic=antithetic,
                path=tmp_path / f"{antithetic}.sweep",
                executor="inline",
            ),
            "wait.mean",
        )[0].half_width
        for antithetic in (True, False)
    ]
    assert widths[0] < widths[1]


@pytest.mark.soak
def test_intervals_of_kernel_runs_cover_the_mm1_queue(tmp_path: Path) -> None:
    """A thousand experiments of ten runs each, of a queue whose closed form is known, through whole sweeps."""
    table = worldline.sweep(
        MODELS / "station.py",
        {"load": 0.3, "customers": 1_000},
        seeds=10 * EXPERIMENTS,
        warm_up="30ms",
        measures=["wait.mean"],
        path=tmp_path / "coverage.sweep",
    )
    values = list(table.samples("wait.mean")[0].values())
    found = [interval(values[start : start + 10]) for start in range(0, len(values), 10)]
    assert 0.93 <= sum(each.covers(0.3 / 0.7) for each in found) / EXPERIMENTS <= 0.97
