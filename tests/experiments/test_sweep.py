"""Sweeps: the same table however it came about, rows of runs that failed, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copy

import pytest

import worldline
from tests.processes.ranks import mpiexec
from worldline.errors import ConfigurationError, LossError, UsageError
from worldline.experiments import read_sweep, sweeping
from worldline.experiments.sweeping import (
    SweepRequest,
    as_settings,
    as_sweep_executor,
    independent,
    made_design,
    prepared_sweep,
    split_levels,
)
from worldline.files.loading import sources_of
from worldline.targets import RunOptions

STATION = Path(__file__).parent / "models" / "station.py"
LEVELS = {"load": [0.3, 0.6], "customers": [5, 10]}


def swept(tmp_path: Path, name: str, executor: str, **more: object) -> bytes:
    path = tmp_path / f"{name}.sweep"
    worldline.sweep(STATION, LEVELS, seeds=6, path=path, executor=executor, **more)  # type: ignore[arg-type]
    return path.read_bytes()


def test_the_table_is_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    one = swept(tmp_path, "one", "inline")
    assert swept(tmp_path, "three", "processes(3)") == one
    table = read_sweep(tmp_path / "one.sweep")
    assert len(table) == 24
    assert table.points() == {0: (0.3, 5), 1: (0.3, 10), 2: (0.6, 5), 3: (0.6, 10)}
    assert len({*table.column("seed")}) == len({*table.column("digest")}) == 24
    assert "left.time_mean" in table.measures


def test_a_sweep_grows_with_its_seeds(tmp_path: Path) -> None:
    grown, whole = tmp_path / "grown.sweep", tmp_path / "whole.sweep"
    worldline.sweep(STATION, LEVELS, seeds=2, path=grown, executor="inline")
    rows = read_sweep(grown).rows
    worldline.sweep(STATION, LEVELS, seeds=5, path=grown, executor="inline")
    worldline.sweep(STATION, LEVELS, seeds=5, path=whole, executor="inline")
    assert grown.read_bytes() == whole.read_bytes()
    assert {*rows} <= {*read_sweep(grown).rows}


def test_common_draws_are_the_same_at_all_points(tmp_path: Path) -> None:
    path = tmp_path / "common.sweep"
    table = worldline.sweep(STATION, {"load": [0.3, 0.6]}, seeds=4, path=path, executor="inline", common=True)
    assert table.column("seed") == [0, 1, 2, 3] * 2
    low, high = (table.samples("wait.mean")[point] for point in (0, 1))
    assert all(low[each] < high[each] for each in range(4))  # Shorter pauses, by the same draws: no luck in between.


def test_antithetic_pairs_mirror_each_other(tmp_path: Path) -> None:
    path = tmp_path / "pairs.sweep"
    table = worldline.sweep(STATION, seeds=4, path=path, executor="inline", antithetic=True)
    assert table.column("seed") == [0, -1, 1, -2]
    assert len({*table.column("digest")}) == 4
    assert independent({0: 1.0, 1: 3.0, 2: 5.0, 4: 1.0, 5: 2.0, 6: None, 7: 1.0}, True) == {0: 2.0, 2: 1.5}
    with pytest.raises(UsageError, match="3 runs aren't pairs"):
        worldline.sweep(STATION, seeds=3, path=path, antithetic=True)


@pytest.mark.once
@pytest.mark.long
def test_ranks_of_mpi_write_the_same_table(tmp_path: Path) -> None:
    code = "import sys, worldline; worldline.sweep(*sys.argv[1:2], {'load': [0.3, 0.6], 'customers': [5, 10]}, seeds=6,"
    code += " path=sys.argv[2], executor='mpi')"
    ended = mpiexec(3, code, str(STATION), str(tmp_path / "ranks.sweep"))
    assert ended.returncode == 0, ended.stderr
    worldline.sweep(str(STATION), LEVELS, seeds=6, path=tmp_path / "one.sweep", executor="inline")
    assert (tmp_path / "ranks.sweep").read_bytes() == (tmp_path / "one.sweep").read_bytes()


@pytest.mark.once
def test_failures_are_rows_with_the_command_that_repeats_them(tmp_path: Path) -> None:
    table = worldline.sweep(
        STATION,
        {"trouble": ["none", "fail", "die", "hang"], "customers": 2},
        seeds=2,
        path=tmp_path / "trouble.sweep",
        executor="processes(2)",
        seconds_max=1.0,
    )
    errors = {str(failure["trouble"]): str(failure["error"]) for failure in table.failures()}
    assert "the till is jammed" in errors["fail"]
    assert errors["die"].startswith("its process was killed by SIGKILL")
    assert "more than 1 second of real time" in errors["hang"]
    assert len(table.failures()) == 6
    assert [row["digest"] is None for row in table.records()] == [False] * 2 + [True] * 6
    command = next(str(row["command"]) for row in table.failures() if row["seed"] == 5)
    assert command == f"worldline run {STATION} --seed=5 --set trouble=fail --set customers=2"
    repeated = subprocess.run(
        [sys.executable, "-m", *command.split()], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert repeated.returncode == 1
    assert "the till is jammed" in repeated.stderr


def test_a_model_that_cant_be_made_is_a_row_wherever_its_point_is(tmp_path: Path) -> None:
    settings = {"servers": [0, 1], "customers": [3, 2]}
    first = worldline.sweep(STATION, settings, seeds=2, path=tmp_path / "first.sweep", executor="inline")
    settings["servers"].reverse()
    last = worldline.sweep(STATION, settings, seeds=2, path=tmp_path / "last.sweep", executor="inline")
    for table in (first, last):
        assert {row["servers"] for row in table.failures()} == {0}
        assert len(table.failures()) == 4
        assert all("its model can't be set up: ZeroDivisionError" in str(row["error"]) for row in table.failures())
    with pytest.raises(ConfigurationError, match="its model can't be set up"):
        worldline.sweep(STATION, {"servers": [0]}, path=tmp_path / "none.sweep", executor="inline")


def test_if_no_model_can_be_made_the_first_few_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, tried = tmp_path / "broken.py", tmp_path / "tried"
    noting = f"with open({str(tried)!r}, 'a') as noted:\n        print(size, file=noted)"
    file.write_text(f"def model(*, size=1):\n    {noting}\n    1 / 0\n")
    monkeypatch.setattr(sweeping, "_CHECKED_S", -1.0)  # However quick this machine is.
    with pytest.raises(ConfigurationError, match="its model can't be set up: ZeroDivisionError"):
        worldline.sweep(file, {"size": [*range(10)]}, path=tmp_path / "none.sweep", executor="inline")
    assert tried.read_text().split() == ["0", "1", "2"]


def test_failures_are_tried_again_if_that_is_wanted(tmp_path: Path) -> None:
    model = tmp_path / "flaky.py"
    copy(STATION, model)
    path, flag = tmp_path / "flaky.sweep", tmp_path / "fixed"
    model.write_text(
        model.read_text() + f"\nfrom pathlib import Path\n_model = model\ndef model(*, seed: int = 0):\n"
        f"    return _model(seed=seed, trouble='' if Path({str(flag)!r}).exists() else 'fail')\n"
    )
    assert len(worldline.sweep(model, seeds=2, path=path, executor="inline").failures()) == 2
    flag.touch()
    assert len(worldline.sweep(model, seeds=2, path=path, executor="inline").failures()) == 2
    assert worldline.sweep(model, seeds=2, path=path, executor="inline", retries=True).failures() == []


@pytest.mark.once
def test_a_sweep_killed_twice_and_finished_equals_the_undisturbed(tmp_path: Path) -> None:
    """With real processes: the command, killed by SIGKILL in the run of a seed, and then in that of another."""
    model, path, pid = tmp_path / "killing.py", tmp_path / "killed.sweep", tmp_path / "pid"
    model.write_text(
        f"{STATION.read_text()}\nimport os, signal\nfrom pathlib import Path\n_model = model\n"
        f"def model(*, seed: int = 0, load: float = 0.5):\n"
        f"    command = int(Path({str(pid)!r}).read_text())\n"
        f"    flags = [Path({str(tmp_path)!r}, f'killed {{by}}') for by in (seed, command)]\n"  # Once by each.
        f"    if seed in (5, 12) and not any(flag.exists() for flag in flags):\n"
        f"        [flag.touch() for flag in flags]\n"
        f"        os.kill(command, signal.SIGKILL)\n"
        f"        signal.pause()\n"  # Until this process finds that the command's is gone.
        f"    return _model(seed=seed, load=load, customers=50)\n"
    )
    command = [sys.executable, "-m", "worldline", "sweep", str(model), "--set", "load=0.3,0.6", "--seeds", "20"]
    command += ["--executor", "processes(2)", "--save", str(path), "--quiet"]
    for _ in range(2):
        shell = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(pid), *command]
        assert subprocess.run(shell, cwd=tmp_path, stdout=subprocess.DEVNULL, check=False).returncode == -signal.SIGKILL
        assert _rows(path) < 40  # How many were written by then is up to the machine.
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    undisturbed = tmp_path / "undisturbed.sweep"
    worldline.sweep(str(model), {"load": [0.3, 0.6]}, seeds=20, path=undisturbed, executor="inline")
    assert path.read_bytes() == undisturbed.read_bytes()


def _rows(path: Path) -> int:
    try:
        return len(read_sweep(path))
    except (UsageError, LossError):  # It isn't there yet, or has just been begun.
        return 0


@pytest.mark.once
def test_ctrl_c_keeps_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "stopped.sweep"
    command = [sys.executable, "-m", "worldline", "sweep", str(STATION), "--seeds", "100000", "--save", str(path)]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not _rows(path):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert _rows(path) > 0


# -- Until it is precise


def test_runs_are_added_until_it_is_precise(tmp_path: Path) -> None:
    table = worldline.sweep(
        STATION,
        {"load": [0.1, 0.5], "customers": 30},
        seeds=200,
        until_precise=0.3,
        measures=["wait.mean", "served"],
        path=tmp_path / "precise.sweep",
        executor="inline",
    )
    counts = {point: len(sample) for point, sample in table.samples("served").items()}
    assert set(counts.values()) <= {15, 22, 33, 49, 73, 109, 163, 200}
    assert counts[1] < counts[0]  # Few wait at all where there is little to do, so their mean takes more runs.


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"until_precise": 0.02}, "what is to be precise"),
        ({"until_precise": 2.0, "measures": ["wait.mean"]}, "isn't a precision"),
        ({"measures": ["wiat.mean"]}, r"nothing measures 'wiat.mean' \(did you mean 'wait.mean'"),
        ({"measures": ["wait"]}, "wait is many values"),
        ({"fields": ["pose.x"]}, "no message has a number 'pose.x'"),
        ({"measure": ["wait.mean"]}, r"takes no 'measure' \(did you mean 'measures'"),
        ({"executor": "tcp"}, "can't be used here"),
        ({"warm_up": "soon"}, "a warm-up"),
        ({"settings": {"docters": [1]}}, "has no parameter 'docters'"),
        ({"settings": {"load": ["full"]}}, "load can't be 'full'"),
        ({"settings": {"load": []}}, "load has no values"),
        ({"seed": 2**62}, "too large"),
    ],
)
def test_what_cant_be_swept_is_refused(tmp_path: Path, more: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        worldline.sweep(STATION, path=tmp_path / "refused.sweep", **{"executor": "inline", **more})  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]


def test_a_function_is_a_target_if_workers_can_load_it(tmp_path: Path) -> None:
    from tests.experiments.models.station import model

    table = worldline.sweep(model, seeds=2, path=tmp_path / "function.sweep", executor="inline")
    assert len(table) == 2
    with pytest.raises(UsageError, match="can't be swept"):
        worldline.sweep(lambda: None, path=tmp_path / "lambda.sweep")


def test_changed_code_isnt_mixed_in(tmp_path: Path) -> None:
    model = tmp_path / "station.py"
    copy(STATION, model)
    path = tmp_path / "changed.sweep"
    worldline.sweep(model, path=path, executor="inline")
    model.write_text(model.read_text() + "\n# Another version.\n")
    with pytest.raises(UsageError, match=r"station\.py has changed since"):
        worldline.sweep(model, path=path, executor="inline")


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_an_edited_file_is_loaded_again(tmp_path: Path, executor: str) -> None:
    model = tmp_path / "edited.py"
    for served in (1, 2, 3):  # The texts have one length, and perhaps one second.
        model.write_text(
            "from worldline.kernel import Simulation\ndef model(*, seed=0):\n    return Simulation(seed=seed)\n"
            f"def measures(model, outcome):\n    return {{'served': {served}}}\n"
        )
        table = worldline.sweep(model, seeds=2, path=tmp_path / f"{served}.sweep", executor=executor)
        assert table.column("served") == [served, served]


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_a_file_whose_imports_were_edited_is_loaded_again(tmp_path: Path, executor: str) -> None:
    name = f"imported_by_{executor.partition('(')[0]}"  # Modules of one name in two folders are one in a process.
    model, parts = tmp_path / "importing.py", tmp_path / f"{name}.py"
    model.write_text(
        f"from worldline.kernel import Simulation\nfrom {name} import SERVED\n"
        "def model(*, seed=0):\n    return Simulation(seed=seed)\n"
        "def measures(model, outcome):\n    return {'served': SERVED}\n"
    )
    for served in (1, 22, 333):
        parts.write_text(f"SERVED = {served}\n")
        if served > 1:
            sources_of([model], tmp_path)  # It is looked at between the edit and the sweep.
        table = worldline.sweep(model, seeds=2, path=tmp_path / f"{served}.sweep", executor=executor)
        assert table.column("served") == [served, served]


def test_seeds_are_small_and_never_shared() -> None:
    design = made_design(["a=1,2,3"])
    apart = SweepRequest(target="x.py", design=design, first=10)
    assert sorted(apart.seed(point, each) or 0 for point in range(3) for each in range(4)) == list(range(10, 22))
    pairs = SweepRequest(target="x.py", design=design, first=10, common=True, antithetic=True)
    assert [pairs.seed(2, each) for each in range(4)] == [10, -11, 11, -12]


def test_a_world_has_one_run_at_each_point(tmp_path: Path) -> None:
    world = Path("examples/world/falling_boxes.sdf").resolve()
    pytest.importorskip("mujoco")
    with pytest.raises(UsageError, match="a world draws nothing"):
        worldline.sweep(world, seeds=2, until="10ms", path=tmp_path / "world.sweep")
    table = worldline.sweep(world, {"run-ahead": [1, 2]}, until="10ms", path=tmp_path / "w.sweep", executor="inline")
    assert table.column("seed") == [None, None]
    assert len({*table.column("digest")}) == 1


def test_executors_are_written_as_everywhere() -> None:
    assert str(as_sweep_executor("processes(3)")) == "processes(3)"
    assert as_sweep_executor(None).kind == as_sweep_executor("processes").kind == "processes"
    with pytest.raises(UsageError, match="each run of it is inline"):
        prepared_sweep(str(STATION), (), options=RunOptions(executor="inline"))


@pytest.mark.parametrize("kind", ["file", "Machine"])
def test_rows_of_other_code_are_refused_wherever_a_program_has_it(kind: str, tmp_path: Path) -> None:
    """A server that is given its application by name doesn't import it where that could be read."""
    (tmp_path / "server.py").write_text(
        "import importlib, sys\nname = sys.argv[1].partition(':')[0]\nimportlib.import_module(name).serve()\n"
    )
    (tmp_path / "orders.py").write_text("def serve():\n    print('one')\n")
    target = tmp_path / ("shop.toml" if kind == "file" else "shop.py")
    target.write_text(
        '[[participants]]\nname = "shop"\nmodule = "server orders:app"\n'
        if kind == "file"
        else "from worldline import Federation, Machine\n"
        f"model = Federation({{'shop': Machine('server', 'orders:app', module=True, directory={str(tmp_path)!r})}})\n"
    )
    path = tmp_path / "shop.sweep"
    worldline.sweep(target, seeds=1, path=path, executor="inline", until="1s")
    worldline.sweep(target, seeds=2, path=path, executor="inline", until="1s")
    (tmp_path / "orders.py").write_text("def serve():\n    print('two')\n")
    with pytest.raises(UsageError, match=r"other code: orders\.py has changed"):
        worldline.sweep(target, seeds=3, path=path, executor="inline", until="1s")


# Designs: which combinations are run, and what can't be one.


def test_all_combinations_in_the_order_of_the_settings() -> None:
    design = made_design(["doctors=2,3", "arrival=4min,5min"])
    assert design.parameters == ("doctors", "arrival")
    assert design.points == (("2", "4min"), ("2", "5min"), ("3", "4min"), ("3", "5min"))
    assert design.settings(1) == ("doctors=2", "arrival=5min")
    assert design.cells(1) == (2, "5min")
    assert made_design([]).points == ((),)


def test_commas_in_brackets_part_nothing() -> None:
    assert split_levels("uniform(1ms, 5ms), 3ms") == ["uniform(1ms, 5ms)", "3ms"]


def test_python_values_are_settings() -> None:
    assert as_settings({"a": [1, 2.5], "b": True, "c": "x", "d": range(2)}) == ("a=1,2.5", "b=yes", "c=x", "d=0,1")


def test_a_table_has_words_for_what_isnt_a_finite_number() -> None:
    design = made_design(["limit=nan,inf,1e3"])
    assert [design.cells(point) for point in range(3)] == [("nan",), ("inf",), (1000.0,)]


def test_a_latin_hypercube_has_a_value_in_each_stratum() -> None:
    design = made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10", seed=3)
    rates, counts, pauses, kinds = zip(*design.points, strict=True)
    assert sorted(int(float(rate) * 10) for rate in rates) == list(range(10))
    assert sorted(map(int, counts)) == list(range(1, 11))
    assert sorted(kinds) == ["a"] * 5 + ["b"] * 5
    assert all(pause.endswith("s") for pause in pauses)
    assert design == made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10", seed=3)
    assert design.points != made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10").points


def test_random_points_stay_in_their_ranges() -> None:
    points = made_design(["rate=-1..1", "count=3..4"], "random:200").points
    assert {int(rate) for rate, _ in points} == {-1, 0, 1}
    assert {count for _, count in points} == {"3", "4"}


def test_a_file_has_a_point_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("doctors,arrival\n2,4min\n\n3, 5min\n")
    design = made_design(["until=1h"], str(file))
    assert design.parameters == ("doctors", "arrival", "until")
    assert design.points == (("2", "4min", "1h"), ("3", "5min", "1h"))


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        (["a=1,1"], "grid", "has 1 twice"),
        (["a=1", "a=2"], "grid", "given twice"),
        (["a=1,,2"], "grid", "empty value"),
        (["a"], "grid", "sets nothing"),
        (["a=0..1"], "grid", "is a range"),
        (["a=1..0"], "latin:4", "is no range"),
        (["a=x..y"], "latin:4", "no range of numbers or times"),
        ([], "latin:4", "needs parameters"),
        (["a=1..2"], "latin:0", "no number of points"),
        (["a=1..2"], "latin", "there is no design"),
        (["a=1..2"], "spiral:4", "there is no design"),
        (["a=1..2"], "random:2000000", "at most 1,000,000"),
        ([f"{name}={','.join(map(str, range(200)))}" for name in "abc"], "grid", "8,000,000 runs"),
        ([], "nowhere.csv", "can't be read"),
    ],
)
def test_what_is_no_design_is_refused(settings: list[str], kind: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made_design(settings, kind)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no points"),
        ("a,b\n", "no points"),
        ("a,b\n1\n", "line 2 has 1 value"),
        ("a,a\n1,2\n", "each parameter once"),
        ("a,\n1,2\n", "each parameter once"),
    ],
)
def test_a_file_without_points_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        made_design([], str(file))
