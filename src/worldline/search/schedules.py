"""Schedules inside programs: which of the callbacks that are ready at once an event loop runs next.

By themselves, programs run them in asyncio's own order, first come, first served. Where schedules are searched, each
choice between several is a draw with a name, ``turn/PARTICIPANT/NUMBER``: how many of those that were ready before it a
callback is run ahead of. So a failure shrinks towards the ordinary order, all of whose draws are 0.

There are three ways to choose. At **random**, each is as likely as the others. By **PCT** (Burckhardt et al., 2010),
each task has a random priority when it first appears, and the one with the highest runs; at a few random moments, one
fewer than the depth, the one that would run gets the lowest. A failure that takes `depth` orderings of events among n
tasks and k choices is found with a probability of at least 1/(n k^(depth-1)) on each seed. With **delays**, all
schedules are tried in which callbacks are passed over at most so many times altogether (Emmi et al., 2011): if none
fails, none of these can.

A callback that was passed over very often is run: a program that polls would keep the others waiting for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from worldline.model.draws.distributions import Distribution, DrawnValue, Turn
from worldline.model.draws.names import TURN, names_in
from worldline.model.draws.table import DrawFunction
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.randomness import Stream, draw_bits, key_of
from worldline.model.text import counted

SCHEDULES_MAX = 20_000
"""How many schedules of a seed are tried with delays; if there are more, that is refused."""

_PATIENCE = 200  # So many times a callback is passed over.
_FORM = re.compile(r"(random)|(pct|delays):([1-9][0-9]?)")


class Schedules(Struct, frozen=True, kw_only=True):
    """How schedules are chosen: at random, by PCT of a `depth`, or all with so many delays (also `depth`).

    `choices` says of each participant between how many tasks it chooses, and how often at the most; PCT needs it.
    """

    way: Literal["random", "pct", "delays"]
    depth: int = 1
    choices: tuple[tuple[str, int, int], ...] = ()

    def __str__(self) -> str:
        return self.way if self.way == "random" else f"{self.way}:{self.depth}"

    def words(self) -> str:
        """Say what a search by it means; an empty text if that goes without saying."""
        if self.way == "delays":
            return f"all schedules with at most {counted(self.depth, 'delay')}"
        tasks, choices = sum(each[1] for each in self.choices), sum(each[2] for each in self.choices)
        if self.way == "random" or not choices:
            return ""
        bound = tasks * choices ** (self.depth - 1)
        return (
            f"PCT: what takes {counted(self.depth, 'ordering')} among {counted(tasks, 'task')} and at most"
            f" {counted(choices, 'choice')} is found by each seed with a chance of at least 1 in {bound:,}"
        )


def as_schedules(text: str) -> Schedules:
    """Read ``random``, ``pct:3`` or ``delays:2``."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"{shown(text)} isn't a way to choose schedules", advice="write random, pct:3 or delays:2"
        )
    return Schedules(way="random") if found[1] else Schedules(way=found[2], depth=int(found[3]))  # type: ignore[arg-type]


Choose = Callable[[str, int, Turn], int]
"""Chooses which callback of a participant runs next, by the number of its choices so far."""


class TurnDraws:
    """A function of draws that chooses turns, and leaves the other draws to a function that it is given.

    `seen` are the choices there were, in their order, with the number of callbacks that were ready.
    """

    def __init__(self, choose: Choose, given: DrawFunction | None) -> None:
        self._choose = choose
        self._given = given
        self.seen: list[tuple[str, int]] = []
        self.tasks: dict[str, dict[str, None]] = {}

    @property
    def felt(self) -> Any:
        """What of a kind of day has made a difference."""
        return getattr(self._given, "felt", ())

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> object:
        if not isinstance(distribution, Turn):
            return value if self._given is None else self._given(name, distribution, value)
        _, participant, number = names_in(name) or ("", "", "0")
        self.seen.append((name, len(distribution.ready)))
        self.tasks.setdefault(participant, {}).update(dict.fromkeys(distribution.ready))
        return min(self._choose(participant, int(number), distribution), distribution.maximum)

    def choices(self) -> tuple[tuple[str, int, int], ...]:
        """Return how many tasks each participant has had, and a bound for its choices: other orders may have more."""
        often: dict[str, int] = {}
        for name, _ in self.seen:
            _, participant, _ = names_in(name) or ("", "", "")
            often[participant] = often.get(participant, 0) + 1
        return tuple(
            (who, len(self.tasks[who]), 2 * number + len(self.tasks[who])) for who, number in sorted(often.items())
        )


def ordinary(given: DrawFunction | None) -> TurnDraws:
    """Return a function that lets callbacks run in their own order, and sees what there is to choose."""
    return TurnDraws(lambda *_: 0, given)


def drawn_turns(schedules: Schedules, seed: int, given: DrawFunction | None) -> TurnDraws:
    """Return a function that chooses turns by a seed."""
    if schedules.way == "pct":
        return TurnDraws(_fairly(_by_priorities(schedules, seed)), given)
    return TurnDraws(_fairly(partial(_random_turn, seed)), given)


def _random_turn(seed: int, participant: str, number: int, turn: Turn) -> int:
    return draw_bits(key_of(seed, TURN, participant), number) * len(turn.ready) >> 64


def _fairly(choose: Choose) -> Choose:
    """Let a callback run that was passed over very often."""
    passed: dict[tuple[str, str], int] = {}

    def choose_fairly(participant: str, number: int, turn: Turn) -> int:
        chosen = choose(participant, number, turn)
        first = participant, turn.ready[0]
        if chosen and passed.get(first, 0) >= _PATIENCE:
            chosen = 0
        if chosen:
            passed[first] = passed.get(first, 0) + 1
        else:
            passed.pop(first, None)
        return chosen

    return choose_fairly


def _by_priorities(schedules: Schedules, seed: int) -> Choose:
    """Return what chooses by priorities, which change at a few random moments."""
    priorities: dict[tuple[str, str], float] = {}
    changes: set[tuple[str, int]] = set()
    lowest = 0.0
    moments = Stream(seed, TURN, "changes")
    total = sum(often for *_, often in schedules.choices)
    for _ in range(schedules.depth - 1 if total else 0):
        place = moments.randrange(total)
        for participant, _, often in schedules.choices:
            if place < often:
                changes.add((participant, place))
                break
            place -= often

    def priority(participant: str, task: str) -> float:
        found = priorities.get((participant, task))
        if found is None:
            found = priorities[participant, task] = 1 + Stream(seed, TURN, participant, task).random()
        return found

    def highest(participant: str, turn: Turn) -> int:
        return max(range(len(turn.ready)), key=lambda place: priority(participant, turn.ready[place]))

    def choose(participant: str, number: int, turn: Turn) -> int:
        nonlocal lowest
        chosen = highest(participant, turn)
        if (participant, number) in changes:
            lowest -= 1
            priorities[participant, turn.ready[chosen]] = lowest
            chosen = highest(participant, turn)
        return chosen

    return choose


def delayed_turns(depth: int, given: Callable[[], DrawFunction | None]) -> Iterator[TurnDraws]:
    """Yield functions that choose turns, so that all schedules with at most so many delays come about, each once.

    Each is to be used for a run before the next is asked for: what there was to choose says what else there is to try.
    """
    left: list[tuple[dict[str, int], int, int]] = [({}, 0, depth)]
    tried = 0
    while left:
        turns, start, budget = left.pop()
        tried += 1
        if tried > SCHEDULES_MAX:
            raise UsageError(
                f"there are more than {SCHEDULES_MAX:,} schedules with at most {counted(depth, 'delay')}",
                advice="allow fewer delays, make the test smaller, or take pct:3",
            )
        made = _written_turns(turns, given())
        yield made
        following = [
            ({**turns, name: passed}, place + 1, budget - passed)
            for place, (name, ready) in enumerate(made.seen[start:], start)
            for passed in range(1, min(budget, ready - 1) + 1)
        ]
        left += reversed(following)  # The earliest comes first.


def _written_turns(turns: Mapping[str, int], given: DrawFunction | None) -> TurnDraws:
    return TurnDraws(lambda who, number, _: turns.get(f"{TURN}/{who}/{number}", 0), given)
