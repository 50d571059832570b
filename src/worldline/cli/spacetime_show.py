"""Shows a run through spacetime: as text, in pictures, checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import json
from rich.console import Console

from worldline.model import ModelError, UsageError
from worldline.spacetime.causality import check
from worldline.spacetime.pictures import animation_html, minkowski_svg
from worldline.spacetime.story import Record
from worldline.spacetime.testimony import Setting

_SHOWN_MAX = 10


class Outputs(NamedTuple):
    """Where a run is written to, besides the terminal, and whether it is checked."""

    record: Path | None
    diagram: Path | None
    animation: Path | None
    is_checked: bool

    @property
    def needs_records(self) -> bool:
        return self.is_checked or any((self.record, self.diagram, self.animation))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        for path, suffix in ((self.record, ".mcap"), (self.diagram, ".svg"), (self.animation, ".html")):
            if path is None:
                continue
            if path.is_dir() or not path.parent.is_dir():
                problem = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
                raise UsageError(f"{path} can't be written: {problem}")
            if path.suffix != suffix:
                raise UsageError(f"{path} doesn't end in {suffix}", advice="its name says what it is")
        if self.record is not None and self.record.exists():
            raise UsageError(f"there is a file {self.record} already", advice="remove it, or choose another name")


class Narrator:
    """Tells a run when it is over: only then is the order of what happened known."""

    def __init__(self, console: Console, *, as_json: bool, quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True) if as_json else console
        self._as_json = as_json
        self.is_told = not quiet

    def tell(self, records: Sequence[Record]) -> None:
        """Print what agents have noted, or all records as JSON."""
        if not self.is_told:
            return
        try:
            for record in records:
                if self._as_json:
                    print(json.encode(record).decode())
                elif record.kind == "log":
                    print(f"{record.at[0]:12.6f}  {record.agent}: {record.what}")
            sys.stdout.flush()
        except BrokenPipeError:  # Nobody reads on. That doesn't make the run a failure, nor the rest of the output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def warn(self, text: str) -> None:
        """Say what went wrong besides."""
        print(f"worldline: {text}", file=sys.stderr)

    def conclude(self, *lines: str) -> None:
        for line in lines:
            if line:
                self._console.print(line)


def drawn(records: Sequence[Record], setting: Setting, title: str, outputs: Outputs) -> list[tuple[Path, str]]:
    """Return the pictures that are wanted, and where to."""
    pictures = []
    if outputs.diagram is not None:
        picture = minkowski_svg(
            records, setting.n, field=setting.field, title=title, until=setting.until, boundaries=setting.boundaries
        )
        pictures.append((outputs.diagram, picture))
    if outputs.animation is not None:
        page = animation_html(records, setting.n, title=title, until=setting.until, boundaries=setting.boundaries)
        pictures.append((outputs.animation, page))
    return pictures


def save(pictures: Sequence[tuple[Path, str]]) -> None:
    for path, text in pictures:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror or error}") from error


def checked(records: Sequence[Record], setting: Setting) -> str:
    """Return how much was checked, if the records keep the laws of spacetime; refuse them if they don't."""
    verdict = check(records, setting.space, setting.field)
    if not verdict.is_clean:
        found = "\n".join(f"  {each}" for each in verdict.violations[:_SHOWN_MAX])
        raise ModelError(f"{len(verdict.violations):,} violations of causality; the first are:\n{found}")
    return f"checked {verdict}"
