"""Statistics of experiments: intervals over replications, paired differences, batch means, warm-up, a stopping rule.

Student's quantiles come from scipy, which is an extra: without it means can be had, intervals can't.

The sequential rule of `--until-precise` is: look at n = 10, 15, 22, 33, ... replications (each time half as many more);
stop at the first look at which the half-width of the 95 % interval is at most the given share of the mean's absolute
value, and was so at the look before, too. To stop at the first interval that happens to be narrow gives intervals that
cover too rarely. This rule loses a little of the 95 %, too: over 1,000 experiments of six kinds each, intervals covered
in 93.7 to 94.6 % of cases; to stop at the first narrow look, in 92.7 to 94.9 % with two thirds of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, inf, sqrt
from typing import Any, NamedTuple

from worldline.extras import installing
from worldline.model.errors import ConfigurationError, UsageError

LEVEL = 0.95
"""How often intervals are meant to cover what they estimate."""

_FIRST_LOOK = 10
_BATCH = 5  # MSER-5 looks at means of five.


def load_scipy() -> Any:
    """Return scipy's distributions."""
    try:
        from scipy import stats
    except ImportError as error:
        raise UsageError("intervals need scipy", advice=installing("experiments")) from error
    return stats


class Interval(NamedTuple):
    """An estimate of a mean from so many values, and half the width of its confidence interval, inf if unknown."""

    mean: float
    half_width: float
    number: int

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def relative(self) -> float:
        """Half the width as a share of the mean."""
        return self.half_width / abs(self.mean) if self.mean else inf if self.half_width else 0.0

    def covers(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g}" if self.half_width < inf else f"{self.mean:.4g}"


def mean_of(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def deviation_of(values: Sequence[float]) -> float:
    """Return the standard deviation that a sample speaks for."""
    mean = mean_of(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Return Student's interval for the mean of independent values, one of each replication."""
    if not 0 < level < 1:
        raise ConfigurationError(f"{level} isn't a level of confidence", advice="0.95 is one")
    count = len(values)
    if not count:
        raise UsageError("there are no values to estimate a mean from")
    if count == 1:
        return Interval(mean_of(values), inf, 1)
    width = _quantile(count - 1, level) * deviation_of(values) / sqrt(count)
    return Interval(mean_of(values), width, count)


_quantiles: dict[tuple[int, float], float] = {}


def _quantile(freedom: int, level: float) -> float:
    """Return Student's quantile. To have scipy find one takes longer than all the rest."""
    key = freedom, level
    if key not in _quantiles:
        _quantiles[key] = float(load_scipy().t.ppf((1 + level) / 2, freedom))
    return _quantiles[key]


def paired_interval(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the interval for how much larger the second is, from pairs that have their draws in common."""
    return interval([after - before for before, after in zip(first, second, strict=True)], level)


def welch_interval(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Interval:
    """Return the interval for how much larger the second is, from independent samples of any two variances."""
    difference = mean_of(second) - mean_of(first)
    if min(len(first), len(second)) < 2:
        return Interval(difference, inf, min(len(first), len(second)))
    parts = [deviation_of(each) ** 2 / len(each) for each in (first, second)]
    variance = fsum(parts)
    if not variance:
        return Interval(difference, 0.0, min(len(first), len(second)))
    freedom = variance**2 / fsum(part**2 / (len(each) - 1) for part, each in zip(parts, (first, second), strict=True))
    width = float(load_scipy().t.ppf((1 + level) / 2, freedom)) * sqrt(variance)
    return Interval(difference, width, min(len(first), len(second)))


# -- One long run


def mser5(values: Sequence[float]) -> int:
    """Return how many values at the beginning are warm-up, by MSER-5.

    That is the cut which leaves the least standard error of the mean, over means of five values. A cut in the second
    half isn't believed: then the run is too short to say, and half of it is cut.
    """
    count = len(values) // _BATCH
    if count < 4:
        return 0
    means = [mean_of(values[_BATCH * place : _BATCH * (place + 1)]) for place in range(count)]
    best, cut = inf, 0
    total = squares = 0.0
    shift = mean_of(means)  # Squares of large numbers cancel badly.
    for place in range(count - 1, -1, -1):
        total += means[place] - shift
        squares += (means[place] - shift) ** 2
        left = count - place
        error = max(0.0, squares - total * total / left) / left**2
        if place <= count // 2 and error <= best:
            best, cut = error, place
    return cut * _BATCH


def batch_means(values: Sequence[float], batches: int = 20, level: float = LEVEL) -> Interval:
    """Return the interval for the mean of one long run, from means of so many parts of the same length.

    Values that don't fill the last part are left out at the beginning, where the warm-up would be.
    """
    if batches < 2 or len(values) < 2 * batches:
        raise UsageError(
            f"{len(values)} values aren't enough for {batches} batches", advice="run it longer, or take fewer batches"
        )
    size = len(values) // batches
    kept = values[len(values) - size * batches :]
    return interval([mean_of(kept[start : start + size]) for start in range(0, len(kept), size)], level)


# -- Until it is precise


def looks(count_max: int) -> list[int]:
    """Return after how many replications it is looked whether there are enough, the last time after `count_max`."""
    found, count = [], _FIRST_LOOK
    while count < count_max:
        found.append(count)
        count += count // 2
    return [*found, count_max]


Samples = Callable[[int], Sequence[Sequence[float]] | None]
"""The values of each measure in the first so many runs; None if these aren't all there."""


def runs_wanted(samples: Samples, share: float, count_max: int) -> int:
    """Return how many runs are enough; or, as long as they aren't there, how many it takes to look again."""
    was_precise = False
    for count in looks(count_max):
        found = samples(count)
        if found is None:
            return count
        is_precise = all(len(values) > 1 and interval(values).relative <= share for values in found)
        if is_precise and was_precise:
            return count
        was_precise = is_precise
    return count_max
