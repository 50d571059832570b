"""What faults of all rooms have in common: how they are asked for and drawn, and when some are milder than others."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from worldline.model.errors import ConfigurationError, shown
from worldline.model.randomness import Stream

Change = tuple[int, Hashable, bool]
"""From a time on, something is amiss, or is no longer."""

_COUNT_MAX = 10_000
_SHORTEST = 0.01  # The shortest fault, as a share of the time there is.
_CALM_FROM = 0.7  # By then all is well again, so that what has to come in the end can come.


def is_never_worse(
    mild: Sequence[Change], harsh: Sequence[Change], *, at_first: Mapping[Hashable, bool] | None = None
) -> bool:
    """Whether nothing is ever amiss with the first that isn't at that time with the others. Both are in order."""
    times = sorted({change[0] for change in (*mild, *harsh)})
    pairs = zip(_amiss(mild, times, at_first or {}), _amiss(harsh, times, at_first or {}), strict=True)
    return all(here <= there for here, there in pairs)


def _amiss(
    changes: Iterable[Change], times: Sequence[int], at_first: Mapping[Hashable, bool]
) -> Iterator[frozenset[Hashable]]:
    """Yield for each time what is amiss from then on."""
    state = dict(at_first)
    waiting = deque(changes)
    for at in times:
        while waiting and waiting[0][0] <= at:
            _, what, is_amiss = waiting.popleft()
            state[what] = is_amiss
        yield frozenset(what for what, is_amiss in state.items() if is_amiss)


def parse_counts(text: str, counts: Mapping[str, int], shares: Mapping[str, float], advice: str) -> dict[str, float]:
    """Read ``"crash=3,partition,loss=0.1"``: how many of each kind, or which share of the messages.

    `counts` and `shares` are the kinds that there are, each with what is meant if nobody says how many.
    """
    kinds: dict[str, float] = {}
    usual = {**counts, **shares}
    for word in filter(None, (part.strip() for part in text.split(","))):
        kind, equals, value = word.partition("=")
        try:
            number = float(value) if equals else usual.get(kind, 0)
        except ValueError:
            number = -1.0
        is_possible = 0 <= number <= (1 if kind in shares else _COUNT_MAX)  # Nothing is compared with NaN.
        if kind not in usual or not is_possible or not (kind in shares or number == int(number)):
            raise ConfigurationError(f"{shown(word)} can't be drawn", advice=advice)
        kinds[kind] = number
    return kinds


def calm_from(until: int) -> int:
    """Return the time by which all drawn faults of a run are over."""
    return max(1, int(until * _CALM_FROM))


def draw_span(calm: int, draws: Stream) -> tuple[int, int]:
    """Draw when something goes wrong, and until when: as often for hundredths as for tenths of the time there is.

    Bugs hide in faults of every length: some take one that covers an election, some one that is over in no time.
    """
    length = draw_length(calm, draws)
    unit = _unit(calm)
    start = draws.randrange(max(1, (calm - length) // unit)) * unit
    return start, start + length


def draw_length(calm: int, draws: Stream) -> int:
    """Draw how long something goes wrong."""
    unit = _unit(calm)
    return max(1, int(calm // unit * _SHORTEST ** draws.random())) * unit


def _unit(calm: int) -> int:
    """Return what times are drawn in: whole milliseconds where there is room for that."""
    return 10**6 if calm > 10**9 else 1
