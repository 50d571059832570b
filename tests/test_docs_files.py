"""Pages whose programs are files: with all of them in a folder, each command prints what the page shows."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("first-metasim.md", "metasim.md", "learning.md")
TEXTS = {page: (ROOT / "docs" / page).read_text() for page in PAGES}
FILES = {
    page: dict(re.findall(r"^```\w+\n(?=# (\S+)\n)(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    for page, text in TEXTS.items()
}
SHOWN = [
    (page, command, shown)
    for page, text in TEXTS.items()
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)+)", text, re.MULTILINE)
]
ELSEWHERE = [
    (page, f"{command} --executor in-process", shown) for page, command, shown in SHOWN if "worldline run" in command
]
HAS_DRAKE = importlib.util.find_spec("pydrake") is not None


@pytest.mark.parametrize("page", PAGES)
def test_every_program_is_tried(page: str) -> None:
    files = FILES[page]
    told = [command for other, command, _ in SHOWN if other == page]
    named = re.findall(r"\w+\.(?:py|toml)", " ".join(told))
    assert {*named} <= {*files}
    for name in files:
        stem = re.compile(rf"\b{name.partition('.')[0]}\b")
        assert any(map(stem.search, (*told, *(text for other, text in files.items() if other != name)))), name


def printed(text: str, page: str) -> list[str]:
    """Return what was printed, without how long it took; what several processes print comes in any order."""
    lines = re.sub(r"simulated in [\d.]+ s", "simulated", text).splitlines()
    return lines if page == "learning.md" else sorted(lines)


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize(("page", "command", "shown"), [*SHOWN, *ELSEWHERE])
def test_a_command_prints_what_is_shown(page: str, command: str, shown: str, tmp_path: Path) -> None:
    if not HAS_DRAKE and page != "learning.md" and re.search(r"tanks|existing", command):
        pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
    for name, text in FILES[page].items():
        (tmp_path / name).write_text(text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"PYTHONUNBUFFERED": ""}  # Unbuffered, lines of processes that share a pipe could get mixed up.
    environment |= {"PYTHONWARNINGS": "error", "PYTHONHASHSEED": "0"} if page == "learning.md" else {}
    done = subprocess.run(
        command.split(), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert printed(done.stdout, page) == printed(shown, page), done.stderr
    if page == "learning.md":
        assert done.stderr == ""
