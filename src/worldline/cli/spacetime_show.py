"""Shows a run through spacetime: as text, in pictures, checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from worldline.cli.console import PlainConsole, print_json
from worldline.model import ModelError, UsageError
from worldline.model.errors import Unread
from worldline.model.printable import printable
from worldline.recording import Shelf
from worldline.saving.destination import destination
from worldline.saving.destination import save as save_file
from worldline.spacetime.causality import check
from worldline.spacetime.pictures import animation_html, minkowski_svg
from worldline.spacetime.story import AgentRecord
from worldline.spacetime.told import Scene

_SHOWN_MAX = 10


class SpacetimeOutputs(NamedTuple):
    """Where a run is written to, besides the terminal, and whether it is checked."""

    record: Shelf | None
    diagram: Path | None
    animation: Path | None
    is_checked: bool

    @property
    def needs_records(self) -> bool:
        return self.is_checked or any((self.record, self.diagram, self.animation))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        record = None if self.record is None else self.record.path
        for path, suffix in ((record, ".mcap"), (self.diagram, ".svg"), (self.animation, ".html")):
            if path is not None and not destination(path).is_stream and path.suffix != suffix:
                raise UsageError(f"{path} doesn't end in {suffix}", advice="its name says what it is")


class SpacetimeNarrator:
    """Tells a run when it is over: only then is the order of what happened known."""

    def __init__(self, console: Console, *, as_json: bool, quiet: bool) -> None:
        self._console = PlainConsole(sys.stderr) if as_json else console
        self._as_json = as_json
        self.is_told = not quiet

    def tell(self, records: Sequence[AgentRecord]) -> None:
        """Print what agents have noted, or all records as JSON."""
        if not self.is_told:
            return
        try:
            for record in records:
                if self._as_json:
                    print_json(record)
                elif record.kind == "log":
                    print(printable(f"{record.at[0]:12.6f}  {record.agent}: {record.what}"))
            sys.stdout.flush()
        except Unread:
            return  # The run is no failure for that, nor the rest of the output.

    def say(self, line: str) -> None:
        """Say something of the run that isn't part of what happens in it."""
        if self.is_told and not self._as_json:
            self._console.print(line)

    def warn(self, text: str) -> None:
        """Say what went wrong besides."""
        PlainConsole(sys.stderr).print(f"worldline: {text}")

    def conclude(self, *lines: str) -> None:
        for line in lines:
            if line:
                self._console.print(line)


def drawn(
    records: Sequence[AgentRecord], scene: Scene, title: str, outputs: SpacetimeOutputs
) -> list[tuple[Path, str]]:
    """Return the pictures that are wanted, and where to."""
    pictures = []
    if outputs.diagram is not None:
        picture = minkowski_svg(
            records, scene.n, field=scene.field, title=title, until=scene.until, boundaries=scene.boundaries
        )
        pictures.append((outputs.diagram, picture))
    if outputs.animation is not None:
        page = animation_html(records, scene.n, title=title, until=scene.until, boundaries=scene.boundaries)
        pictures.append((outputs.animation, page))
    return pictures


def save(pictures: Sequence[tuple[Path, str]]) -> None:
    for path, text in pictures:
        save_file(path, text.encode())


def checked(records: Sequence[AgentRecord], scene: Scene) -> str:
    """Return how much was checked, if the records keep the laws of spacetime; refuse them if they don't."""
    verdict = check(records, scene.space, scene.field)
    if not verdict.is_clean:
        count = len(verdict.violations)
        said = f"{count:,} violations of causality; the first are" if count > 1 else "a violation of causality"
        lines = [f"{said}:", *(f"  {each}" for each in verdict.violations[:_SHOWN_MAX])]
        raise ModelError("\n".join(lines), mistakes=lines)
    return f"checked {verdict}"
