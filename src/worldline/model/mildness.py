"""When some faults are milder than others, in any room: nothing is ever amiss that wasn't."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

Change = tuple[int, Hashable, bool]
"""From a time on, something is amiss, or is no longer."""


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
