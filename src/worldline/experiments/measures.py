"""What a run measures, as the numbers of one row of a table.

Members of a run measure numbers over time (`measure`, in every room; `record`, in the kernel), a field of a topic's
messages is such a series, too, and a file's `measures` function has single numbers. A series is called by its name,
over all members that have it, or by ``MEMBER/NAME``; a column is ``NAME.STATISTIC``:

=============  =====================================================================
count          how many values there are
mean           of the values
time_mean      each value counts as long as it held, the last one until its member's end
min, max
p50, p90, ...  the least value that at least so many percent of the values don't exceed
first, last    by time, then by the member's name
histogram      how many values there are between bounds that are the same for all runs, as JSON
=============  =====================================================================

Every run has `events`, `dropped` (messages) and `time` (its end, in nanoseconds) besides.

All of them are exact: sums are rounded once, at their end, so nothing depends on the order in which workers report.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil, frexp, fsum, ldexp
from types import MappingProxyType
from typing import Any

from msgspec import json

from worldline.experiments.statistics import mser5
from worldline.history.fields import getter, rest_of
from worldline.history.monitor import Monitor, Monitors
from worldline.history.observer import MEASURE, Observer
from worldline.history.outcome import Outcome
from worldline.model.errors import UsageError, WorldlineError, nearest, shown
from worldline.model.payload import from_json, from_msgpack

Number = int | float
Cell = Number | str | None
WarmUp = int | str
"""Until when values don't count: a time in nanoseconds, or MSER5."""

MSER5 = "mser5"
DEFAULTS = ("count", "mean", "time_mean", "min", "max", "p50", "p90", "p99", "first", "last")
"""The statistics that are kept of every series, unless columns are named."""

OF_EVERY_RUN = ("dropped", "events", "time")
"""What is known of any run: its messages that got lost, its events, and its end in nanoseconds."""

_COLUMN = re.compile(r"(.+)\.(count|mean|time_mean|min|max|p\d{1,2}(?:\.\d+)?|first|last|histogram)")
_SUB_BINS = 8  # Of a histogram, between two powers of two.


class MeasuredSeries:
    """The values of one quantity in one run, of one member or of several."""

    def __init__(self, monitors: Sequence[tuple[str, Monitor]], warm_up: WarmUp = 0) -> None:
        self._monitors = monitors
        times, values = _merged(monitors)
        if isinstance(warm_up, int):
            self._since = warm_up
        else:
            self._since = times[mser5(values)] if times else 0
        self.values: list[Any] = values[bisect_left(times, self._since) :]

    @cached_property
    def is_numeric(self) -> bool:
        kinds = {*map(type, self.values)}
        return all(issubclass(kind, int | float) for kind in kinds)

    def statistic(self, name: str) -> Cell:
        """Return one of the statistics; None if it has no values, unless they are counted."""
        if name == "count":
            return len(self.values)
        if not self.values:
            return None
        if not self.is_numeric:
            raise UsageError(f"only numbers have a {name}", advice="record numbers, or ask for the count")
        known: dict[str, Callable[[], Cell]] = {
            "mean": self._mean,
            "time_mean": self._time_mean,
            "min": lambda: min(self.values),
            "max": lambda: max(self.values),
            "first": lambda: self.values[0],
            "last": lambda: self.values[-1],
            "histogram": lambda: json.encode(histogram(self.values)).decode(),
        }
        return known[name]() if name in known else self._quantile(float(name[1:]))

    def _mean(self) -> float:
        return _total(self.values) / len(self.values)

    def _quantile(self, percent: float) -> Number:
        number: Number = sorted(self.values)[max(0, ceil(percent * len(self.values) / 100) - 1)]
        return number

    def _time_mean(self) -> float | None:
        products, lasted = [], 0
        for _, monitor in self._monitors:
            if not monitor.times:
                continue
            end = max(monitor.times[-1], monitor.end or 0)
            bounds = [max(at, self._since) for at in (*monitor.times, end)]
            for value, (start, stop) in zip(monitor.values, pairwise(bounds), strict=True):
                products.append(value * (stop - start))
            lasted += bounds[-1] - bounds[0]
        return _total(products) / lasted if lasted else self._mean()


def _merged(monitors: Sequence[tuple[str, Monitor]]) -> tuple[list[int], list[Any]]:
    """Return times and values of several monitors, by time and then by member."""
    if len(monitors) == 1:
        return monitors[0][1].times, monitors[0][1].values
    merged = [(at, member, value) for member, monitor in monitors for at, value in monitor]
    merged.sort(key=lambda each: each[:2])  # Stable: one member's values of one time stay in their order.
    return [at for at, _, _ in merged], [value for _, _, value in merged]


def _total(values: Sequence[Number]) -> Number:
    return sum(values) if {*map(type, values)} == {int} else fsum(values)


def histogram(values: Iterable[Number]) -> list[tuple[float, float, int]]:
    """Return how many values are in [lower, upper), for those of the bins that have any, in order.

    Between two powers of two there are eight bins of the same width; so those of several runs can be added up.
    """
    counts: dict[tuple[float, float], int] = {}
    for value in values:
        fraction, exponent = frexp(abs(value))
        place = int(fraction * 2 * _SUB_BINS)
        lower, upper = (ldexp(each / (2 * _SUB_BINS), exponent) for each in (place, place + 1))
        bounds = (0.0, 0.0) if value == 0 else (lower, upper) if value > 0 else (-upper, -lower)
        counts[bounds] = counts.get(bounds, 0) + 1
    return [(*bounds, count) for bounds, count in sorted(counts.items())]


# -- The numbers of one run


class RunMeasures:
    """All that one run has measured: series by monitors, and single numbers of the file's own function.

    `facts` are numbers that every run has: columns if they are named, or if there are no others.
    """

    def __init__(
        self,
        monitors: Monitors,
        own: Mapping[str, Number],
        warm_up: WarmUp = 0,
        facts: Mapping[str, Number] = MappingProxyType({}),
    ) -> None:
        self._own = own
        self._facts = facts
        self._warm_up = warm_up
        self._by_name: dict[str, list[tuple[str, Monitor]]] = {}
        for (member, what), monitor in monitors.items():
            self._by_name.setdefault(what, []).append((member, monitor))

    def columns(self, wanted: Sequence[str] = ()) -> dict[str, Cell]:
        """Return the columns that are wanted; if none are, the usual ones of each series, and all single numbers."""
        if wanted:
            return {name: self._column(name) for name in wanted}
        found: dict[str, Cell] = {}
        for what in sorted(self._by_name):
            series = MeasuredSeries(self._by_name[what], self._warm_up)
            if series.is_numeric:
                found.update((f"{what}.{each}", series.statistic(each)) for each in DEFAULTS)
        found.update(sorted(self._own.items()))
        return found or dict(self._facts)

    def _column(self, name: str) -> Cell:
        if name in self._own:
            return self._own[name]
        if name in self._facts and name not in self._by_name:
            return self._facts[name]
        match = _COLUMN.fullmatch(name)
        what, statistic = (match[1], match[2]) if match else (name, "")
        monitors = self._by_name.get(what) or [
            (member, monitor)
            for each, found in self._by_name.items()
            for member, monitor in found
            if f"{member}/{each}" == what
        ]
        if not monitors:
            raise _unknown_measure(name, self._own, self._by_name)
        if not statistic:
            advice = f"say which: {name}.mean, {name}.time_mean, {name}.p90; or count, min, max, first, last, histogram"
            raise UsageError(f"{name} is many values", advice=advice)
        return MeasuredSeries(monitors, self._warm_up).statistic(statistic)


def _unknown_measure(name: str, numbers: Iterable[str], series: Iterable[str]) -> UsageError:
    """Return that a run doesn't measure what was asked for."""
    known = sorted({*numbers, *series})
    there = f"it measures {', '.join(known)}" if known else "it measures nothing: self.measure(NAME, VALUE)"
    columns = [*numbers, *(f"{each}.{statistic}" for each in series for statistic in DEFAULTS)]
    return UsageError(f"nothing measures {shown(name)}", advice=nearest(name, columns) or there, measure=name)


def own_numbers(said: Any, where: str) -> dict[str, Number]:
    """Take what a file's `measures` function returns."""
    if not isinstance(said, Mapping):
        raise UsageError(f"{where}: its measures() returned {shown(said)}", advice='return a dict: {"late": 3}')
    found: dict[str, Number] = {}
    for name, value in said.items():
        number = value if type(value) in (int, float) else _as_number(value)
        if not isinstance(name, str) or number is None or number != number:  # Not a number isn't one.
            raise UsageError(
                f"{where}: its measures() says that {shown(name)} is {shown(value)}",
                advice="it is a number by its name",
            )
        found[name] = number
    return found


def _as_number(value: Any) -> Number | None:
    try:
        return int(value) if isinstance(value, int) else float(value)  # NumPy's numbers, among others.
    except (TypeError, ValueError):
        return None


# -- Fields of topics, as series


class FieldMonitors(Observer):
    """Makes series of fields of messages, as they are sent, and of notes: ``pose.x``, ``scan.ranges[0]``.

    A payload that is a number is called by its topic alone.
    """

    def __init__(self, fields: Iterable[str], encodings: Mapping[str, str] | None = None) -> None:
        self.monitors = Monitors()
        self._fields = tuple(fields)
        self._encodings = encodings or {}
        self._paths: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}  # By topic: fields, and what gets them.

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._look(who, topic, at, payload)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None and topic != MEASURE:  # Those are in the outcome.
            self._look(who, topic, at, payload)

    def _look(self, who: str, topic: str, at: int, payload: bytes) -> None:
        paths = self._paths.get(topic)
        if paths is None:
            rests = [(field, rest_of(field, topic)) for field in self._fields]
            paths = self._paths[topic] = [(field, getter(rest)) for field, rest in rests if rest is not None]
        if not paths:
            return
        value = self._decoded(topic, payload)
        for field, get in paths:
            found = get(value)
            if isinstance(found, int | float):
                monitor = self.monitors.of(who, field)
                if not monitor.times or at >= monitor.times[-1]:  # One may have been sent ahead of its time.
                    monitor.record(at, found)

    def missing(self) -> UsageError | None:
        """Return that a field is in no message, if one is."""
        there = {field for _, field in self.monitors}
        for field in self._fields:
            if field not in there:
                advice = nearest(field, self._paths) or f"there are {', '.join(sorted(self._paths)) or 'no messages'}"
                return UsageError(f"no message has a number {shown(field)}", advice=advice, measure=field)
        return None

    def _decoded(self, topic: str, payload: bytes) -> Any:
        encoding = self._encodings.get(topic, "")
        try:
            return from_msgpack(payload) if encoding == "msgpack" else from_json(payload)
        except WorldlineError as error:
            raise UsageError(
                f"fields of {topic} can't be measured: its payloads aren't {encoding or 'JSON'}",
                advice="let its sender measure it: measure(NAME, VALUE)",
            ) from error


def measured(outcome: Outcome, fields: FieldMonitors | None, own: Mapping[str, Number], warm_up: WarmUp) -> RunMeasures:
    """Put together what a run has measured."""
    monitors = Monitors(outcome.monitors)
    if fields is not None:
        monitors.update(sorted(fields.monitors.items()))
        for monitor in fields.monitors.values():
            monitor.end = outcome.now
    facts = dict(zip(OF_EVERY_RUN, (sum(outcome.dropped.values()), outcome.events, outcome.now), strict=True))
    return RunMeasures(monitors, own, warm_up, facts)
