"""Every model on every executor gives one history: what the kernel promises, and what an executor must do to be done.

All that can be seen of a run is compared: digest, time, number of events, what was dropped, monitors, and the state of
every entity. `python -m tests.kernel.matrix` runs the whole matrix; `test_mpi` has the part with MPI in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from tests.kernel import matrix
from tests.kernel.culprits import family, gossips, hasty
from tests.kernel.models import MODELS, Observation, difference, observe
from worldline.kernel import build, processes
from worldline.model import HOUR
from worldline.processes.executor import Executor


@cache
def inline(name: str) -> Observation:
    return observe(MODELS[name].build(), MODELS[name].until)


def check(name: str, executor: Executor | str) -> None:
    found = observe(MODELS[name].build(), MODELS[name].until, executor)
    assert not difference(inline(name), found), difference(inline(name), found)


# -- All models


def placed_by_lot(name: str) -> dict[str, int]:
    """Place each entity somewhere; with some luck, neighbors are apart and a worker has hardly any."""
    random = Random(name)
    return {entity: random.randrange(3) for entity in MODELS[name].build().model().names}


COLUMNS: dict[str, Callable[[str], Executor]] = {
    "processes(1)": lambda _: processes(1),
    "processes(2)": lambda _: processes(2),
    "processes(4)": lambda _: processes(4),
    "round robin": lambda _: processes(2, placement="round robin"),
    "links": lambda _: processes(2, placement="links"),
    "by lot": lambda name: processes(3, placement=placed_by_lot(name)),
}


@pytest.mark.parametrize(
    ("name", "column"),
    [
        pytest.param(name, column, marks=((), pytest.mark.long, pytest.mark.soak)[(place + each) % 3])
        for place, name in enumerate(MODELS)
        for each, column in enumerate(COLUMNS)
    ],
)
def test_a_model_is_the_same_on_every_executor(name: str, column: str) -> None:
    """`make test`, `make test-long` and `make soak` run every model in two ways each."""
    check(name, COLUMNS[column](name))


@pytest.mark.parametrize("until", ["0", "1ns", "5ms", "1h"])
def test_ends_at_odd_moments(until: str) -> None:
    """Before anything, at the first event, at a moment at which a message arrives, long after all is over."""
    build_model = MODELS["errand"].build
    found = observe(build_model(), until, "processes(3)")
    assert not difference(observe(build_model(), until), found)


@pytest.mark.parametrize("name", MODELS)
def test_step_by_step(name: str) -> None:
    simulation, until = MODELS[name].build(), MODELS[name].until
    if until is None:
        while simulation.step():
            pass
    else:
        for part in (7, 3, 2, 1):
            simulation.run(simulation.now + (inline(name).now - simulation.now) // part)
    result = simulation.result()
    assert (result.digest.hex(), result.now, result.events) == inline(name)[:3]


def test_another_build_under_another_hash_seed() -> None:
    """Within one build and under one hash seed, the other tests compare; this one compares them with each other."""
    other = "plain" if build == "compiled" else "compiled"
    for column, name, found in matrix.reports(other, "4711", ["inline"]):
        expected = matrix.prints(name, "inline")
        assert found == expected, f"{name} with {column}"


def test_models_do_what_they_are_for() -> None:
    """A model in which nothing happens would agree with itself everywhere."""
    for name in MODELS:
        seen = inline(name)
        assert seen.events > 20, name
        assert seen.digest not in [inline(other).digest for other in MODELS if other != name]
    assert inline("lineage").dropped
    assert inline("lineage").created
    assert any("/~" in name for name, _ in inline("dynasties").monitors)
    assert any("/~" in name for name, *_ in inline("dynasties").dropped)
    assert inline("strangers").dropped
    assert len(inline("weather").dropped) > 3
    assert inline("gauges").monitors
    assert inline("gaps").now > 3 * HOUR


def test_a_leak_between_entities_is_seen() -> None:
    """The twin that must fail: these entities share a list, so they depend on who is in the same process."""
    expected = observe(gossips())
    assert not difference(expected, observe(gossips()))
    assert not difference(expected, observe(gossips(), executor="processes(1)"))
    assert "digest" in difference(expected, observe(gossips(), executor="processes(2)"))


# -- Where executors have differed


def test_canceled_events_are_the_same_everywhere() -> None:
    found = observe(hasty(), executor="processes(2)")
    assert not difference(observe(hasty()), found)


def test_a_created_sender_s_messages_keep_their_order() -> None:
    expected = observe(family())
    assert expected.states["listener"]["heard"] == ["first", "second", "third"] * 3
    apart = {"p": 0, "q": 0, "r": 0, "listener": 1}
    found = observe(family(), executor=processes(2, placement=apart))
    assert not difference(expected, found), difference(expected, found)


# -- The matrix itself


def column(executor: str) -> matrix.Column:
    return matrix.Column(executor, "compiled", "0")


def test_matrix_says_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        (column("inline"), "m", {"digest": "d1", "events": "5"}),
        (column("processes(2)"), "m", {"digest": "d1", "events": "6"}),
        *[(column(f"mpi rank {rank} of 4"), "m", {"digest": "d2", "events": "5"}) for rank in range(4)],
    ]
    monkeypatch.setattr(matrix, "columns", lambda names: iter(runs))
    assert matrix.main(["m"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "m  DIFFERS  6 runs",
        "  digest is d1 with inline, compiled, hash seed 0, but",
        f"    d2 with {'; '.join(f'mpi rank {rank} of 4, compiled, hash seed 0' for rank in range(3))}; and 1 more",
        "  events is 5 with inline, compiled, hash seed 0, but",
        "    6 with processes(2), compiled, hash seed 0",
    ]
