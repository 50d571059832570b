"""The tutorial on metasim: two pairs of simulators, and what the command prints for each."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent.parent / "docs" / "first-metasim.md").read_text()
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
SHOWN = dict(re.findall(r"^```\n\$ ([^\n]*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def lines(text: str) -> list[str]:
    """Return what was printed, without how long it took; what several processes print comes in any order."""
    return sorted(re.sub(r"simulated in [\d.]+ s", "simulated", text).splitlines())


def test_all_files_are_there() -> None:
    assert {*FILES} == {"house.py", "house.toml", "tanks.py", "tanks.toml"}
    assert len(SHOWN) == 2


@pytest.mark.long
@pytest.mark.parametrize("more", ["", " --executor in-process"])
@pytest.mark.parametrize("command", SHOWN)
def test_commands_print_what_is_shown(command: str, more: str, tmp_path: Path) -> None:
    if "tanks" in command and importlib.util.find_spec("pydrake") is None:
        pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        f"{command}{more}".split(),
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert lines(done.stdout) == lines(SHOWN[command]), done.stderr
