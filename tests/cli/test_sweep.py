"""`worldline sweep`: what it prints, what it refuses, and that `run` leads to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command

STATION = str(Path(__file__).parent.parent / "experiments" / "models" / "station.py")
INLINE = ("--executor", "inline")


def test_a_sweep_prints_a_row_for_each_point_and_where_it_is(worldline: Command) -> None:
    arguments = ("--set", "load=0.3,0.6", "--seeds", "4", "--measure", "wait.mean", "--measure", "served", *INLINE)
    code, output, _ = worldline("sweep", STATION, *arguments)
    assert code == 0
    lines = output.splitlines()
    assert lines[0].split() == ["load", "runs", "wait.mean", "served"]
    assert [line.split()[:2] for line in lines[1:3]] == [["0.3", "4"], ["0.6", "4"]]
    assert lines[1].endswith("20 ± 0")
    assert lines[4] == "differences from load=0.3 (independent runs):"
    assert lines[-1] == "8 runs: station.sweep"
    again = worldline("sweep", STATION, *arguments)
    assert again[:2] == (0, output)
    assert worldline("sweep", "station.sweep")[:2] == (0, output)


def test_programs_get_json(worldline: Command) -> None:
    code, output, _ = worldline("sweep", STATION, "--seeds", "3", "--json", "--measure", "served", *INLINE)
    assert code == 0
    assert json.loads(output) == {
        "file": "station.sweep",
        "target": STATION,
        "runs": 3,
        "failed": 0,
        "finished": True,
        "points": [{"parameters": {}, "measures": {"served": {"mean": 20.0, "half_width": 0.0, "count": 3}}}],
    }


def test_failures_are_shown_with_their_commands(worldline: Command) -> None:
    code, output, _ = worldline("sweep", STATION, "--set", "trouble=fail", "--seeds", "7", *INLINE)
    assert code == 1
    assert output.count("the till is jammed") == output.count(f"  worldline run {STATION} --seed=") == 5
    assert "... and 2 more" in output
    assert output.endswith("7 runs, 7 failed: station.sweep\n")


def test_it_is_said_if_the_runs_werent_enough_to_be_precise(worldline: Command) -> None:
    precise = ("--until-precise", "0.1%", "--measure", "wait.mean", "--set", "load=0.2,0.5")
    _, output, _ = worldline("sweep", STATION, "--seeds", "3", *precise, *INLINE)
    assert "(not within 0.1% at 2 of 2 combinations: allow more runs, with --seeds)" in output


def test_without_scipy_there_are_means(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    monkeypatch.setitem(sys.modules, "scipy", None)
    code, output, _ = worldline("sweep", STATION, "--seeds", "2", "--measure", "served", *INLINE)
    assert (code, output.splitlines()[1:]) == (
        0,
        [
            "2     20",
            "(without intervals: those need scipy, make extras WITH=experiments in the clone of Worldline)",
            "2 runs: station.sweep",
        ],
    )
    code, _, said = worldline("sweep", STATION, "--until-precise", "2%", "--measure", "served", *INLINE)
    assert (code, "intervals need scipy" in said) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((STATION, "--until-precise", "much", "--measure", "served"), "--until-precise much isn't a share"),
        ((STATION, "--until-precise", "2%"), "what is to be precise"),
        ((STATION, "--set", "load=0..1"), "is a range"),
        ((STATION, "--design", "spiral:4"), "there is no design 'spiral:4'"),
        ((STATION, "--executor", "tcp"), "'tcp' can't be used here"),
        ((STATION, "--save", "nowhere/x.sweep"), "there is no folder nowhere"),
        ((STATION, "--measure", "wait.maen", *INLINE), "did you mean 'wait.mean'?"),
        (("nothing.py",), "there is no file nothing.py"),
        (("none.sweep",), "there is no file none.sweep"),
        (("none.sweep", "--seed", "3"), "has runs already"),
        ((STATION, "--shake", "3"), "--shake"),
    ],
)
def test_mistakes_are_told_in_a_line(worldline: Command, arguments: tuple[str, ...], said: str) -> None:
    code, _, error = worldline("sweep", *arguments)
    assert code == 2
    assert said in error
    assert "Traceback" not in error


def test_run_leads_to_sweep(worldline: Command) -> None:
    code, _, error = worldline("run", STATION, "--seeds", "10")
    assert (code, "`worldline sweep TARGET --seeds 10` has many runs" in error) == (2, True)


def test_runs_that_dont_depend_on_their_seeds_are_told(worldline: Command, tmp_path: Path) -> None:
    script = tmp_path / "bank.py"
    script.write_text(
        "import random, simpy\nrandom.seed(3)\nenv = simpy.Environment()\nenv.timeout(random.random())\nenv.run()\n"
    )
    said = "(all runs are the same, whatever their seed: does the model seed its draws itself?)"
    assert said in worldline("sweep", str(script), "--seeds", "2", *INLINE)[1]
    script.write_text(script.read_text().replace("random.seed(3)", ""))
    assert said not in worldline("sweep", str(script), "--seeds", "2", "--force", *INLINE)[1]


def test_a_warm_up_that_leaves_nothing_is_told(worldline: Command) -> None:
    late = ("--measure", "wait.mean", "--warm-up", "1000h")
    assert "\n(no run has a number for wait.mean)\n" in worldline("sweep", STATION, "--seeds", "2", *late, *INLINE)[1]


def test_a_limit_is_told_alike_however_far_a_run_has_come(worldline: Command, tmp_path: Path) -> None:
    model = tmp_path / "endless.py"
    model.write_text(
        "import worldline.simpy as simpy\n\ndef clock(env):\n    while True:\n        yield env.timeout(1)\n\n"
        "def model():\n    env = simpy.Environment()\n    env.process(clock(env))\n    return env\n"
    )
    _, output, _ = worldline("sweep", str(model), "--seeds", "1", "--seconds-max", "0.05", *INLINE)
    assert "failed: it has taken more than 0.05 seconds of real time (is there an endless loop?" in output
