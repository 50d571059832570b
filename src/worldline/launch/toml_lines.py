"""Finds the lines of a TOML file on which its keys stand, for messages: the parser keeps none of them."""

from __future__ import annotations

import tomllib
from typing import Any

Steps = tuple[str | int, ...]
_STATEMENT_LINES_MAX = 200  # Each further line of a statement is read with all before it.


def lines_of(text: str) -> dict[Steps, int]:
    """Return on which line each table and key of a valid document stands, by the way to it.

    The document is cut into statements: as many lines as the parser needs to understand them by themselves.
    """
    found: dict[Steps, int] = {}
    table: Steps = ()
    statement: list[str] = []
    counts: dict[Steps, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        statement.append(line)
        try:
            said = tomllib.loads("\n".join(statement))
        except (ValueError, RecursionError):
            if len(statement) > _STATEMENT_LINES_MAX:
                break
            continue
        first, is_header = number - len(statement) + 1, statement[0].lstrip().startswith("[")
        statement = []
        if is_header:
            table = _table(said, counts)
            found.setdefault(table, first)
        else:
            _note(found, table, said, first)
    return found


def _table(header: Any, counts: dict[Steps, int]) -> Steps:
    """Return the way to the table that a header begins; of an array of tables, to its last."""
    steps: Steps = ()
    while header:
        if isinstance(header, list):
            counts[steps] = counts.get(steps, 0) + 1
            return (*steps, counts[steps] - 1)
        ((key, header),) = header.items()
        steps = (*steps, key)
        if steps in counts and isinstance(header, dict):
            steps = (*steps, counts[steps] - 1)
    return steps


def _note(found: dict[Steps, int], steps: Steps, said: Any, line: int) -> None:
    for key, value in said.items() if isinstance(said, dict) else ():
        found.setdefault((*steps, key), line)
        _note(found, (*steps, key), value, line)
