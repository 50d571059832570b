"""Every example tells the same story each time: under any hash seed, in processes, and under other schedules.

All of them are run by the `worldline` command. Simulations of the kernel are scripts, too: what they print to the
standard output is their story, and ends with the digest; what depends on the machine goes to the standard error.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES, command_of
from tests.soaking import later

SOUND = sorted(path.stem for path in EXAMPLES.glob("*/*.toml") if path.stem == path.parent.name)
# Federations hold nothing that is compiled, and are told the hash seed here.
TRIED = ["ping_pong", pytest.param("control_loop", marks=pytest.mark.once)]
REST = [name for name in SOUND if name not in ("ping_pong", "control_loop")]
IN_PROCESS = ("--executor", "in-process")

# What makes each simulation of the kernel small enough.
SIMULATIONS: dict[str, tuple[str, ...]] = {
    "epidemic": ("--people", "100"),
    "harbor": ("--until", "120h"),
    "job_shop": ("--until", "120h"),
    "million": ("--entities", "2000"),
    "packet_network": ("--until", "100ms"),
    "phold": ("--until", "5s"),
    "scale": ("--participants", "40", "--groups", "4"),
}

# How distributed algorithms are tried; one of them has a bug, which is the point.
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "broken_mutex": ("--seed", "8", "--seeds", "6"),
    "channels": ("--seeds", "8", "--topology", "random:8,degree=3", "--faults", "crash,partition,loss"),
}

# SimPy models as they are.
SIMPY_SCRIPTS = ("bank",)
# What is there to be swept, and has no command line of its own: tests/test_docs_experiments.py tries it.
SWEPT = ("checkout",)
# What is tested by tests of its own, beside it: tests/test_docs_testing.py runs them.
TESTED = ("booking",)

# What starts and kills processes by itself: tests/test_chaos.py tries it.
DISTURBERS = ("chaos",)


def worldline(folder: Path, *arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "worldline", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def file_of(name: str) -> str:
    return str(EXAMPLES / name / f"{name}.toml")


def story(output: str, folder: Path) -> list[str]:
    """Return what was told, without how long it took and where; lines may come in between one another's.

    Of a run that takes long, there are lines about how far it is.
    """
    lines = re.sub(r"simulated in [\d.]+ s", "simulated", output).replace(f"{folder}/", "").splitlines()
    return sorted(line for line in lines if not line.startswith("... "))


@cache
def told(name: str, folder: Path) -> tuple[list[str], dict[str, bytes]]:
    """Run an example in one process; return its story, and all files that it has left."""
    ran = worldline(folder, "run", file_of(name), *IN_PROCESS, seed="1")
    assert ran.returncode == 0, ran.stderr
    return story(ran.stdout, folder), files(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def known(name: str, shelf: Path) -> tuple[list[str], dict[str, bytes]]:
    folder = shelf / name
    folder.mkdir(exist_ok=True)
    return told(name, folder)


def test_the_examples_are_there() -> None:
    assert {"beat", "chat", "clock_sync", "control_loop", "ping_pong", "robot_cell"} <= set(SOUND)
    scripts = {path.parent.name for path in EXAMPLES.glob("*/*.py") if path.stem == path.parent.name}
    assert scripts - set(SOUND) == {*SIMULATIONS, *ALGORITHMS, *DISTURBERS, *SIMPY_SCRIPTS, *SWEPT, *TESTED}


@pytest.mark.parametrize("name", SIMPY_SCRIPTS)
def test_a_simpy_script_tells_the_same_under_any_hash_seed(name: str, tmp_path: Path) -> None:
    file = str(EXAMPLES / name / f"{name}.py")
    first, second = (worldline(tmp_path, "simpy", file, seed=seed) for seed in ("1", "2"))
    assert story(first.stdout, tmp_path) == story(second.stdout, tmp_path)
    assert "digest " in first.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_search_finds_the_same_on_any_number_of_workers_and_under_any_hash_seed(name: str, tmp_path: Path) -> None:
    file = str(EXAMPLES / name / f"{name}.py")
    searches = [
        worldline(tmp_path, "nodes", "--file", file, *ALGORITHMS[name], "--workers", workers, seed=seed)
        for workers, seed in (("1", "1"), ("2", "2"))
    ]
    assert searches[0].stdout == searches[1].stdout
    assert [search.returncode for search in searches] == [name.startswith("broken")] * 2


@pytest.mark.long
@pytest.mark.parametrize("name", [*TRIED, *later(REST)])
def test_an_example_tells_the_same_under_another_hash_seed(name: str, shelf: Path, tmp_path: Path) -> None:
    lines, left = known(name, shelf)
    assert any(line.startswith("digest ") for line in lines)
    ran = worldline(tmp_path, "run", file_of(name), *IN_PROCESS, seed="2")
    assert story(ran.stdout, tmp_path) == lines
    assert files(tmp_path) == left
    assert any(name.endswith(".mcap") for name in left)


# The robot cell is in tests/cli/test_run.py, too. Twenty processes take their time.
@pytest.mark.long
@pytest.mark.parametrize("name", [*TRIED, *later(REST)])
def test_an_example_tells_the_same_in_processes(name: str, shelf: Path, tmp_path: Path) -> None:
    lines, left = known(name, shelf)
    ran = worldline(tmp_path, "run", file_of(name), seed="3")
    assert ran.returncode == 0, ran.stderr
    assert story(ran.stdout, tmp_path) == lines
    assert files(tmp_path) == left


@pytest.mark.long
@pytest.mark.parametrize("name", [*TRIED, *later(REST)])
def test_an_example_gives_one_history_under_many_schedules(name: str, shelf: Path, tmp_path: Path) -> None:
    lines, _ = known(name, shelf)
    checked = worldline(tmp_path, "check", file_of(name), "--schedules", "10" if name == "ping_pong" else "3")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (digest,) = (line.split()[-1] for line in lines if line.startswith("digest "))
    assert checked.stdout.strip().endswith(f"one history, digest {digest}")


def test_the_leaky_example_is_caught_and_the_command_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLES)
    run = command_of(monkeypatch, capsys)
    code, out, _ = run("check", "leaky.py")
    assert code == 1
    *_, repeat = out.strip().splitlines()
    assert repeat.startswith("  worldline check leaky.py --schedule ")
    (cause,) = (line for line in out.splitlines() if line.startswith("first cause: "))
    code, again, _ = run(*repeat.split()[1:])
    assert code == 1
    assert cause in again


# What `worldline run` has to say of each example that isn't a federation, as it is, or as it is set to be small.
DIGESTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "checkout/checkout": ("680f31c4517e1fb08ad5f5f1dcf99cc7", ()),
    "epidemic/epidemic": ("72f346433122e6f8bb4ca478ea1ac6cd", ()),
    "harbor/harbor": ("25d9d44d56c76a225e2e19f50b554705", ()),
    "job_shop/job_shop": ("549993e140fe920a7a26837e6c8b8950", ()),
    "million/million": ("3ce095c621cdcfdb1df338d8b8733450", ("--set", "entities=2000")),
    "packet_network/packet_network": ("fcc3a24eb2fbc2eeebc59400b0f7ddeb", ()),
    "phold/phold": ("3d5bdaa5cbb7a7e2f3a43667276396a5", ()),
    "channels/channels": ("7725a803a6303da2df92d3841a19ae28", ()),
    "broken_mutex/broken_mutex": ("0a643cef45ba609fd632d8de8732838a", ()),
    "spacetime/probe": ("38419993c33147102541bfbf9e43c5da", ()),
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_command_runs_an_example_that_defines_a_model(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest, options = DIGESTS[name]
    code, out, err = command_of(monkeypatch, capsys)("run", EXAMPLES / f"{name}.py", *options)
    assert code == 0, err
    assert out.endswith(f"\ndigest {digest}\n")


def test_the_command_finds_what_is_wrong_with_the_broken_one(tmp_path: Path) -> None:
    file = str(EXAMPLES / "broken_mutex" / "broken_mutex.py")
    ran = worldline(tmp_path, "run", file, "--seed", "26", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["failure"]["text"].startswith("node 1 at 2.93228934s: property failed: at most one")


def script(name: str, *more: str, hash_seed: str = "1") -> subprocess.CompletedProcess[str]:
    """Run a simulation of the kernel by its own command line."""
    command = [sys.executable, f"{name}.py", *SIMULATIONS[name], *more]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        command, cwd=EXAMPLES / name, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("name", SIMULATIONS)
def test_the_command_on_two_workers_under_another_hash_seed_tells_the_story_of_the_script(
    name: str, tmp_path: Path
) -> None:
    settings = {
        "epidemic": ("--set", "people=100"),
        "million": ("--set", "entities=2000"),
        "scale": ("--set", "participants=40", "--set", "groups=4"),
    }
    options = (*settings.get(name, SIMULATIONS[name]), "--executor", "processes(2)")
    ran = worldline(tmp_path, "run", str(EXAMPLES / name / f"{name}.py"), *options, seed="2")
    assert ran.returncode == 0, ran.stderr
    inline = script(name, "--executor", "inline")
    assert inline.returncode == 0, inline.stderr
    *story, counts, digest = ran.stdout.splitlines()
    assert [*story, digest] == inline.stdout.splitlines()
    assert re.fullmatch(r"digest [0-9a-f]{32}", digest)
    assert " simulated in " in counts
    assert "Exception" not in ran.stderr + inline.stderr


def test_a_script_takes_executor_and_seed_itself() -> None:
    inline, spread, other = (script("phold", *more) for more in ((), ("--executor", "processes(2)"), ("--seed", "1")))
    assert spread.stdout == inline.stdout
    assert "Exception" not in spread.stderr
    assert other.returncode == 0, other.stderr
    assert other.stdout.splitlines()[-1] != inline.stdout.splitlines()[-1]
