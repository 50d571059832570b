"""What the guide to metasim shows is what happens."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent.parent / "docs" / "metasim.md").read_text()
PROGRAMS = dict(re.findall(r"^```python\n(?=# (\S+)\n)(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
SHOWN = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)+)", PAGE, re.MULTILINE)


def lines(text: str) -> list[str]:
    """Return what was printed, sorted: what several processes print comes in any order."""
    return sorted(text.splitlines())


def test_every_program_is_shown_with_what_it_prints() -> None:
    assert {f"python {name}" for name in PROGRAMS} == {command for command, _ in SHOWN}


@pytest.mark.long
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_print_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    if "drummer" not in command and importlib.util.find_spec("pydrake") is None:
        pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
    for name, program in PROGRAMS.items():
        (tmp_path / name).write_text(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command.split(),
        cwd=tmp_path,
        # Unbuffered, lines of processes that share a pipe could get mixed up.
        env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert lines(done.stdout) == lines(shown), done.stderr
