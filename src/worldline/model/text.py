"""Texts for people: numbers of things, what a terminal may safely show, lines, tables for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

# Numbers of things, as people write them.


def counted(number: int, thing: str, things: str = "") -> str:
    """Return ``1 message``, ``2 messages``, ``1,000 messages``; unless there is a plural of its own."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


# Makes texts of others fit to be shown: what a terminal would obey, or what looks like a line of ours, is escaped.
#
# A failure's text, a name in a file or what a participant prints is written by others. Control characters in it
# could move the cursor, overwrite what stands there, or begin a new line that looks like one of ours; so could line
# separators, and characters that turn the direction of writing make a text look like another. All of them are written
# as Python would write them in a string: ``\x1b``, ``\u202e``. Letters of any script, blanks and joined emoji stay.
#
# There are two places for it, and each sees to all that passes. Exceptions, which any program may print, have texts of
# one line (`worldline.model.errors`). And commands make everything printable that they print (`worldline.cli.console`).

# Controls, invisible characters that change how others are shown, separators of lines and paragraphs, halves of
# characters. Not the joiners U+200C and U+200D, without which Persian and many emoji are misspelled.
_HARMFUL = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_ANY = re.compile(f"[{_HARMFUL}]")
_BUT_LINES = re.compile(rf"(?![\n\t])[{_HARMFUL}]")
_BUT_COLORS = re.compile(rf"(?P<color>\x1b\[[0-9;:]{{0,64}}m)|(?!\t)[{_HARMFUL}]")
_IN_JSON = re.compile(rf"(?!\n)[{_HARMFUL}]")


def printable(text: str) -> str:
    """Return a text on one line that does nothing but stand there."""
    return text if text.isprintable() else _ANY.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """Return a text of ours, which may have several lines and quote anything."""
    return text if text.isprintable() else _BUT_LINES.sub(_escaped, text)


def printable_colors(text: str) -> str:
    """Return a line that a program has printed, with its tabs and colors. The caller sees to it that those end."""
    return text if text.isprintable() else _BUT_COLORS.sub(lambda match: match["color"] or _escaped(match), text)


def printable_json(text: str) -> str:
    """Return JSON that says the same; in JSON only strings can hold such characters."""
    return text if text.isprintable() else _IN_JSON.sub(_escaped_in_json, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _escaped_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


# Lines: how what a program prints, which comes in pieces, becomes lines of text.


class LineSplitter:
    """Takes what is printed in one place as it comes. A line that grows beyond `longest` isn't waited for."""

    def __init__(self, longest: int | None = None) -> None:
        self._longest = longest
        self._rest = b""  # Of a line that hasn't ended.

    def feed(self, data: bytes) -> list[str]:
        """Take what was printed; return each line that has ended by it."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        texts = [_text(line) for line in lines]
        if self._longest is not None and len(self._rest) > self._longest:
            texts += self.finish()
        return texts

    def finish(self) -> list[str]:
        """Nothing more comes: return the line that hasn't ended, if there is one."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


# Tables in HTML, as notebooks show values: plain markup that goes with any theme, and texts that do nothing.
#
# What is longer than a reader would read is cut, and says so.

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
