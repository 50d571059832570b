"""The landing page, and the one that shows a program of each layer: short, and what they show is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
BOTH = TEXT + (ROOT / "docs/choosing.md").read_text()
PROGRAMS = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", BOTH, re.DOTALL | re.MULTILINE)
SHOWN = re.findall(r"^\$ (worldline .*)\n((?:(?!\$ |```).*\n)+)", BOTH, re.MULTILINE)


def test_it_can_be_read_in_a_few_minutes() -> None:
    assert len(TEXT.split()) < 1000
    for name, program in PROGRAMS:
        assert len([line for line in program.splitlines() if line.strip()]) <= 15, name


def test_the_two_commands_come_first() -> None:
    lines = TEXT.split("```")[1].strip().splitlines()
    assert [line.split("#")[0].split() for line in lines] == [["make", "run"], ["make", "test"]]


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_print_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, program in PROGRAMS:
        (tmp_path / name).write_text(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        text=True,
        timeout=100,
        check=False,
    ).stdout
    position = 0
    for part in re.split(r"^ *\.\.\.\n", shown, flags=re.MULTILINE):
        position = printed.find(part, position)
        assert position >= 0, f"it doesn't print {part!r} in its place, but:\n{printed}"
        position += len(part)
    assert shown.endswith("...\n") or position == len(printed)


@pytest.mark.parametrize("page", ["why", "diff"])
def test_captures_are_those_of_the_guides(page: str) -> None:
    """The guides' own are compared with what the commands print; some of their lines are left out here."""
    (capture,) = re.findall(rf"^What `worldline {page} .*?^```\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    shown = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    lines = [line for line in capture.splitlines() if line]
    places = [shown.index(line) for line in lines]
    assert len(lines) >= 5
    assert places == sorted(places)
