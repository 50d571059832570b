"""The one way in which commands print: whatever is in a text, it does nothing but stand there.

What a text quotes of others (failures, names, files) is made printable before it is laid out, so that columns fit, and
again when it is rendered, in case that it came in another way. A text is one line, since a line break in it may be
somebody else's, and what follows would look like a line of ours; what has several is passed as `own_lines`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import json
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from worldline.model.text import printable, printable_colors, printable_json, printable_lines

if TYPE_CHECKING:
    from worldline.recording import Shelf

_COLOR = re.compile(r"\x1b\[[0-9;:]*m")


class PlainConsole(Console):
    """A console without markup or guesses, for which nothing in a text means anything."""

    def __init__(self, file: TextIO | None = None, *, wraps: bool = False) -> None:
        file = sys.stdout if file is None else file
        super().__init__(file=file, highlight=False, markup=False, emoji=False, soft_wrap=not wraps)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts on one line each; as they are, what was laid out already."""
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable_lines(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def warn(text: str) -> None:
    """Tell whoever runs the command what is probably not meant, beside what the command prints."""
    PlainConsole(sys.stderr).print(f"warning: {text}", style="yellow")


def remark(text: str) -> None:
    """Tell whoever runs the command something that it wasn't asked for, beside what the command prints."""
    PlainConsole(sys.stderr).print(text)


def own_lines(text: str) -> Text:
    """Return a text with several lines, of which each is ours."""
    return Text(printable_lines(text))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, for programs."""
    print(printable_json(json.encode(value).decode()))


def cell(text: str) -> str:
    """Return somebody else's text for a cell of a table, where a line break would look like another row."""
    return printable(text)


def uncolored(text: str) -> str:
    """Return a line that a program has printed, for a place that has no colors."""
    shown = printable_colors(text)
    return _COLOR.sub("", shown) if "\x1b" in shown else shown


def colored(text: str) -> Text:
    """Return a line that a program has printed, in its colors, which end with it."""
    shown = printable_colors(text)
    return Text.from_ansi(shown, end="") if "\x1b" in shown else Text(shown, end="")


# Keeps standard output free for the one thing that is to be there: an object, or a recording.


@contextmanager
def words_aside(shelf: Shelf | None, *, wanted: bool = False) -> Iterator[None]:
    """Send all that anybody prints to standard error meanwhile: models and workers too, whichever way they print.

    That is so if it is `wanted`, and if the recording goes to standard output, which is still open for it then.
    """
    recorded = shelf if shelf is not None and shelf.is_standard_output else None
    if not wanted and recorded is None:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    if recorded is not None:
        recorded.target = Path(f"/dev/fd/{kept}")
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
