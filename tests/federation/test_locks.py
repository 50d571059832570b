"""Locks that the main thread holds are let go whatever a signal's handler raises."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import worldline

ROOT = Path(worldline.__file__).parent
FILES = (
    "federation/participant/connection.py",
    "federation/participant/client.py",
    "federation/participant/participant.py",
    "launch/worker.py",
)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def unsafe_loops(text: str) -> list[int]:
    """Return the lines of loops in a `with` whose jump back isn't guarded: there an interruption leaves it as it is."""
    blocks = [(node.lineno, node.end_lineno or 0) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.With)]
    found = []
    for code in codes(compile(text, "text", "exec")):
        guarded = dis._parse_exception_table(code)  # type: ignore[attr-defined]
        instructions = list(dis.get_instructions(code))
        lines = {each.offset: each.positions.lineno for each in instructions if each.positions}
        for each in instructions:
            line = lines.get(each.argval) if each.opname == "JUMP_BACKWARD" else None
            if line and not any(entry.start <= each.offset < entry.end for entry in guarded):
                found += [line for begin, end in blocks if begin < line <= end]
    return found


def test_no_lock_is_held_around_a_loop_that_an_interruption_leaves() -> None:
    assert {name: lines for name in FILES if (lines := unsafe_loops((ROOT / name).read_text()))} == {}
