"""What commands do with SimPy models: seeds, ends, recordings, blame; and unchanged scripts."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from worldline.cli import main
from worldline.errors import ConfigurationError, ModelError, UsageError
from worldline.history import Observer
from worldline.model import SECOND
from worldline.simpy import Environment, Resource
from worldline.simpy.border import nanoseconds, units
from worldline.targets import RunOptions, prepare

SCRIPT = """
import random
import sys

import simpy
from simpy.events import AnyOf


def customer(env, counter):
    with counter.request() as request:
        yield AnyOf(env, [request, env.timeout(random.uniform(1, 3))])
        if request.triggered:
            yield env.timeout(random.expovariate(1 / 4))


def arrivals(env, counter):
    for _ in range(10):
        env.process(customer(env, counter))
        yield env.timeout(random.expovariate(1 / 2))


if __name__ == "__main__":
    env = simpy.Environment()
    env.process(arrivals(env, simpy.Resource(env)))
    env.run()
    print(f"{env.now:.3f}", *sys.argv[1:])
"""
MODEL = """
import simpy

UNTIL = {until!r}


def clock(env, period):
    while True:
        yield env.timeout(env.rng.expovariate(1 / period))


def model({parameters}):
    env = simpy.Environment()
    env.process(clock(env, {period}))
    return env


def outcome(env, result):
    return f"it is {{env.now}}"
"""

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    numbers = iter(range(100))

    def written(text: str) -> str:
        file = tmp_path / f"written_{next(numbers)}.py"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return written


class Told(Observer):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.members: dict[str, list[Any]] = {}
        self.notes: list[tuple[str, int, bytes | None]] = []

    def began(self, who: str, at: int) -> None:
        self.members[who] = [at]

    def ended(self, who: str, at: int, chain: bytes) -> None:
        self.members[who] += [at, chain]

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self.notes.append((who, at, payload))


def outcome_of(target: str, observer: Observer | None = None, **options: Any) -> Any:
    return prepare(target, RunOptions(**options)).run(observer)


# -- Scripts


def test_scripts_are_seeded_and_repeatable(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    target = write(SCRIPT)
    first, again, other = (outcome_of(target, seed=seed) for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest
    assert first.processes == 11
    said = capsys.readouterr().out.split()
    assert said[0] == said[1] != said[2]
    assert "simpy" not in sys.modules or "worldline" not in (sys.modules["simpy"].__file__ or "")


def test_scripts_have_a_command_line_an_end_and_a_unit(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = outcome_of(write(SCRIPT), until="3ms", settings=("unit=1ms", 'args="a b" c'))
    assert capsys.readouterr().out == "3.000 a b c\n"
    assert outcome.now == 3_000_000


def test_a_script_without_an_environment_is_refused(write: Write) -> None:
    with pytest.raises(ConfigurationError, match=r"has made no simpy\.Environment"):
        outcome_of(write("import simpy\n"))


def test_the_command_passes_on_what_stands_after_two_dashes(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["worldline", "simpy", write(SCRIPT), "--until", "3", "--", "a b", "--flag"])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    assert capsys.readouterr().out.splitlines()[0] == "3.000 a b --flag"


def test_an_observer_changes_nothing_and_hears_of_every_process(write: Write) -> None:
    target, told = write(SCRIPT), Told()
    outcome = outcome_of(target, told, seed=1)
    assert outcome.digest == outcome_of(target, seed=1).digest
    assert sorted(told.members) == sorted(
        ["arrivals/1", *(f"customer/{number}" for number in range(1, 11)), "environment"]
    )
    assert all(len(stay) == 3 for stay in told.members.values())
    assert [chain for _, _, chain in told.members.values() if chain] == [outcome.members["environment"].chain]
    assert told.notes[0] == ("arrivals/1", 0, b'{"time":0,"event":"Initialize"}')
    assert [at for _, at, _ in told.notes] == sorted(at for _, at, _ in told.notes)


def test_several_environments_are_several_members(write: Write) -> None:
    text = (
        "import simpy\nfor seed in range(3):\n    env = simpy.Environment()\n    env.timeout(seed + 1)\n    env.run()\n"
    )
    outcome = outcome_of(write(text))
    assert list(outcome.members) == ["environment", "environment/2", "environment/3"]
    assert outcome.now == 3_000_000_000


def test_failures_name_process_and_line(write: Write) -> None:
    text = SCRIPT.replace("yield env.timeout(random.expovariate(1 / 4))", "raise KeyError('oops')")
    target = write(text)
    with pytest.raises(ModelError, match=r"customer at 0s: KeyError: 'oops', in written_\d+.py, line 13"):
        outcome_of(target)
    with pytest.raises(ModelError, match=r"customer/1 at 0s: KeyError: 'oops'"):
        outcome_of(target, Told())
    with pytest.raises(ModelError, match=r"customer at 0s: KeyboardInterrupt, in written_\d+.py, line 13"):
        outcome_of(write(SCRIPT.replace("yield env.timeout(random.expovariate(1 / 4))", "raise KeyboardInterrupt")))
    for measure in ("('wait', float('nan'))", "('', 1)"):
        target = write(SCRIPT.replace("yield env.timeout(random.expovariate(1 / 4))", f"env.measure{measure}"))
        with pytest.raises(ModelError, match=r"customer at 0s: .*Error: .*, in written_\d+.py, line 13"):
            outcome_of(target)
    with pytest.raises(ModelError, match=r"exit code 3"):
        outcome_of(write("import simpy\nraise SystemExit(3)\n"))
    with pytest.raises(ModelError, match=r'broken at 0s: Invalid yield value "5", in written_\d+.py, line 3'):
        outcome_of(
            write(
                "import simpy\ndef broken():\n    yield 5\n"
                "env = simpy.Environment()\nenv.process(broken())\nenv.run()\n"
            )
        )


# -- Models


def test_models_end_at_their_own_time_or_that_of_the_command(write: Write) -> None:
    target = write(MODEL.format(until=100, parameters="*, period=3.0", period="period"))
    ready = prepare(target, RunOptions())
    outcome = ready.run()
    assert outcome.now == 100_000_000_000
    assert ready.verify(outcome) == ["it is 100"]
    assert outcome_of(target, until="7").now == 7_000_000_000
    assert outcome_of(target, until="1min").now == 60_000_000_000
    assert outcome_of(target, settings=("period=4",)).digest != outcome.digest


def test_seeds_reach_models_that_dont_ask_for_them(write: Write) -> None:
    target = write(MODEL.format(until=20, parameters="", period=3))
    assert outcome_of(target, seed=1).digest != outcome_of(target, seed=2).digest
    own = write(MODEL.format(until=20, parameters="", period=3).replace("Environment()", "Environment(seed=5)"))
    assert prepare(own, RunOptions()).seed == 5
    with pytest.raises(ConfigurationError, match="doesn't pass on its seed"):
        prepare(own, RunOptions(seed=6))


def test_models_that_are_environments(write: Write) -> None:
    target = write("import worldline.simpy as simpy\nmodel = simpy.Environment()\nmodel.timeout(4)\n")
    assert outcome_of(target).now == 4_000_000_000
    with pytest.raises(UsageError, match="processes"):
        prepare(target, RunOptions(executor="processes(2)"))


# -- What environments have besides


def test_streams_are_keyed() -> None:
    first, other = Environment(seed=3), Environment(seed=3)
    other.rng.random()
    drawn = first.stream("service", 1).random()
    assert drawn == other.stream("service", 1).random()
    assert drawn != Environment(seed=4).stream("service", 1).random()
    assert drawn != first.stream("service", 2).random()
    assert first.rng is first.rng


def test_digests_tell_values_and_order_apart() -> None:
    def digest(*values: Any) -> bytes:
        env = Environment()
        for value in values:
            env.timeout(1, value)
        env.run()
        return env.digest

    assert digest(1, 2) == digest(1, 2)
    distinct = [(1, 2), (2, 1), (1,), ("a", "b"), ("b", "a"), (b"a",), ((1, "x"),), ((1, "y"),), (1.5,), (object(),)]
    assert len({digest(*values) for values in distinct}) == len(distinct)
    assert digest(object()) == digest(object())
    not_a_number = [float("nan"), float("nan")]  # Python hashes each by its address.
    assert digest(not_a_number[0]) == digest(not_a_number[1])
    assert digest((not_a_number[0],)) == digest((not_a_number[1],))


@pytest.mark.parametrize(
    ("time", "unit", "expected"),
    [
        (1.5, 10**9, 1_500_000_000),
        (0.5, 1, 0),
        (1.5, 1, 2),
        (2.5, 1, 2),
        (-3, 10, 0),
        (10**30, 1, 2**60 - 1),
        *((late, 10**9, 2**60 - 1) for late in (1e300, 3e307, inf, nan, Decimal("inf"))),
        (-inf, 10, 0),
    ],
)
def test_times_at_the_border(time: Any, unit: int, expected: int) -> None:
    assert nanoseconds(time, unit) == expected


def test_ends_as_they_are_written() -> None:
    assert [units(text, 10**9) for text in ("5", "2.5", "1min")] == [5, 2.5, 60.0]


def test_nothing_is_left_behind_by_a_run(write: Write) -> None:
    state = random.getstate()
    outcome_of(write(SCRIPT))
    random.setstate(state)
    env = Environment()
    Resource(env)
    env.timeout(2)
    env.run()  # No host has it.
    assert env.now == 2


def test_what_processes_measure_is_in_the_outcome_and_in_no_digest(tmp_path: Path) -> None:
    text = """
import worldline.simpy as simpy

UNTIL = 5


def clock(env, measures):
    while True:
        yield env.timeout(2)
        if measures:
            env.measure("lap", env.now)


def model(measures=True):
    env = simpy.Environment()
    env.process(clock(env, measures))
    return env
"""
    file = tmp_path / "laps.py"
    file.write_text(text)
    outcome = prepare(str(file), RunOptions()).run()
    monitor = outcome.monitors["environment", "lap"]
    assert (monitor.times, monitor.values, monitor.end) == ([2 * SECOND, 4 * SECOND], [2, 4], 5 * SECOND)
    without = prepare(str(file), RunOptions(settings=("measures=false",))).run()
    assert (without.digest, len(without.monitors)) == (outcome.digest, 0)
    with pytest.raises(ModelError, match="a measure is a number"):
        Environment().measure("lap", "long")
