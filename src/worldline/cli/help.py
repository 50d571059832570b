"""How help is laid out: names at the left, what they do at the right, and syntax that is never cut.

Typer's own panels give each kind of thing a column, which leaves 21 of 80 for words, and cut what is longer. Here there
are two columns, lines are broken at blanks alone, and what has no room beside a name stands below it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from textwrap import wrap
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

_WIDTH_MIN, _WIDTH_MAX = 40, 100
_LEFT_MAX = 28  # Names that are longer have what they do below them.
_BELOW = 6

Rows = list[tuple[str, str]]

# What a value is, in the words of a user; typer has those of the program.
_KIND = re.compile(r"<(int|float|str|path|list\[\w+\])(?: range)?>")
_KINDS = {"int": "N", "float": "NUMBER", "str": "TEXT", "path": "FILE"}
_AT_LEAST = re.compile(r"(?<=[\[ ])x>=([\d.]+)")
_BETWEEN = re.compile(r"(?<=[\[ ])([\d.]+)<=x<=([\d.]+)")


class HelpfulCommand(TyperCommand):
    """A command whose help can be read in 80 columns. Its epilog is shown as it stands."""

    def get_help(self, ctx: Any) -> str:
        return "\n".join(_lines(self, ctx, {}))


class HelpfulGroup(TyperGroup):
    """The same for the command of all commands. What each does is in `about`, so that none is loaded for its help."""

    about: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.about)

    def get_help(self, ctx: Any) -> str:
        return "\n".join(_lines(self, ctx, {"Commands": list(self.about.items())}))


def _lines(command: TyperCommand | TyperGroup, ctx: Any, sections: dict[str, Rows]) -> Iterator[str]:
    width = min(max(shutil.get_terminal_size().columns, _WIDTH_MIN), _WIDTH_MAX)
    yield from command.get_usage(ctx).splitlines()
    for paragraph in filter(None, cleandoc(command.help or "").split("\n\n")):
        yield ""
        yield from _wrapped(paragraph, width, "  ")
    for title, rows in {**_parameters(command, ctx), **sections}.items():
        yield ""
        yield typer.style(f"{title}:", bold=True)
        yield from table(rows, width)
    if command.epilog:
        yield ""
        yield command.epilog.strip("\n")


def _parameters(command: TyperCommand | TyperGroup, ctx: Any) -> dict[str, Rows]:
    """Return what can be said to a command, by the panels that it is put into."""
    sections: dict[str, Rows] = {}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is None:
            continue
        name, about = record
        is_argument = each.param_type_name == "argument"
        if is_argument:
            name = name.partition(" <")[0]  # What it is called says what it is.
        title = getattr(each, "rich_help_panel", None) or ("Arguments" if is_argument else "Options")
        about = _BETWEEN.sub(r"\1 to \2", _AT_LEAST.sub(r"at least \1", about))
        sections.setdefault(title, []).append((_KIND.sub(_kind, name), about))
    return sections


def _kind(found: re.Match[str]) -> str:
    return _KINDS.get(found[1], "TEXT")


def table(rows: Rows, width: int) -> Iterator[str]:
    """Lay out names and what they do."""
    left = max((len(name) for name, _ in rows if len(name) <= _LEFT_MAX), default=0)
    for name, about in rows:
        shown = typer.style(name, bold=True)
        room = width - left - 4
        if len(name) <= left and all(len(word) <= room for word in about.split()):
            first, *rest = _wrapped(about, width, " " * (left + 4)) or [""]
            yield f"  {shown}{' ' * (left - len(name))}{first[left + 2 :]}".rstrip()
            yield from rest
        else:
            yield f"  {shown}"
            yield from _wrapped(about, width, " " * _BELOW)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
