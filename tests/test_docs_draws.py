"""The page on draws: the robot cell with other draws, and what the commands print for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.test_docs_running import retold, without_clock

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "draws.md"


@pytest.mark.long
def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    for name in ("robot_cell.py", "robot_cell.toml"):
        shutil.copy(ROOT / "examples" / "robot_cell" / name, tmp_path)
    text = PAGE.read_text()
    assert without_clock(retold(text, tmp_path)) == without_clock(text)
