"""Reads the records of a run for its pictures: where agents went, which lambdas there were, and what else happened."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from worldline.model.errors import UsageError, shown
from worldline.pictures.svg import KINDS_MAX, PALETTE, SOFT, Look, looks_of
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.outcome import AgentRecord, Coordinates

Each = TypeVar("Each")
Fate = Literal["absorbed", "vanished", "under way"]

_BECAME: dict[Fate, str] = {
    "absorbed": "absorbed at",
    "vanished": "vanished before",
    "under way": "still under way at",
}
_WORDS = {
    "sent": "sent {what} to {peer}",
    "absorbed": "absorbed {what} from {peer}",
    "log": "“{what}”",
    "measured": "measured {what}",
    "shown": "shown as {what}",
    "waits": "waits for {peer}",
    "created": "created a channel to {peer}",
    "held": "held a channel to {peer}",
    "closed": "closed a channel to {peer}",
    "attached": "attached a channel from {peer}",
}
_EVENTS = ("absorbed", "timer", "crossed")
_CORNERS = ("born", "turned", "jumped", "died", "ended")
_ENDS = ("died", "ended", "failed", "waits")
_FAILURES_UP_TO = 4
_NUMBERS = re.compile("([0-9]+)")


class Moment(NamedTuple):
    """What happened to an agent at one point of its way."""

    at: Coordinates
    local_time: float
    records: list[AgentRecord]

    @property
    def kinds(self) -> list[str]:
        return [record.kind for record in self.records]


class Life(NamedTuple):
    """The way of an agent: straight from corner to corner; to those that are in `jumps`, it jumped.

    `kind` is its class, and `looks` what it is shown as from which point on. `end` is the kind of record that it ended
    with, or nothing if the picture stops before.
    """

    name: str
    kind: str
    maker: str
    corners: list[Coordinates]
    jumps: frozenset[int]
    moments: list[Moment]
    looks: list[tuple[Coordinates, str]]
    end: str

    @property
    def failures(self) -> list[AgentRecord]:
        """Why it couldn't go on, if that ended the run."""
        return [record for moment in self.moments for record in moment.records if record.kind == "failed"]


class Flight(NamedTuple):
    """A lambda on its way, from where it was emitted to where it was absorbed, vanished, or is at the end."""

    source: str
    target: str
    what: str
    emitted: Coordinates
    end: Coordinates
    fate: Fate

    def __str__(self) -> str:
        became = _BECAME[self.fate]
        way = f"{self.source} → {self.target}"
        return f"{self.what}, {way}: emitted at {point(self.emitted)}, {became} {point(self.end)}"


class SpacetimePicture(NamedTuple):
    """All that a picture shows."""

    begin: float
    end: float
    lives: list[Life]
    flights: list[Flight]


def point(at: Iterable[float]) -> str:
    """Write a point for people."""
    return f"({', '.join(f'{each:.6g}' for each in at)})"


def described(moment: Moment) -> str:
    """Say what happened in a moment."""
    return "; ".join(_said(record) for record in moment.records)


def _said(record: AgentRecord) -> str:
    if record.kind == "born":
        return f"born of {record.peer}" if record.peer else "born"
    words = _WORDS.get(record.kind, "{kind} {what}")
    return words.format(kind=record.kind, what=record.what, peer=record.peer).rstrip()


def told(records: Iterable[AgentRecord], n: int, until: float | None, field: LambdaField | None) -> SpacetimePicture:
    """Read records; what is after `until`, in lab time, is left out. A run that failed ends with what came last."""
    if type(n) is not int or n < 1:
        raise UsageError(f"a space can't have {shown(n)} dimensions", advice="give simulation.space.n")
    if isinstance(until, bool) or not isinstance(until, int | float | None) or not math.isfinite(until or 0):
        raise UsageError(f"{shown(until)} isn't an end", advice="give a lab time, such as result.until")
    own: dict[str, list[AgentRecord]] = {}
    for record in records:
        if len(record.at) != n:
            raise UsageError(
                f"a record of {record.agent} has {len(record.at)} coordinates, and the space {n} dimensions",
                advice="give simulation.space.n",
            )
        own.setdefault(record.agent, []).append(record)
    whole = {name: _life(name, sorted(own[name], key=lambda each: each.number)) for name in sorted(own, key=natural)}
    times = [at[0] for life in whole.values() for at in life.corners]
    last = max(times, default=0.0 if until is None else until)
    end = float(last if until is None else until)
    if any(life.failures for life in whole.values()):
        end = min(end, last)
        whole = {name: _extended(life, own[name], end) for name, life in whole.items()}
    flights = _flights(own, whole, end, field)
    lives = [life for each in whole.values() if (life := _cut(each, end)) is not None]
    begin = min([at[0] for life in lives for at in life.corners] + [each.emitted[0] for each in flights], default=end)
    return SpacetimePicture(begin, end, lives, flights)


def failures_of(story: SpacetimePicture) -> list[str]:
    """Say who has made the run fail, where and why: the first of them, at least."""
    found = [(life, each) for life in story.lives for each in life.failures]
    first = sorted(found, key=lambda each: (each[1].at[0], each[0].name))[:_FAILURES_UP_TO]
    return [f"Failed: {life.name}: {each.what}" for life, each in first]


def chosen_story(story: SpacetimePicture, agents: int, lambdas: int) -> SpacetimePicture:
    """Leave out agents and lambdas, evenly, if there are more than these."""
    lives = thinned(story.lives, agents)
    names = {life.name for life in lives}
    flights = [each for each in story.flights if each.source in names and each.target in names]
    return SpacetimePicture(story.begin, story.end, lives, thinned(flights, lambdas))


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names as people do: a-9 is before a-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name)]


def thinned(things: Sequence[Each], most: int) -> list[Each]:
    """Return so many of some things at most, evenly, with the first and the last."""
    if len(things) <= most:
        return list(things)
    if most < 2:
        return list(things[:most])
    return [things[place * (len(things) - 1) // (most - 1)] for place in range(most)]


def _life(name: str, records: list[AgentRecord]) -> Life:
    maker = next((record.peer for record in records if record.kind == "born"), "")
    shown_from = _placed(records) if not maker else 0
    corners: list[Coordinates] = []
    jumps: dict[int, None] = {}
    moments: list[Moment] = []
    for place, record in enumerate(records[shown_from:]):
        if record.kind == "jumped" and place and record.emitted is not None:
            if corners[-1] != record.emitted:
                corners.append(record.emitted)
            jumps[len(corners)] = None
            corners.append(record.at)
        elif (record.kind in _CORNERS or not corners) and (not corners or corners[-1] != record.at):
            corners.append(record.at)
        if moments and moments[-1].at == record.at:
            moments[-1].records.append(record)
        else:
            moments.append(Moment(record.at, record.local_time, [record]))
    if corners[-1] != moments[-1].at:
        corners.append(moments[-1].at)
    end = next((record.kind for record in reversed(records) if record.kind in _ENDS), "")
    kind = next((record.what for record in records if record.kind == "born"), "")
    return Life(name, kind, maker, corners, frozenset(jumps), moments, _looks(kind, corners[0], records), end)


def _looks(kind: str, start: Coordinates, records: list[AgentRecord]) -> list[tuple[Coordinates, str]]:
    """Return what an agent is shown as, and from where on."""
    looks, since = [(start, kind)], 0.0
    for record in records:
        if record.kind != "shown":
            continue
        at, text = record.at, record.what or kind
        if record.local_time == since:  # It has had no time to be what it was before.
            at, _ = looks.pop()
        if not looks or looks[-1][1] != text:
            looks.append((at, text))
        since = record.local_time
    return looks


def _extended(life: Life, records: list[AgentRecord], end: float) -> Life:
    """Let an agent go straight on to the end, if it is alive: nothing has happened to it until then."""
    start = life.corners[-1]
    velocity = next((each.velocity for each in sorted(records, key=lambda each: -each.number) if each.velocity), None)
    if life.end or velocity is None or not start[0] < end:
        return life
    share = (end - start[0]) / velocity[0]
    goal = (end, *(x + v * share for x, v in zip(start[1:], velocity[1:], strict=True)))
    return life._replace(corners=[*life.corners, goal])


def _placed(records: list[AgentRecord]) -> int:
    """Return the place of the last jump of the set-up, which puts an agent where it begins and is no way it takes."""
    found = 0
    for place, record in enumerate(records):
        if record.kind in _EVENTS or record.local_time > 0:
            break
        if record.kind == "jumped":
            found = place
    return found


def _cut(life: Life, end: float) -> Life | None:
    """Leave out what is after the end of the picture; None if nothing is left."""
    corners = life.corners
    if corners[0][0] > end:
        return None
    if corners[-1][0] <= end:
        return life
    count = next(place for place, at in enumerate(corners) if at[0] > end)
    kept = corners[:count]
    if kept[-1][0] < end:
        kept.append(at_time(kept[-1], corners[count], end))
    moments = [moment for moment in life.moments if moment.at[0] <= end]
    looks = [(at, text) for at, text in life.looks if at[0] <= end]
    jumps = frozenset(jump for jump in life.jumps if jump < len(kept))
    return life._replace(corners=kept, jumps=jumps, moments=moments, looks=looks, end="")


def at_time(start: Coordinates, end: Coordinates, time: float) -> Coordinates:
    """Return the point of a straight way at some lab time."""
    share = (time - start[0]) / (end[0] - start[0])
    return (time, *(a + (b - a) * share for a, b in zip(start[1:], end[1:], strict=True)))


def _flights(
    own: dict[str, list[AgentRecord]], lives: dict[str, Life], end: float, field: LambdaField | None
) -> list[Flight]:
    found: list[Flight] = []
    absorbed: dict[tuple[str, int], None] = {}
    everything = [record for name in lives for record in own[name]]
    for record in everything:
        if record.kind == "absorbed" and record.emitted is not None:
            absorbed[record.channel, record.order] = None
            found.append(Flight(record.peer, record.agent, record.what, record.emitted, record.at, "absorbed"))
    for record in everything:
        if record.kind == "sent" and (record.channel, record.order) not in absorbed:
            target = lives.get(record.peer)
            if target is not None:
                goal = _goal(record.at, target.corners[-1], field)
                fate: Fate = "vanished" if target.end == "died" else "under way"
                found.append(Flight(record.agent, record.peer, record.what, record.at, goal, fate))
    shown = [_stopped(flight, end) for flight in found if flight.emitted[0] <= end]
    return sorted(shown, key=lambda flight: (flight.emitted[0], flight.end[0], flight.source, flight.target))


def _stopped(flight: Flight, end: float) -> Flight:
    """Leave out what a lambda does after the end of the picture."""
    if flight.end[0] <= end:
        return flight
    return flight._replace(end=at_time(flight.emitted, flight.end, end), fate="under way")


def _goal(emitted: Coordinates, last: Coordinates, field: LambdaField | None) -> Coordinates:
    """Return where a lambda that wasn't absorbed would have found its target, had that stayed where it was last."""
    r = shift_of(field, len(emitted))
    away = [there - here - shift for there, here, shift in zip(last, emitted, r, strict=True)][1:]
    longest = max((abs(each) for each in away), default=0.0) or 1.0
    squares = 0.0
    for each in away:
        squares += (each / longest) * (each / longest)
    c = 0.0 if field is None else field.c / longest / longest
    return (emitted[0] + r[0] + longest * math.sqrt(squares + c), *last[1:])


def shift_of(field: LambdaField | None, n: int) -> Coordinates:
    """Return a field's R."""
    given: Any = None if field is None else field.R
    return (0.0,) * n if given is None else tuple(given.coordinates())


# Chooses how agents are drawn: the same way if they are shown as the same.
#
# An agent is shown as what it says itself, `shown_as`, or else by its class. What appears first in the run, by lab time
# and then by the agent's name, gets the first color, whatever comes later; so a longer run doesn't change the colors of
# a shorter one. When there are no more colors, dashes and shapes tell looks apart; and when there are no more of these,
# the rest is drawn in gray. If all agents are of one class and none says more, each has a color of its own.

_NAMELESS = "agent"  # Recordings may be older than classes in them.
_OTHERS = Look(SOFT, None)


class Looks:
    """How the agents of a story are drawn; `kinds` are what the legend explains: none if each has a color of its own.

    `change` says whether the look of an agent does.
    """

    def __init__(self, story: SpacetimePicture) -> None:
        texts = _in_order(story.lives)
        says_more = any(text != life.kind for life in story.lives for _, text in life.looks)
        self.change = any(len(life.looks) > 1 for life in story.lives)
        self.kinds: list[tuple[str, Look]] = []
        if len(texts) <= 1 and not says_more:
            self._own = {life.name: Look(PALETTE[place % len(PALETTE)], None) for place, life in enumerate(story.lives)}
            return
        drawn = texts if len(texts) <= KINDS_MAX else texts[: KINDS_MAX - 1]
        self._shared = looks_of(drawn)
        self.kinds = [(text or _NAMELESS, look) for text, look in self._shared.items()]
        if len(drawn) < len(texts):
            self.kinds.append((f"{len(texts) - len(drawn):,} others", _OTHERS))

    def along(self, life: Life) -> list[tuple[Coordinates, Look]]:
        """Return how an agent is drawn, and from where on."""
        if not self.kinds:
            return [(life.looks[0][0], self._own[life.name])]
        return [(at, self._shared.get(text, _OTHERS)) for at, text in life.looks]

    def at(self, life: Life, time: float) -> Look:
        """Return how an agent is drawn at some lab time; if it changes then, how it is drawn afterwards."""
        if not self.kinds:
            return self._own[life.name]
        place = bisect_right(life.looks, time, key=lambda look: look[0][0])
        return self._shared.get(life.looks[max(0, place - 1)][1], _OTHERS)


def _in_order(lives: Sequence[Life]) -> list[str]:
    """Return what agents are shown as, in the order in which it appears."""
    seen = sorted(
        (at[0], natural(life.name), place, text) for life in lives for place, (at, text) in enumerate(life.looks)
    )
    return list(dict.fromkeys(text for *_, text in seen))
