"""Short how-to pages: what they tell to do works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.test_docs import ROOT, command
from worldline.cli.commands import NAMES

PLOT = (ROOT / "docs" / "plot.md").read_text()
TROUBLE = (ROOT / "docs" / "trouble.md").read_text()
CI = (ROOT / "docs" / "ci.md").read_text()
RUMORS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "verify.md").read_text(), re.DOTALL)[0]


@pytest.mark.long
def test_the_command_for_ci_fails_with_a_report_and_recordings_to_compare(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(RUMORS)
    (line,) = re.findall(r"- run: worldline (verify .*)", CI)
    done = command("-m", "worldline", *shlex.split(line), "--only", "hash-seed", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    cases = ElementTree.parse(tmp_path / "verify.xml").iter("testcase")
    assert [case.find("failure") is not None for case in cases].count(True) >= 1
    (line,) = re.findall(r"^    worldline (diff .*)", CI, re.MULTILINE)
    done = command("-m", "worldline", *shlex.split(line), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "first cause: ann at 0s, sends rumor" in done.stdout


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Give a folder with the programs of the page on plotting, and the recording that they read."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for program, name in re.findall(r"```python\n(# (\S+)\n.*?)```", PLOT, re.DOTALL):
        (tmp_path / name).write_text(program)
    (line,) = re.findall(r"^    worldline (run .*)", PLOT, re.MULTILINE)
    done = command("-m", "worldline", *line.split(), "--executor", "in-process", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.long
def test_the_commands_on_plotting_write_what_the_page_shows(recorded: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("before", "after"):
        (recorded / f"{name}.mcap").symlink_to("robot-cell.mcap")
    lines = re.findall(r"^    worldline (plot .*mcap.*)", PLOT, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        done = command("-m", "worldline", *shlex.split(line), cwd=recorded)
        assert (done.returncode, done.stderr[:11]) == (0, "written to "), done.stderr
        if line == lines[0]:
            assert (recorded / "robot-cell.svg").read_text() == (ROOT / "docs" / "robot-cell.svg").read_text()
    (asked, said) = re.findall(r"\$ worldline (plot .*)\n(worldline: .*)\n", PLOT)[0]
    assert command("-m", "worldline", *asked.split(), cwd=recorded).stderr == f"{said}\n"


@pytest.mark.long
def test_a_signal_is_a_table(recorded: Path) -> None:
    line = re.findall(r"^    worldline (export .*csv.*)", PLOT, re.MULTILINE)[0]
    assert command("-m", "worldline", *line.split(), cwd=recorded).returncode == 0
    assert (recorded / "pose.csv").read_text().partition("\n")[0].endswith(",mm,news_age")
    pytest.importorskip("pandas")
    (shown,) = re.findall(r"\$ python table.py\n(.*?)```", PLOT, re.DOTALL)
    assert command("table.py", cwd=recorded).stdout == shown


@pytest.mark.long
def test_plots_are_made_from_python(recorded: Path) -> None:
    pytest.importorskip("matplotlib")
    for program, picture in (("figure.py", "arm.svg"), ("own.py", "load.png")):
        done = command(program, cwd=recorded)
        assert done.returncode == 0, done.stderr
        assert (recorded / picture).stat().st_size > 1000


def test_in_trouble_the_commands_are_there_with_their_options() -> None:
    lines = re.findall(r"(?:`|^    )worldline (\w+)([^`\n]*)", TROUBLE, re.MULTILINE)
    assert {name for name, _ in lines} <= set(NAMES)
    options = {(name, option) for name, rest in lines for option in re.findall(r"--[a-z-]+", rest)}
    assert len(options) > 5
    for name in sorted({name for name, _ in options}):
        told = command("-m", "worldline", name, "--help").stdout
        assert [option for of, option in options if of == name and f" {option} " not in told] == [], name


def test_in_trouble_what_why_says_is_what_it_says() -> None:
    says = (ROOT / "src" / "worldline" / "lock" / "why" / "words.py").read_text()
    shown = re.findall(r"^\| `([^`]*)`", TROUBLE.partition("## Two runs differ")[0], re.MULTILINE)
    assert len(shown) > 5
    for words in ("is asleep", "is stopped", "has been computing", "the run begins when", "an operator holds"):
        assert any(words in each for each in shown)
        assert words in says
