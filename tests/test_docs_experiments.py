"""The page on sweeps: what it shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "experiments.md").read_text()
SHOWN = re.findall(r"^```\n\$ (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.long
def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "sweep_checkout.py").write_text(program)
    assert len(SHOWN) == 4
    for command, shown in SHOWN:
        word, *words = shlex.split(command)
        arguments = ["-m", "worldline", *words] if word == "worldline" else words
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, shown), done.stderr


def test_the_statistics_of_the_page_are_those_there_are() -> None:
    from worldline.experiments.measures import DEFAULTS

    section = PAGE.partition("| statistic |")[2].partition("\n\n")[0]
    named = {re.sub(r"\d+(\.\d+)?$", "", name) for name in re.findall(r"`(\w[\w.]*)`", section)}
    assert named == {re.sub(r"\d+$", "", name) for name in DEFAULTS} | {"histogram"}
