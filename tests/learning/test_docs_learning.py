"""The guide to environments shows what its programs print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES

PAGE = (EXAMPLES.parent / "docs" / "learning.md").read_text()
PROGRAMS = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
SHOWN = dict(re.findall(r"```\n\$ python (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))


def test_every_program_is_tried() -> None:
    assert PAGE.count("```python") == len(PROGRAMS)
    assert {*PROGRAMS} - {*SHOWN} == {"heating.py"}


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize("name", SHOWN)
def test_a_program_prints_what_is_shown(name: str, tmp_path: Path) -> None:
    for each, program in PROGRAMS.items():
        (tmp_path / each).write_text(program)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    ran = subprocess.run(
        [sys.executable, "-W", "error", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == SHOWN[name]
