"""What stands for what in a Minkowski diagram, and how the legend explains it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from worldline.pictures.plane import KINDS_MAX, Disc, LabelSpace, Look, Point, between, distance, looks_of, text_discs
from worldline.pictures.sheet import Entry, fading_sample, line_sample
from worldline.pictures.spacetime.happenings import Flight, Life, Moment, SpacetimePicture, natural
from worldline.pictures.svg import (
    ALARM,
    INK,
    PALETTE,
    PAPER,
    SOFT,
    cross,
    element,
    path,
    shortened,
    text_at,
    text_width,
    way,
)
from worldline.spacetime.outcome import Coordinates

# Chooses how agents are drawn: alike if they are shown as the same.
#
# An agent is shown as what it says itself, `shown_as`, or else by its class. What appears first in the run, by lab time
# and then by the agent's name, gets the first color, whatever comes later; so a longer run doesn't change the colors of
# a shorter one. When there are no more colors, dashes and shapes tell looks apart; and when there are no more of these,
# the rest is drawn alike and in gray. If all agents are of one class and none says more, each has a color of its own.

_NAMELESS = "agent"  # Recordings may be older than classes in them.


class Kind(NamedTuple):
    """What agents are shown as, and how they are drawn; those that have a `place` differ from each other."""

    text: str
    place: int | None
    look: Look


class Looks:
    """How the agents of a story are drawn; `kinds` are what the legend explains: none if each has a color of its own.

    `change` says whether anybody's look does.
    """

    def __init__(self, story: SpacetimePicture) -> None:
        texts = _in_order(story.lives)
        says_more = any(text != life.kind for life in story.lives for _, text in life.looks)
        self.change = any(len(life.looks) > 1 for life in story.lives)
        self.kinds: list[Kind] = []
        if len(texts) <= 1 and not says_more:
            self._own = {
                life.name: Kind(life.name, place, Look(PALETTE[place % len(PALETTE)], None))
                for place, life in enumerate(story.lives)
            }
            return
        drawn = texts if len(texts) <= KINDS_MAX else texts[: KINDS_MAX - 1]
        self.kinds = [
            Kind(text or _NAMELESS, place, look) for place, (text, look) in enumerate(looks_of(drawn).items())
        ]
        self._shared = dict(zip(drawn, self.kinds, strict=True))
        if len(drawn) < len(texts):
            self.kinds.append(Kind(f"{len(texts) - len(drawn):,} others", None, Look(SOFT, None)))

    def along(self, life: Life) -> list[tuple[Coordinates, Kind]]:
        """Return how an agent is drawn, and from where on."""
        if not self.kinds:
            return [(life.looks[0][0], self._own[life.name])]
        return [(at, self._kind(text)) for at, text in life.looks]

    def at(self, life: Life, time: float) -> Look:
        """Return how an agent is drawn at some lab time; if it changes then, how it is drawn afterwards."""
        if not self.kinds:
            return self._own[life.name].look
        place = bisect_right(life.looks, time, key=lambda look: look[0][0])
        return self._kind(life.looks[max(0, place - 1)][1]).look

    def _kind(self, text: str) -> Kind:
        return self._shared.get(text, self.kinds[-1])


def _in_order(lives: Sequence[Life]) -> list[str]:
    """Return what agents are shown as, in the order in which it appears."""
    seen = sorted(
        (at[0], natural(life.name), place, text) for life in lives for place, (at, text) in enumerate(life.looks)
    )
    return list(dict.fromkeys(text for *_, text in seen))


LIGHT = "#f0b429"
WALL = "#8a96a3"
WALL_DASHES = "7 3 2 3"
JUMP = "5 4"
ATTACH = "3 2.5"
HEAD = 6.5
_KIND_UP_TO = 26  # Letters.

# What an event is drawn as, if several things happened in it: the first of these.
FAILURE = "failure"
_SIGNS = (
    ("failed", FAILURE),
    ("died", "death"),
    ("crossed", "boundary reached"),
    ("born", "birth"),
    ("attached", "channel attached"),
    ("held", "channel attached"),
    ("log", "logged"),
    ("timer", "timer"),
)
EVENT = "sent or absorbed"


def sign_of(moment: Moment, maker: str) -> str:
    """Return what an event is drawn as; as nothing, if it can be seen anyway."""
    kinds = moment.kinds
    for kind, sign in _SIGNS:
        if kind not in kinds or (kind == "crossed" and "ended" in kinds) or (kind == "born" and not maker):
            continue
        return sign
    return EVENT if "absorbed" in kinds or "sent" in kinds else ""


def glyph(sign: str, x: float, y: float, color: str, size: float) -> str:
    """Draw what stands for an event; `size` is 1 where there is plenty of room."""
    if sign == FAILURE:
        ring = element("circle", cx=x, cy=y, r=6.5, fill=PAPER, stroke=ALARM, stroke_width=2)
        return ring + element("path", d=cross(x, y, 3), stroke=ALARM, stroke_width=2, fill="none")
    if sign == "death":
        return element("path", d=cross(x, y, 4.2 * size), stroke=color, stroke_width=2.2 * size, fill="none")
    if sign == "birth":
        return element("circle", cx=x, cy=y, r=3.4 * size, fill=PAPER, stroke=color, stroke_width=1.6 * size)
    if sign == "boundary reached":
        half = 3.0 * size
        return element("rect", x=x - half, y=y - half, width=2 * half, height=2 * half, fill=color)
    if sign in ("channel attached", "timer"):
        arm = (4.2 if sign == "channel attached" else 3.2) * size
        rhomb = way(((x, y - arm), (x + arm, y), (x, y + arm), (x - arm, y)))
        fill = PAPER if sign == "timer" else color
        return element("path", d=f"{rhomb}z", fill=fill, stroke=color, stroke_width=1.2 * size)
    if sign == "logged":
        ring = element("circle", cx=x, cy=y, r=3.6 * size, fill=PAPER, stroke=color, stroke_width=1.2 * size)
        return ring + element("circle", cx=x, cy=y, r=1.4 * size, fill=color)
    return element("circle", cx=x, cy=y, r=2.1 * size, fill=color)


def dashes_of(flight: Flight) -> str | None:
    return ATTACH if flight.what == "attach" else None


def entries_of(
    kinds: Iterable[Kind], signs: Iterable[str], flights: Iterable[Flight], *, jumps: bool, cones: bool, walls: bool
) -> list[Entry]:
    """Return what the legend explains: only what there is."""
    there = dict.fromkeys(signs)
    entries = [
        Entry(shortened(kind.text, _KIND_UP_TO), line_sample(kind.look.color, 2.4, kind.look.dashes)) for kind in kinds
    ]
    entries = entries or [Entry("worldline", line_sample(INK, 2.0, None))]
    if jumps:
        entries.append(Entry("jump", line_sample(INK, 1.4, JUMP)))
    fates = dict.fromkeys((dashes_of(flight), flight.fate == "absorbed") for flight in flights)
    names = ((None, "lambda"), (ATTACH, "end of a channel"))
    entries += [Entry(name, line_sample(SOFT, 1.2, dashes, HEAD)) for dashes, name in names if (dashes, True) in fates]
    if any(not absorbed for _, absorbed in fates):
        entries.append(Entry("never absorbed", fading_sample(1.2)))
    if cones:
        entries.append(Entry("light cone", _cone))
    if walls:
        entries.append(Entry("boundary", line_sample(WALL, 1.4, WALL_DASHES)))
    order = (FAILURE, EVENT, "birth", "death", "channel attached", "timer", "logged", "boundary reached")
    return entries + [Entry(sign, _glyph(sign)) for sign in order if sign in there]


def _glyph(sign: str) -> Callable[[float, float], str]:
    return lambda x, y: glyph(sign, x + 12, y, INK, 1.0)


def _cone(x: float, y: float) -> str:
    edge = ((x + 3, y - 5), (x + 12, y + 4), (x + 21, y - 5))
    return path(edge, fill=LIGHT, fill_opacity=0.3, stroke=LIGHT, stroke_width=1)


# Finds places for the names of worldlines, where they cover no other text, and if possible no line.

_LINES_UP_TO = 60  # Worldlines; with more of them, names can't stay off all lines.
_AT_THE_END = 4  # So many of the places for a name are where its line ends.
_BOLD = 1.16  # How much wider bold letters are.
_STEP = 7.0


class Name(NamedTuple):
    """A text that is to be put beside a line."""

    text: str
    color: str
    line: Sequence[Point]


class Names:
    """Puts texts into a picture whose left and right edges are here."""

    def __init__(self, left: float, right: float) -> None:
        self._left = left
        self._right = right
        self._texts = LabelSpace()
        self._lines = LabelSpace()

    def avoid(self, lines: Sequence[Sequence[Point]], axis: Sequence[Point]) -> None:
        """Keep texts off the axis, and off worldlines unless there are too many."""
        self._texts.take(_covering(axis))
        if len(lines) <= _LINES_UP_TO:
            for line in lines:
                self._lines.take(_covering(line))

    def placed(self, names: Sequence[Name], size: float) -> list[str]:
        """Write as many names as there is room for. Those that go to the best places are written first."""
        drawn: dict[int, str] = {}
        most = None if len(names) <= _LINES_UP_TO else _AT_THE_END
        for covers_lines in (False, True):
            for place, name in enumerate(names):
                if place not in drawn:
                    text = self._beside(name, size, covers_lines, most)
                    if text:
                        drawn[place] = text
        return [drawn[place] for place in sorted(drawn)]

    def note(self, places: Sequence[Point], text: str, size: float, *, covers_lines: bool = True) -> str:
        """Write a text beside one of some points, or nothing if there's no room."""
        width = text_width(text, size)
        spots = [(x + dx, y + dy) for x, y in places for dx in (7.0, -7.0 - width) for dy in (3.5, -6.0, 13.0)]
        for covers in (False, True) if covers_lines else (False,):
            for left, base in spots:
                written = self._tried(left, base, text, width, size, "", covers_lines=covers)
                if written:
                    return written
        return ""

    def _beside(self, name: Name, size: float, covers_lines: bool, most: int | None) -> str:
        width = text_width(name.text, size) * _BOLD
        for left, base in islice(_candidates(name.line, width, size), most):
            written = self._tried(left, base, name.text, width, size, name.color, covers_lines=covers_lines)
            if written:
                return written
        return ""

    def _tried(
        self, left: float, base: float, text: str, width: float, size: float, color: str, *, covers_lines: bool
    ) -> str:
        if left < self._left or left + width > self._right:
            return ""
        discs = text_discs((left + width / 2, base - size * 0.36), width, size)
        if not self._texts.is_free(discs) or not (covers_lines or self._lines.is_free(discs)):
            return ""
        self._texts.take(discs)
        return text_at(left, base, text, size=size, fill=color or None)


def _candidates(line: Sequence[Point], width: float, size: float) -> Iterator[Point]:
    """Yield where a text of this width might begin: over the line's end, beside it, along it, under its start."""
    x, y = line[-1]
    yield x - width / 2, y - 7
    yield x - width / 2, y - 9 - size
    yield x + 7, y + size * 0.4
    yield x - 7 - width, y + size * 0.4
    for share in (0.85, 0.6, 0.4, 0.2):
        x, y = _along(line, share)
        yield x + 8, y + size * 0.36
        yield x - 8 - width, y + size * 0.36
    x, y = line[0]
    yield x - width / 2, y + size + 6


def _along(line: Sequence[Point], share: float) -> Point:
    """Return the point of a line that is at this share of its height."""
    height = line[0][1] + (line[-1][1] - line[0][1]) * share
    for place in range(1, len(line)):
        start, end = line[place - 1], line[place]
        if end[1] <= height < start[1]:
            return between(start, end, (height - start[1]) / (end[1] - start[1]))
    return line[-1]


def _covering(line: Sequence[Point]) -> Iterator[Disc]:
    for place in range(1, len(line)):
        start, end = line[place - 1], line[place]
        count = int(distance(start, end) / _STEP) + 1
        for step in range(count + 1):
            yield Disc(*between(start, end, step / count), 2.0)
