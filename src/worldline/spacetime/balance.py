"""Decides whether agents are to move to other workers, and which. Pure: the clock is read by others.

It takes a while to stand still and to look at everybody. So that is wished for only now and then, and granted only if
what is known anyway speaks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from worldline.spacetime.placement import Placing, Resident, cut_of, imbalance

_SHARE = 0.02
_WORTHWHILE = 1.15  # A move must promise at least so much less work for the busiest, or as much fewer cut channels.


class BalanceTimer:
    """When a worker wishes that everybody be looked at."""

    def __init__(self, every_s: float | None, now_s: float) -> None:
        self._every_s = every_s
        self._since_s = now_s
        self._events = -1

    def is_due(self, now_s: float, events: int) -> bool:
        """Whether to wish for it, after so many events; if so, not again for a while."""
        if self._every_s is None or now_s - self._since_s < self._every_s:
            return False
        if events == self._events:  # Moves alone make nothing happen, and there must be an end of them.
            return False
        self._since_s, self._events = now_s, events
        return True

    def granted(self, now_s: float) -> None:
        """Begin to wait anew: everybody was looked at."""
        self._since_s = now_s


class Grants:
    """When the leader grants that: some have more to do than others, or more is sent between workers than at first.

    If it isn't known what agents are placed by, it always is.
    """

    def __init__(self, placing: Placing, count: int, now_s: float) -> None:
        self._is_known = isinstance(placing.by, str)
        self._every_s = placing.moves_every_s or 0.0
        self._since_s = now_s
        self._events = [0] * count
        self._letters = 0
        self._share_min = inf

    def is_worth_it(self, now_s: float, events: Sequence[int], letters: int, own: int) -> bool:
        """Whether to stand still, after so many events at each worker, and letters that this one, `own`, has sent."""
        if not self._is_known:
            return True
        if now_s - self._since_s < self._every_s / 2:  # Several may wish for it at a time.
            return False
        self._since_s = now_s
        lately = [now - before for now, before in zip(events, self._events, strict=True)]
        share = (letters - self._letters) / (1 + lately[own])
        self._events, self._letters = list(events), letters
        self._share_min = min(share, self._share_min)
        is_uneven = max(lately) * len(lately) > _WORTHWHILE * sum(lately)
        return is_uneven or share > _WORTHWHILE * self._share_min + _SHARE


def moves(placing: Placing, told: Sequence[Sequence[Resident]]) -> dict[str, int]:
    """Return who goes to which worker, of the residents that each has; nobody, if that isn't worth it."""
    count = len(told)
    now = {resident.name: worker for worker, residents in enumerate(told) for resident in residents}
    everybody = sorted(resident for residents in told for resident in residents)
    if not everybody:
        return {}
    wanted = placing.place(everybody, count)
    if isinstance(placing.by, str):
        gain = imbalance(everybody, now, count) / imbalance(everybody, wanted, count)
        fewer = (1 + cut_of(everybody, now)) / (1 + cut_of(everybody, wanted))
        if min(gain, fewer) < 1 / _WORTHWHILE or max(gain, fewer) < _WORTHWHILE:
            return {}
    return {name: worker for name, worker in wanted.items() if worker != now[name]}
