"""Every example says the same each time under any hash seed, and passes the checker unless it is wrong on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SOUND = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "leaky.py")


def python(*arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", SOUND)
def test_an_example_prints_the_same_every_time(name: str) -> None:
    first, second = (python(name, seed=seed) for seed in ("1", "2"))
    assert first.returncode == 0, first.stderr
    assert "digest" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.parametrize("name", SOUND)
def test_an_example_gives_one_history_under_many_schedules(name: str) -> None:
    checked = python("-m", "worldline", "check", name, "--schedules", "60")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    digest = python(name).stdout.split()[-1]
    assert checked.stdout.strip().endswith(digest)


def test_the_leaky_example_is_caught_and_the_command_repeats_it() -> None:
    caught = python("-m", "worldline", "check", "leaky.py")
    assert caught.returncode == 1
    *_, repeat = caught.stdout.strip().splitlines()
    again = python("-m", *repeat.split())
    assert again.returncode == 1
    first = [line for line in caught.stdout.splitlines() if line.startswith("  found")]
    assert first
    assert first[0] in again.stdout
