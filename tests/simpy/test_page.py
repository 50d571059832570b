"""The page on SimPy: its files, and what commands print for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs_running import retold, without_clock

PAGE = Path(__file__).parents[2] / "docs" / "from-simpy.md"


@pytest.mark.long
def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index("## A bank, unchanged") : text.index("## A model with parameters")]
    assert without_clock(retold(shown, tmp_path)) == without_clock(shown)
