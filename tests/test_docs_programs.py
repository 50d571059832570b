"""The page on unmodified programs: what it shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "programs.md").read_text()
SHOWN = dict(re.findall(r"^```\n\$ worldline (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def printed(*words: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    return done.stderr + done.stdout


def test_the_machines_in_python_print_what_the_page_shows(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^```\n\$ python hello.py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "hello.py").write_text(program)
    assert printed("hello.py", folder=tmp_path) == shown


def test_the_control_loop_prints_what_the_page_shows() -> None:
    (command,) = (command for command in SHOWN if command.startswith("run"))
    said = printed("-m", "worldline", *shlex.split(command), "--no-record", "--executor", "in-process")
    assert said.startswith(SHOWN[command])


def test_the_tables_of_the_page_are_those_of_the_example() -> None:
    file = (ROOT / "examples" / "udp_loop" / "udp_loop.toml").read_text()
    for shown in re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        for line in shown.splitlines():
            assert line in file


@pytest.mark.long
@pytest.mark.parametrize("example", ["election", "tally"])
def test_what_goes_wrong_is_found_and_shrunk(example: str) -> None:
    (command,) = (command for command in SHOWN if command.startswith(f"search examples/{example}"))
    said = printed("-m", "worldline", *shlex.split(command))
    said = re.sub(r"^searching: .*\n", "", said, flags=re.MULTILINE)  # Where it takes long, it says how far it is.
    assert said.startswith(SHOWN[command])
