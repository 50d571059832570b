"""The page on running: one file of each kind, and what the command prints for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shell import printed

PAGE = Path(__file__).parent.parent / "docs" / "running.md"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def retold(page: str, folder: Path) -> str:
    """Return the page with what the commands in it really print, in a folder where its files are."""
    return _BLOCK.sub(lambda block: f"```{block[1]}\n{_retold_block(block[1], block[2], folder)}```", page)


def _retold_block(language: str, body: str, folder: Path) -> str:
    if language:
        (folder / re.match(r"(?:#|<!--) (\S+)", body)[1]).write_text(body)  # type: ignore[index]
        return body
    commands = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
    return "".join(f"$ {command}\n{printed(command, folder)}" for command in commands)


def without_clock(page: str) -> str:
    return re.sub(r"simulated in [\d.]+ s", "simulated", page)


@pytest.mark.long
def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    text = PAGE.read_text()
    assert without_clock(retold(text, tmp_path)) == without_clock(text)
