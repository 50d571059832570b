"""The kind of day on which a seed is tried: how messages fare in general, and which faults there are at all.

A thousand seeds of one network are a thousand runs of one kind: each message takes a time of its own, and the average
is always the same. Some failures need another kind of day: one message is so slow that the others go to and fro many
times in between; a link is slow throughout; several messages in a row are late; there is loss, but no crash. So a
search draws the kind of day from the seed as well (this is called swarm testing).

On any day, a message is ordinary or slow. Ordinary ones take the times that the network gives them, or all the same, or
times near the shortest. Slow ones are one in ten, all of some links, or a few in a row; in such a burst, every other
message gets lost if the link loses any. What the network states holds on every day: a slow message takes no longer than
the longest time of its latency, and an ordinary one no less than the shortest. Only where the network doesn't say how
long messages take, slow ones may take ten times as long as the usual ones do at the most.

A day depends on the seed alone, and each of its draws on the seed, the way and the number of the message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, get_args

from msgspec import Struct

from worldline.model.draws.distributions import Chance, Distribution, DrawnValue
from worldline.model.draws.names import LATENCY, LATENCY_OF_COPY, LOSS, LOSS_AT_SENDER, names_in
from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.latency import Latency
from worldline.model.randomness import Stream, draw_bits, key_of, unit

Ordinary = Literal["as-stated", "constant", "quick"]
Slow = Literal["tail", "slow-links", "bursts"]
_ORDINARY: tuple[Ordinary, ...] = get_args(Ordinary)
_SLOW: tuple[Slow, ...] = get_args(Slow)
_NO = "no-"
_USUAL = "usual"
_WORDS = {
    "constant": "messages take the same time",
    "quick": "messages are quick",
    "tail": "one message in ten",
    "slow-links": "some links",
    "bursts": "several messages in a row",
}

_SLOW_MESSAGES, _SLOW_LINKS, _BURSTS = 1 / 10, 1 / 5, 1 / 8
_BURST = 4  # So many messages of a link in a row.
_LOST_IN_BURST = 1 / 2
_LONGER = 10  # How much longer slow messages may take where the network doesn't say how long they take.
_MIDDLE = 2**63


class Day(Struct, frozen=True, kw_only=True):
    """How ordinary messages fare, which ones are slow, and which of the faults that are asked for there aren't."""

    ordinary: Ordinary = "as-stated"
    slow: tuple[Slow, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def changes_messages(self) -> bool:
        """Whether messages fare differently than the network alone says."""
        return self.ordinary != "as-stated" or bool(self.slow)

    def __str__(self) -> str:
        """Write it as `as_day` reads it."""
        ordinary = () if self.ordinary == "as-stated" else (self.ordinary,)
        return ",".join((*ordinary, *self.slow, *(_NO + kind for kind in self.without))) or _USUAL

    def words(self) -> str:
        """Say what kind of day it is; an empty text if it is a usual one."""
        ordinary = [_WORDS[self.ordinary]] if self.ordinary in _WORDS else []
        slow = [f"slow: {', '.join(_WORDS[each] for each in self.slow)}"] if self.slow else []
        return "; ".join([*ordinary, *slow, *(f"no {kind}" for kind in self.without)])

    def faults_of(self, kinds: Mapping[str, float]) -> dict[str, float]:
        """Return the faults that there are on this day, of those that are asked for."""
        return {kind: number for kind, number in kinds.items() if kind not in self.without}

    def felt_by(self, draws: object, kinds: Collection[str]) -> Day:
        """Return what of it has made a difference to a run with these draws and these kinds of faults.

        Draws that aren't made by a day have felt nothing of it.
        """
        felt: Collection[str] = getattr(draws, "felt", ())
        return Day(
            ordinary=self.ordinary if self.ordinary in felt else "as-stated",
            slow=tuple(each for each in self.slow if each in felt),
            without=tuple(kind for kind in self.without if kind in kinds),
        )


USUAL_DAY = Day()


def as_day(text: str, kinds: Iterable[str]) -> Day:
    """Read ``"quick,tail,no-crash"``, or ``"usual"``, where there are these kinds of faults."""
    words = [] if text.strip() == _USUAL else [word.strip() for word in text.split(",")]
    known = (*_WORDS, *(_NO + kind for kind in kinds))
    for word in words:
        if word not in known:
            advice = nearest(word, known) or f"write usual, or some of {', '.join(known)}"
            raise ConfigurationError(f"{shown(word)} isn't a kind of day", advice=advice)
    ordinary = [each for each in _ORDINARY if each in words]
    if len(ordinary) > 1:
        raise ConfigurationError(f"{shown(text)} isn't a kind of day", advice=f"use {' or '.join(ordinary)}, not both")
    return Day(
        ordinary=ordinary[0] if ordinary else "as-stated",
        slow=tuple(each for each in _SLOW if each in words),
        without=tuple(dict.fromkeys(word.removeprefix(_NO) for word in words if word.startswith(_NO))),
    )


def draw_day(seed: int, kinds: Iterable[str]) -> Day:
    """Draw the day of a seed, for which these kinds of faults are asked. A day in four is a usual one.

    Of several kinds some may be left out; if only one is asked for, it is what the search is about.
    """
    draws = Stream(seed, "day")
    kinds = sorted(kinds)
    is_usual = draws.randrange(4) == 0
    ordinary = draws.choice(_ORDINARY)
    slow = tuple(each for each in _SLOW if draws.randrange(2))
    without = tuple(kind for kind in kinds if len(kinds) > 1 and Stream(seed, "day", kind).randrange(3) == 0)
    return USUAL_DAY if is_usual else Day(ordinary=ordinary, slow=slow, without=without)


class DayDraws:
    """What a day makes of the messages of a run. It is a function of draws, for federations."""

    def __init__(self, day: Day, seed: int) -> None:
        self._day = day
        self._seed = seed
        self._keys: dict[tuple[str, ...], int] = {}
        self.felt: set[Ordinary | Slow] = set()  # What has made a difference: without the rest, all draws are the same.

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
        purpose, *path = names_in(name) or ("",)
        if purpose in (LATENCY, LATENCY_OF_COPY) and isinstance(distribution, Latency):
            return self.latency((purpose, *path[:-1]), int(path[-1]), distribution, int(value))
        if purpose in (LOSS, LOSS_AT_SENDER) and isinstance(distribution, Chance):
            return self.is_lost((purpose, *path[:-1]), int(path[-1]), distribution, bool(value))
        return value

    def latency(
        self, path: tuple[str, ...], number: int, latency: Latency, stated: int, *, is_open: bool = False
    ) -> int:
        """Return how long a message takes; `is_open` if the network doesn't say how long messages take."""
        bits = self._bits(path, number)
        ordinary = stated
        if self._day.ordinary != "as-stated":
            ordinary = latency.draw(_MIDDLE if self._day.ordinary == "constant" else bits // 10)
        why = self._why_slow(path, number)
        if why is not None:
            if is_open:
                slow = latency.maximum + int(unit(bits) * (_LONGER - 1) * latency.maximum)
            else:
                slow = latency.draw(2**64 - 1 - int(unit(bits) ** 4 * _MIDDLE))  # Mostly near the longest.
            if slow != ordinary:
                self.felt.add(why)
                return slow
        if ordinary != stated:
            self.felt.add(self._day.ordinary)
        return ordinary

    def is_lost(self, path: tuple[str, ...], number: int, chance: Chance, stated: bool) -> bool:
        """Return whether a message gets lost on a link that loses some."""
        if 0 < chance.probability < _LOST_IN_BURST and self._is_in_burst(path, number):
            is_lost = unit(self._bits(path, number)) < _LOST_IN_BURST
            if is_lost != stated:
                self.felt.add("bursts")
            return is_lost
        return stated

    def _why_slow(self, path: tuple[str, ...], number: int) -> Slow | None:
        slow = self._day.slow
        if "slow-links" in slow and unit(self._bits(("link", *path[-2:]), 0)) < _SLOW_LINKS:
            return "slow-links"
        if "tail" in slow and unit(self._bits(("tail", *path), number)) < _SLOW_MESSAGES:
            return "tail"
        return "bursts" if self._is_in_burst(path, number) else None

    def _is_in_burst(self, path: tuple[str, ...], number: int) -> bool:
        return "bursts" in self._day.slow and unit(self._bits(("burst", *path[1:]), number // _BURST)) < _BURSTS

    def _bits(self, path: tuple[str, ...], number: int) -> int:
        key = self._keys.get(path)
        if key is None:
            key = self._keys[path] = key_of(self._seed, "day", *path)
        return draw_bits(key, number)
