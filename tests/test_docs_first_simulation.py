"""The tutorial on the kernel: its file as it grows, and what the commands print for it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.shell import printed

PAGE = Path(__file__).parent.parent / "docs" / "first-simulation.md"
LEFT_OUT = "...\n"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def retold(page: str, file: Path) -> str:
    """Return the page with what the commands in it really print."""
    return _BLOCK.sub(lambda block: f"```{block[1]}\n{_retold_block(block[1], block[2], file)}```", page)


def _retold_block(language: str, body: str, file: Path) -> str:
    if language == "python":
        file.write_text(body)
    elif language == "py":
        file.write_text(_with_definitions(file.read_text(), body))
    else:
        command, _, shown = body.removeprefix("$ ").partition("\n")
        return f"$ {command}\n{_shortened(printed(command, file.parent), shown)}"
    return body


def _with_definitions(program: str, replacements: str) -> str:
    """Return the program with these functions and classes instead of its own of the same names."""
    replaced = {node.name for node in ast.parse(replacements).body}  # type: ignore[attr-defined]
    kept = [node for node in ast.parse(program).body if getattr(node, "name", None) not in replaced]
    return "\n".join([*map(ast.unparse, kept), replacements])


def _shortened(output: str, shown: str) -> str:
    """Leave out of the output as much as the page does."""
    first, dots, last = shown.partition(LEFT_OUT)
    if not dots:
        return output
    lines = output.splitlines(keepends=True)
    ending = lines[len(lines) - last.count("\n") :]
    return "".join((*lines[: first.count("\n")], LEFT_OUT, *ending))


def without_clock(page: str) -> str:
    """Return the page without how long things take; nothing is run uncompiled where nothing is compiled."""
    return re.sub(r"simulated in [\d.]+ s| +\d+\.\d\d$|\d+ runs in [\d.]+ s", "", page, flags=re.MULTILINE)


@pytest.mark.long
def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    text = PAGE.read_text()
    assert without_clock(retold(text, tmp_path / "cafe.py")) == without_clock(text)
