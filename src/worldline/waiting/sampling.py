"""Adds up who waited for whom, from situations that are looked at one after the other.

Whoever waits at a look is taken to have waited since the look before it, for the links that it waits for now. That is a
sample, as in `top`: exact enough after some hundred looks, and it costs the run nothing but those.
"""

from __future__ import annotations

from typing import NamedTuple

from worldline.lock.chains import chains
from worldline.lock.situation import Situation
from worldline.lock.why import Hop


class LinkWaiting(NamedTuple):
    """How long somebody waited, in wall-clock time, for what might come over a link, and how often."""

    hop: Hop
    seconds: float
    times: int


class WaitingSample:
    """What has been seen so far: the waiting per link, and per participant at the root of it."""

    def __init__(self) -> None:
        self._links: dict[Hop, list[float]] = {}
        self._roots: dict[str, float] = {}
        self.seconds = 0.0  # How long everybody has waited, together,
        self.elapsed = 0.0  # and for how long it has been looked.

    def add(self, situation: Situation, elapsed: float) -> None:
        """Take in a look, so many seconds after the one before it."""
        self.elapsed += elapsed
        for chain in chains(situation.whys):
            hops = {hop: None for why in chain.whys for hop in why.path}
            if not hops:
                continue
            self.seconds += elapsed
            for hop in hops:
                entry = self._links.setdefault(hop, [0.0, 0])
                entry[0] += elapsed
                entry[1] += 1
            if chain.root is not None:
                self._roots[chain.root] = self._roots.get(chain.root, 0.0) + elapsed

    def links(self) -> list[LinkWaiting]:
        """Return the links that were waited for, the one with most of it first."""
        found = [LinkWaiting(hop, seconds, int(times)) for hop, (seconds, times) in self._links.items()]
        return sorted(found, key=lambda each: (-each.seconds, each.hop.sender, each.hop.receiver))

    def roots(self) -> list[tuple[str, float]]:
        """Return who was at the root of it, and for how many seconds in all, the most first."""
        return sorted(self._roots.items(), key=lambda item: (-item[1], item[0]))
