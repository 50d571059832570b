"""Which worker gets which agent, at the start and later. It changes how fast a run is, never what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import dist, inf
from typing import Any, NamedTuple

from worldline.kernel.roster import grouped
from worldline.model.blame import described
from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.lanes import Body

BY_POSITIONS = "positions"
BY_CHANNELS = "channels"


class Resident(NamedTuple):
    """An agent, where it is, how many events it had lately, and who may send to it."""

    name: str
    at: tuple[float, ...]
    load: int
    sources: tuple[str, ...]


def resident_of(body: Body, n: int, load: int) -> Resident:
    sources = tuple(dict.fromkeys(lane.source.name for lane in body.lanes if lane.source is not body))
    return Resident(body.name, body.position(n), load, sources)


Rule = Callable[[Sequence[Resident], int], Mapping[str, int]]


@dataclass(frozen=True)
class Placing:
    """Says how agents are placed on workers, and whether they move later.

    `by` is "positions" (a k-d split: agents that are close in space stay together), "channels" (agents that talk over
    short distances do), a dict of names to workers, or a function of residents and the number of workers that returns
    one. `moves_every_s`: how often, in real time, it is looked at whether others would be better; None for never.
    """

    by: str | Mapping[str, int] | Rule = BY_POSITIONS
    moves_every_s: float | None = 0.5

    def place(self, residents: Sequence[Resident], count: int) -> dict[str, int]:
        """Return the worker of each resident."""
        if isinstance(self.by, str):
            return dict(_RULES[self.by](residents, count))
        placed = _ruled(self.by, residents, count) if callable(self.by) else dict(self.by)
        for resident in residents:
            worker = placed.get(resident.name)
            if type(worker) is not int or not 0 <= worker < count:
                raise ConfigurationError(
                    f"{resident.name} is placed on worker {shown(worker)}",
                    advice=f"there are {count}, from 0 to {count - 1}",
                )
        return {resident.name: placed[resident.name] for resident in residents}


def _ruled(rule: Rule, residents: Sequence[Resident], count: int) -> dict[str, int]:
    try:
        return dict(rule(residents, count))
    except Exception as error:  # It is the user's code, and can raise anything.
        raise ConfigurationError(
            f"the placement has failed: {described(error)}", advice="it returns a dict of names to workers"
        ) from error


def as_placing(given: Any, dimensions: int) -> Placing:
    """Take a placing, or what it places by. In one dimension there are no positions to go by."""
    if given is None:
        return Placing(BY_POSITIONS if dimensions > 1 else BY_CHANNELS)
    placing = given if isinstance(given, Placing) else Placing(given, None if isinstance(given, Mapping) else 0.5)
    every = placing.moves_every_s
    if every is not None and (isinstance(every, bool) or not isinstance(every, int | float) or not every >= 0):
        raise ConfigurationError(f"agents can't be moved every {shown(every)} s", advice="use seconds, or None")
    if isinstance(placing.by, str):
        if placing.by not in _RULES:
            raise ConfigurationError(
                f"{shown(placing.by)} isn't a placement",
                advice=f"use {', '.join(map(repr, _RULES))}, a dict of names to workers, or a function that makes one",
            )
        if placing.by == BY_POSITIONS and dimensions == 1:
            raise ConfigurationError("in one dimension all agents are at the same place", advice="place by channels")
    elif not callable(placing.by) and not isinstance(placing.by, Mapping):
        raise ConfigurationError(f"{shown(placing.by)} isn't a placement", advice="use 'positions' or 'channels'")
    return placing


def _by_positions(residents: Sequence[Resident], count: int) -> dict[str, int]:
    """Split space by planes, each across the axis along which agents are spread most, so that loads are equal."""
    placed: dict[str, int] = {}

    def split(group: list[Resident], first: int, number: int) -> None:
        if number == 1:
            placed.update((resident.name, first) for resident in group)
            return
        axis = max(range(1, len(group[0].at)), key=lambda axis: (_extent(group, axis), -axis)) if group else 0
        group.sort(key=lambda resident: (resident.at[axis], resident.name))
        half = number // 2
        cut = _cut(group, half / number)
        split(group[:cut], first, half)
        split(group[cut:], first + half, number - half)

    split(list(residents), 0, count)
    return placed


def _extent(group: Sequence[Resident], axis: int) -> float:
    places = [resident.at[axis] for resident in group]
    return max(places) - min(places)


def _cut(group: Sequence[Resident], share: float) -> int:
    """Return how many of a group have this share of its load; each counts a little, events or not."""
    whole = sum(resident.load + 1 for resident in group)
    so_far = 0
    for number, resident in enumerate(group):
        if so_far + (resident.load + 1) / 2 > share * whole:
            return number
        so_far += resident.load + 1
    return len(group)


def _by_channels(residents: Sequence[Resident], count: int) -> dict[str, int]:
    where = {resident.name: resident.at for resident in residents}
    links = [
        (dist(where[source][1:], resident.at[1:]), source, resident.name)
        for resident in residents
        for source in resident.sources
        if source in where
    ]
    names = sorted(where)
    return dict(zip(names, grouped(names, links, count), strict=True))


_RULES: dict[str, Rule] = {BY_POSITIONS: _by_positions, BY_CHANNELS: _by_channels}


def imbalance(residents: Sequence[Resident], placed: Mapping[str, int], count: int) -> float:
    """Return how much more the busiest worker has to do than the average one: 1 if all have the same."""
    loads = [0] * count
    for resident in residents:
        loads[placed[resident.name]] += resident.load + 1
    return max(loads) * count / max(1, sum(loads))


def cut_of(residents: Sequence[Resident], placed: Mapping[str, int]) -> int:
    """Return how many channels lead from one worker to another, weighted by how busy their targets are."""
    return sum(
        resident.load + 1
        for resident in residents
        for source in resident.sources
        if placed.get(source, placed[resident.name]) != placed[resident.name]
    )


# Decides whether agents are to move to other workers, and which. Pure: the clock is read by others.
#
# It takes a while to stand still and to look at all. So that is wished for only now and then, and granted only if
# what is known anyway speaks for it.

_SHARE = 0.02
_WORTHWHILE = 1.15  # A move must promise at least so much less work for the busiest, or as much fewer cut channels.


class Balance:
    """When agents are looked at, as one worker sees it: after a while it wishes for that; the leader grants it or not.

    `events` is how many there were at each worker, `events_of` at each agent here when that was last asked for, and
    `letters` how many this one has sent.
    """

    def __init__(self, placing: Placing, count: int, now_s: float) -> None:
        self.placing = placing
        self.events = [0] * count
        self.events_of: dict[str, int] = {}
        self.letters = 0
        self._every_s = placing.moves_every_s if count > 1 else None
        self._wished_s = self._granted_s = now_s
        self._events_at_wish = -1
        self._events_before = [0] * count
        self._letters_before = 0
        self._share_min = inf

    def is_due(self, now_s: float, events: int) -> bool:
        """Whether to wish for it, after so many events; if so, not again for a while."""
        if self._every_s is None or now_s - self._wished_s < self._every_s:
            return False
        if events == self._events_at_wish:  # Moves alone make nothing happen, and there must be an end of them.
            return False
        self._wished_s, self._events_at_wish = now_s, events
        return True

    def restart(self, now_s: float) -> None:
        """Begin to wait anew: all were looked at."""
        self._wished_s = now_s

    def is_worth_it(self, now_s: float, leader: int) -> bool:
        """Whether to stand still: some have more to do than others, or more is sent between workers than at first.

        If it isn't known what agents are placed by, it always is.
        """
        if not isinstance(self.placing.by, str):
            return True
        if now_s - self._granted_s < (self._every_s or 0.0) / 2:  # Several may wish for it at a time.
            return False
        self._granted_s = now_s
        lately = [now - before for now, before in zip(self.events, self._events_before, strict=True)]
        share = (self.letters - self._letters_before) / (1 + lately[leader])
        self._events_before, self._letters_before = list(self.events), self.letters
        self._share_min = min(share, self._share_min)
        is_uneven = max(lately) * len(lately) > _WORTHWHILE * sum(lately)
        return is_uneven or share > _WORTHWHILE * self._share_min + _SHARE


def moves(placing: Placing, told: Sequence[Sequence[Resident]]) -> dict[str, int]:
    """Return who goes to which worker, of the residents that each has; none, if that isn't worth it."""
    count = len(told)
    now = {resident.name: worker for worker, residents in enumerate(told) for resident in residents}
    residents_of_all = sorted(resident for residents in told for resident in residents)
    if not residents_of_all:
        return {}
    wanted = placing.place(residents_of_all, count)
    if isinstance(placing.by, str):
        gain = imbalance(residents_of_all, now, count) / imbalance(residents_of_all, wanted, count)
        fewer = (1 + cut_of(residents_of_all, now)) / (1 + cut_of(residents_of_all, wanted))
        if min(gain, fewer) < 1 / _WORTHWHILE or max(gain, fewer) < _WORTHWHILE:
            return {}
    return {name: worker for name, worker in wanted.items() if worker != now[name]}
