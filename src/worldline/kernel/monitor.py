"""A value over time: what an entity records of itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any


class Monitor:
    """The values of one quantity, each from its time on until the next."""

    __slots__ = ("times", "values")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.values: list[Any] = []

    def record(self, time: int, value: Any) -> None:
        self.times.append(time)
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

    def at(self, time: int) -> Any:
        """Return the value that held at a time; None before the first."""
        place = bisect_right(self.times, time)
        return self.values[place - 1] if place else None

    def mean(self, until: int | None = None) -> float:
        """Return the mean over time, from the first value on: each counts as long as it held."""
        if not self.times:
            raise ValueError("nothing was recorded")
        end = self.times[-1] if until is None else until
        if end <= self.times[0]:
            return float(self.values[0])
        total = 0
        for place, (start, value) in enumerate(self):
            stop = min(self.times[place + 1], end) if place + 1 < len(self) else end
            total += value * max(0, stop - start)
        return total / (end - self.times[0])
