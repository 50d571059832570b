"""The guide to replay shows what the commands print."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "replay.md"
SLOW = "return parts + 1, BELT_MM_PER_S * since / SECOND"
FAST = "return parts + 1, (BELT_MM_PER_S if time < 400 * MS else 260.0) * since / SECOND"


def shown(command: str) -> str:
    """Return what the page shows of a command."""
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, command
    return found[1]


def test_the_guide_shows_what_is_printed(worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "after"):
        shutil.copytree(ROOT / "examples" / "robot_cell", tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "after" / "robot_cell.py"
    assert SLOW in program.read_text()
    program.write_text(program.read_text().replace(SLOW, FAST))
    monkeypatch.chdir(tmp_path / "before")
    assert worldline("run", "robot_cell.toml", "--executor", "in-process", "-q")[0] == 0
    for options in ("--speed max --until 30ms", "--only planner"):
        code, output, errors = worldline("replay", "robot-cell.mcap", *options.split())
        assert (code, errors) == (0, "")
        assert output == shown(f"worldline replay robot-cell.mcap {options}")

    monkeypatch.chdir(tmp_path / "after")
    shutil.copy(tmp_path / "before" / "robot-cell.mcap", "robot-cell.mcap")
    code, output, errors = worldline("replay", "robot-cell.mcap", "--until-differs")
    assert code == 1
    assert errors + output == shown("worldline replay robot-cell.mcap --until-differs")

    monkeypatch.setattr("sys.stdin", io.StringIO("continue\np part, mm\nquit\n"))
    _, output, errors = worldline("replay", "robot-cell.mcap", "--only", "camera", "--pdb")
    expected = shown("worldline replay robot-cell.mcap --only camera --pdb")
    typed = expected.replace("continue\n", "").replace("p part, mm\n", "")  # What is typed isn't printed.
    printed = (errors.partition("worldline:")[0] + output).replace(f"{tmp_path / 'after'}/", "")
    assert printed.startswith(typed)
