"""Tables in HTML, as notebooks show values: plain markup that goes with any theme, and texts that do nothing.

Pure. What is longer than a reader would read is cut, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from worldline.model.text import printable

ROWS_MAX = 20
_CELL_MAX = 200
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def escaped(text: object) -> str:
    """Return a text that can stand in markup, whatever is in it."""
    shown = printable(str(text))
    return (shown if len(shown) <= _CELL_MAX else f"{shown[: _CELL_MAX - 1]}…").translate(_ESCAPES)


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return facts, each with its name, under a title."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escaped(name)}</th>'
        f'<td style="text-align:left">{escaped(fact)}</td></tr>'
        for name, fact in facts
    )
    return f"<table><caption><b>{escaped(title)}</b></caption><tbody>{rows}</tbody></table>"


def table_html(titles: Sequence[str], rows: Iterable[Sequence[object]], rows_max: int = ROWS_MAX) -> str:
    """Return a table; nothing, if it has no rows."""
    all_rows = iter(rows)
    shown = [[escaped(cell) for cell in row] for row in islice(all_rows, rows_max)]
    left = sum(1 for _ in all_rows)
    if not shown:
        return ""
    head = "".join(f"<th>{escaped(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown)
    more = f'<tfoot><tr><td colspan="{len(titles)}">and {left:,} more</td></tr></tfoot>' if left else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{more}</table>"
