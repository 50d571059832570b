"""Values over time: what the members of a run measure, and what entities record of themselves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from math import isfinite
from numbers import Real
from typing import Any

from worldline.model.errors import ModelError, UsageError, nearest, shown
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.text import table_html
from worldline.model.time import TimeLike, format_time


class Monitor:
    """The values of one quantity, each from its time on until the next; the last one until `end`.

    The end is that of the run so far, or of the entity if that has ended. A monitor that is no run's has None, and its
    last value has no duration yet.
    """

    __slots__ = ("end", "times", "values")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.values: list[Any] = []
        self.end: int | None = None

    def record(self, time: TimeLike, value: Any) -> None:
        """Write down a value as of a time, which isn't before the last one."""
        at = as_time(time)
        if self.times and at < self.times[-1]:
            raise UsageError(
                f"a value for {format_time(at)} can't be recorded after one for {format_time(self.times[-1])}",
                advice="record values in the order of their times",
            )
        self.times.append(at)
        self.values.append(value)

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self.times, self.values, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Monitor) and (self.times, self.values) == (other.times, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Monitor of {len(self)} values>"

    def at(self, time: TimeLike) -> Any:
        """Return the value that held at a time; None before the first."""
        place = bisect_right(self.times, as_time(time))
        return self.values[place - 1] if place else None

    def last(self) -> Any:
        """Return the last value; None, if there is none."""
        return self.values[-1] if self.values else None

    def shown_mean(self) -> str:
        """Return the mean over time in a few digits; nothing, if there is none."""
        numbers = self.values and all(isinstance(value, int | float) for value in self.values)
        return f"{self.mean():.4g}" if numbers else ""

    def mean(self, until: TimeLike | None = None) -> float:
        """Return the mean over time, from the first value on: each counts as long as it held, the last until the end.

        With `until` it is the mean up to then: what came later doesn't count, and the last value goes on until then.
        """
        if not self.times:
            raise ValueError("nothing was recorded")
        first, last = self.times[0], self.times[-1]
        end = as_time(until) if until is not None else max(last, self.end or 0)
        if end < first:
            raise ValueError(
                f"nothing was recorded before {format_time(end)}: the first value is of {format_time(first)}"
            )
        try:
            if end == first:
                return float(0 + self.at(first))
            total = 0
            for value, start, stop in zip(self.values, self.times, [*self.times[1:], max(last, end)], strict=True):
                total += value * (min(stop, end) - min(start, end))
            return total / (end - first)
        except TypeError as error:
            raise UsageError("only numbers have a mean", advice="look at its values") from error


_NAMED_MAX = 8


class Monitors(dict[tuple[str, str], Monitor]):
    """The monitors of a run, by (member, name)."""

    def __missing__(self, key: object) -> Monitor:
        raise UsageError(f"there is no monitor {shown(key)}", advice=self._advice(key))

    def of(self, member: str, what: str) -> Monitor:
        """Return the monitor of that name, a new one if there is none."""
        if (member, what) not in self:
            self[member, what] = Monitor()
        return self[member, what]

    def _repr_html_(self) -> str:
        """Show them in a notebook, each with how many values it has, its mean over time and its last value."""
        rows = (
            (f"{member}/{what}", f"{len(each):,}", each.shown_mean(), each.last())
            for (member, what), each in self.items()
        )
        return table_html(("measured", "values", "mean over time", "last"), rows)

    def _advice(self, key: object) -> str:
        member, what = key if isinstance(key, tuple) and len(key) == 2 else (key, "")
        names = sorted({name for name, _ in self})
        own = sorted(each for name, each in self if name == member)
        if own:
            return nearest(what, own) or f"{member} has recorded {', '.join(own[:_NAMED_MAX])}"
        return nearest(member, names) or 'write monitors["entity", "name"], of what was recorded'


def checked_measure(what: str, value: Any) -> tuple[str, int | float]:
    """Return the name and the number of a measure as every room keeps them; refuse what isn't a finite number."""
    check_name(what, "a measure")
    if type(value) is float or type(value) is int:  # As nearly all are.
        number: int | float = value
    elif isinstance(value, Real):  # NumPy's are, too, and so are True and False.
        number = int(value) if isinstance(value, int) else float(value)
    else:
        raise ModelError(f"{what} can't be {shown(value)}", advice="a measure is a number")
    if not isfinite(number):
        raise ModelError(f"{what} can't be {shown(value)}", advice="a measure is a finite number")
    return what, number
