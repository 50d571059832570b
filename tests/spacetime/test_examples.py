"""Every example comes to what it must, and to the same on every executor."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from worldline.kernel import processes
from worldline.model import ConfigurationError, ModelError
from worldline.spacetime import ForwardSimulation, Shuffled, SpacetimeOutcome
from worldline.spacetime.causality import check
from worldline.spacetime.examples import NAMES, find
from worldline.spacetime.placement import Placing

PROBE = Path(__file__).parent.parent.parent / "examples" / "spacetime" / "probe.py"

LANDING = "lands, at x1 > 0.5, 16.6667 years old"

# What makes the larger ones small enough.
SMALL: dict[str, dict[str, Any]] = {"flock": {"birds": 8, "neighbors": 3}, "epidemic": {"people": 10, "reach": 4.0}}


def ran(name: str, executor: Any = "inline", **options: Any) -> tuple[ForwardSimulation, SpacetimeOutcome]:
    example = find(name)
    simulation = example.build(**options)
    return simulation, simulation.run(until=example.until, executor=executor)


def lines(result: SpacetimeOutcome) -> list[tuple[float, str, str]]:
    return [(record.at[0], record.agent, record.what) for record in result.records if record.kind == "log"]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_comes_to_what_it_must(name: str) -> None:
    simulation, result = ran(name)
    assert find(name).judged(simulation, result)
    assert result.events > 0


@pytest.mark.parametrize("name", NAMES)
def test_an_example_explains_itself(name: str) -> None:
    example = find(name)
    assert example.about.endswith(".")
    assert example.until is not None
    assert len((example.definition.module.__doc__ or "").splitlines()) > 3


def _alternate(residents: Any, count: int) -> dict[str, int]:
    """Place each agent elsewhere the more events it had."""
    return {each.name: (each.load + place) % count for place, each in enumerate(residents)}


EXECUTORS = (
    Shuffled(1),
    processes(2),
    processes(3, placement="channels"),
    processes(2, placement=Placing(_alternate, 0)),
)


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        pytest.param(
            name, executor, marks=((), pytest.mark.long, pytest.mark.soak, pytest.mark.soak)[(each - place) % 4]
        )
        for place, name in enumerate(NAMES)
        for each, executor in enumerate(EXECUTORS)
    ],
)
def test_an_example_is_the_same_on_every_executor(name: str, executor: Any) -> None:
    options = {"seed": 3, "trace": True, **SMALL.get(name, {})}
    simulation, expected = ran(name, **options)
    other, result = ran(name, executor, **options)
    assert result.digest == expected.digest
    assert result.records == expected.records
    assert find(name).judged(other, result) == find(name).judged(simulation, expected)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_keeps_the_laws(name: str) -> None:
    simulation, result = ran(name, trace=True, **SMALL.get(name, {}))
    verdict = check(result.records, simulation.space, simulation.field)
    assert verdict.violations == []
    assert verdict.absorbed > 0


@pytest.mark.parametrize("name", ["flock", "epidemic"])
def test_what_is_drawn_follows_from_the_seed(name: str) -> None:
    assert ran(name, seed=1, **SMALL[name])[1].digest != ran(name, seed=2, **SMALL[name])[1].digest


# --- What the formulas say ---


@pytest.mark.parametrize(("distance", "c"), [(1.0, 0.0), (0.5, 0.0), (0.3, 0.7), (0.0, 0.25)])
def test_a_way_takes_what_the_formula_says(distance: float, c: float) -> None:
    _, result = ran("ping", trace=True, distance=distance, c=c)
    way = sqrt(distance**2 + c)
    for number, (at, agent, _) in enumerate(lines(result)):
        assert at == pytest.approx(number * way, abs=1e-9)
        assert agent == ("Alice", "Bob")[number % 2]
    assert len(lines(result)) == result.events + 1


def test_an_introduction_has_its_place_in_the_targets_time() -> None:
    _, result = ran("introduction", trace=True, wait=1.0)
    assert [at for at, _, _ in lines(result)] == pytest.approx([1.0, 4.0, 9.0, 14.0])
    assert lines(result)[2][2] in ("Carol greets me, after 8 ticks", "Carol greets me, after 9 ticks")


def test_runners_age_less_than_the_judge() -> None:
    simulation, result = ran("relay", runners=1, slowest=0.8)
    judge: Any = simulation["judge"]
    runner: Any = simulation["runner-1"]
    assert judge.age_at_end == pytest.approx(2 * 6.0 / 0.8 + 0.25)
    assert runner.age_at_end == pytest.approx(2 * 6.0 / 0.8 * 0.6)
    assert result.events == 3


def test_stages_that_place_themselves_need_no_queues() -> None:
    placed, _ = ran("pipeline")
    at_rest, _ = ran("pipeline", placed=False)
    stages = [f"stage-{number}" for number in range(1, 5)]
    assert [getattr(placed[stage], "longest") for stage in stages] == [0, 0, 0, 0]  # noqa: B009 - Its class isn't known here.
    assert [getattr(at_rest[stage], "longest") for stage in stages] == [0, 6, 0, 4]  # noqa: B009


def test_who_is_out_of_reach_stays_well() -> None:
    simulation, result = ran("epidemic", people=6, reach=0.0)
    assert find("epidemic").judged(simulation, result) == "5 well, 0 ill, 1 immune"


# --- What is wrong ---


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("flock", {"birds": 1}),
        ("flock", {"neighbors": 0}),
        ("epidemic", {"people": 0}),
        ("relay", {"runners": 0}),
        ("pipeline", {"items": 0}),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="or more"):
        find(name).build(**parameters)


def test_an_outcome_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from worldline.spacetime.examples import relay

    simulation, result = ran("relay")
    monkeypatch.setattr(relay, "HAND_OVER", 0.5)
    with pytest.raises(
        ModelError,
        match=r"relay: its outcome isn't what it should be: .* \('runner-2', .*relay.py, line \d+",
    ):
        find("relay").judged(simulation, result)
    monkeypatch.setattr(relay, "LEG", None)
    with pytest.raises(ModelError, match=r"relay: its outcome\(\) failed: TypeError: .*relay.py, line \d+"):
        find("relay").judged(simulation, result)
