"""Makes an animation of a run: a page that plays what happens in a world, seen from above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

from worldline.files.saving import save
from worldline.model.text import counted
from worldline.model.time import SECOND, format_time
from worldline.pictures.player import Page, player_page
from worldline.pictures.world.film import TURN, FilmFrame, Spot, WorldFilm, millimeters
from worldline.world.description import Level


class Animation(WorldFilm):
    """Collects frames; `html` and `write` make a page of what there is so far."""

    def _repr_html_(self) -> str:
        return self.html()._repr_html_()

    def html(self) -> Page:
        """Return the page. It needs nothing from elsewhere, and nothing in it depends on the machine."""
        frames = self.frames()
        world = self.world
        content = {
            "step": world.step / SECOND,
            "iterations": _differences([frame.iteration for frame in frames]),
            "steps": _differences([frame.step for frame in frames]),
            "cuts": [place for place, (a, b) in enumerate(pairwise(frames), 1) if a.epoch != b.epoch],
            "secondaries": sorted(self.secondaries),
            "movers": list(self._told_movers(frames)),
            "statics": [
                {"outlines": outlines, "spans": _spans([number in frame.statics for frame in frames])}
                for number, (_, outlines) in enumerate(self.statics)
            ],
            "levels": [
                {
                    "name": level.name,
                    "box": _level_box(level),
                    "buffer": millimeters(level.buffer),
                    "spans": _spans([number in frame.active for frame in frames]),
                }
                for number, level in enumerate(world.levels)
            ],
            "turn": TURN,
        }
        switches = {"trails": "Trails", "names": "Names"}
        return player_page("world", self.title or world.name, self._summary(frames), content, switches)

    def write(self, target: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        save(Path(target), self.html().encode())

    def _summary(self, frames: Sequence[FilmFrame]) -> str:
        if not frames:
            return "Nothing happened."
        took = (frames[-1].iteration - frames[0].iteration) * self.world.step
        return f"{counted(len(self.movers), 'mover')}, {format_time(took)}, seen from above."

    def _told_movers(self, frames: Sequence[FilmFrame]) -> Iterator[dict[str, Any]]:
        performers = self.performers()
        colors = {self.secondaries[name]: color for color, name in enumerate(sorted(self.secondaries))}
        for number, (name, outlines) in enumerate(self.movers):
            yield {
                "name": performers.get(name, name),
                "model": name,
                "performs": name in performers,
                "outlines": outlines,
                "runs": _runs(number, frames),
                "owners": _changes([colors.get(frame.owners.get(number, -1)) for frame in frames]),
            }


def _level_box(level: Level) -> list[int]:
    (x, y, _), (width, depth, _) = level.center, level.size
    return [millimeters(each) for each in (x - width / 2, y - depth / 2, x + width / 2, y + depth / 2)]


def _differences(numbers: Sequence[int]) -> list[int]:
    return [*numbers[:1], *(b - a for a, b in pairwise(numbers))]


def _spans(flags: Sequence[bool]) -> list[int]:
    """Return where each row of trues starts, and where it stops."""
    padded = [False, *flags, False]
    return [place for place, (a, b) in enumerate(pairwise(padded)) if a != b]


def _changes(values: Sequence[int | None]) -> list[int]:
    """Return the places at which a value isn't the one before, each with the value; what is None doesn't count."""
    found: list[int] = []
    for place, value in enumerate(values):
        if value is not None and (not found or found[-1] != value):
            found += [place, value]
    return found


def _runs(number: int, frames: Sequence[FilmFrame]) -> list[list[int]]:
    """Return where a mover was while it was there without a break: the first frame, then differences of spots."""
    runs: list[list[int]] = []
    last: Spot | None = None
    for place, frame in enumerate(frames):
        spot = frame.spots.get(number)
        if spot is not None:
            if last is None:
                runs.append([place, *spot])
            else:
                turned = (spot[2] - last[2] + TURN // 2) % TURN - TURN // 2  # The short way round.
                runs[-1] += [spot[0] - last[0], spot[1] - last[1], turned]
        last = spot
    return runs
