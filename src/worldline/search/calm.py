"""Calm circumstances: what isn't written down takes the usual time, nothing gets lost, and clocks are off the least."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.model.distributions import Chance, ClockOffset, ClockRate, Distribution, DrawnValue, checked_value
from worldline.model.draw_rows import DrawFunction
from worldline.model.latency import Latency
from worldline.search.shrinking import in_units

_MIDDLE = 2**63  # Of the bits that a draw may have.


def calm(_name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
    """Return what a draw is when nothing out of the ordinary happens. What programs draw themselves stays as it is."""
    if isinstance(distribution, Latency):
        return usual(distribution)
    if isinstance(distribution, Chance) and distribution.probability < 1:
        return False
    if isinstance(distribution, ClockOffset | ClockRate):
        return min(max(0, distribution.minimum), distribution.maximum)
    return value


def usual(latency: Latency) -> int:
    """Return a round time that is about the middle of what messages take."""
    middle = latency.draw(_MIDDLE)
    return rounded(latency, middle, 10 ** max(0, len(str(middle)) - 2))


def rounded(latency: Latency, time: int, unit: int) -> int:
    """Round to whole units, within what the latency may be."""
    return min(max(in_units(time, unit), latency.minimum), latency.maximum)


class WrittenDraws:
    """A function of draws: some are written down, and the others are calm.

    `calm_clocks` are those of clocks that were asked for and are calm: not all can be 0.
    """

    def __init__(self, written: Mapping[str, DrawnValue]) -> None:
        self.written = dict(written)
        self.calm_clocks: dict[str, int] = {}
        self._asked: set[str] = set()

    @property
    def unasked(self) -> list[str]:
        """The names of those that nobody has drawn so far."""
        return [name for name in self.written if name not in self._asked]

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
        if name not in self.written:
            value = calm(name, distribution, value)
            if isinstance(distribution, ClockOffset | ClockRate):
                self.calm_clocks[name] = int(value)
            return value
        self._asked.add(name)
        return self.written[name]


class DrawsSeen:
    """A function of draws that changes none and remembers those that aren't as in calm circumstances."""

    def __init__(self, given: DrawFunction | None) -> None:
        self._given = given
        self.restless: dict[str, DrawnValue] = {}
        self.distributions: dict[str, Distribution] = {}

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
        if self._given is not None:
            value = checked_value(distribution, self._given(name, distribution, value))
        if value != calm(name, distribution, value):
            self.restless[name] = value
            self.distributions[name] = distribution
        return value
