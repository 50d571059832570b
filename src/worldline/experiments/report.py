"""What a sweep's table says: estimates with their intervals, and how points differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

from worldline.experiments.statistics import (
    Interval,
    deviation_of,
    interval,
    mean_of,
    paired_interval,
    welch_interval,
)
from worldline.experiments.sweeping import independent
from worldline.experiments.table import Cell, Point, SweepTable
from worldline.model.errors import UsageError

_SHOWN_MAX = 6
_COMPARED_MAX = 24  # Points: with more, a picture says it better.
_MEAN = ".mean"


class Comparison(NamedTuple):
    """How much larger a measure is at a point than at the first one.

    If the draws are common, the `difference` is of pairs, and `runs_unpaired` is how many runs at each point would give
    an interval as narrow without that, about.
    """

    point: int
    difference: Interval
    runs_unpaired: int | None = None


def has_intervals() -> bool:
    """Whether scipy is there, without which there are only means."""
    try:
        import scipy.stats  # noqa: F401
    except ImportError:
        return False
    return True


def shown_measures(table: SweepTable, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns that a report shows: those that are wanted, or the first means and single numbers."""
    for name in wanted:
        table.place(name)
    if wanted:
        return tuple(wanted)
    named = [name for name in table.facts.get("measures", "").split(", ") if name in table.measures]
    if named:
        return tuple(named)
    usual = [name for name in table.measures if name.endswith(_MEAN) or "." not in name]
    return tuple((usual or list(table.measures))[:_SHOWN_MAX])


def estimates(table: SweepTable, measure: str) -> dict[int, Interval]:
    """Return the mean of a measure at each point, with its interval over replications."""
    samples = _samples(table, measure)
    with_intervals = has_intervals()
    return {
        point: interval(sample) if with_intervals else Interval(mean_of(sample), inf, len(sample))
        for point, sample in ((point, list(each.values())) for point, each in samples.items())
        if sample
    }


def are_all_alike(table: SweepTable) -> bool:
    """Whether runs at a point never differ, as those of a script that seeds itself: their intervals mean nothing."""
    found: dict[Cell, list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        if row[-2] is None:  # It hasn't failed.
            found.setdefault(row[0], []).append(row[3:])  # Without its replicate and seed.
    return any(len(runs) > 1 for runs in found.values()) and all(len({*runs}) == 1 for runs in found.values())


def imprecise(table: SweepTable, measures: Sequence[str], share: float) -> int:
    """Return at how many points the interval of a measure isn't within a share of its mean."""
    found = [estimates(table, measure) for measure in measures]
    return sum(any(point not in each or each[point].relative > share for each in found) for point in table.points())


def comparisons(table: SweepTable, measure: str) -> list[Comparison]:
    """Compare each point with the first one: by pairs if their draws are common, otherwise by Welch's interval."""
    samples = _samples(table, measure)
    first, *others = samples
    found = []
    for point in others:
        both = [each for each in samples[first] if each in samples[point]]
        if table.is_common and len(both) > 1:
            before, after = ([samples[each][number] for number in both] for each in (first, point))
            difference = paired_interval(before, after)
            found.append(Comparison(point, difference, _runs_unpaired(before, after)))
        elif samples[first] and samples[point]:
            before, after = (list(samples[each].values()) for each in (first, point))
            found.append(Comparison(point, welch_interval(before, after)))
    return found


def _runs_unpaired(first: Sequence[float], second: Sequence[float]) -> int | None:
    """Return how many runs at each point would do without pairs; None if pairs leave no doubt at all."""
    paired = deviation_of([after - before for before, after in zip(first, second, strict=True)]) ** 2
    alone = deviation_of(first) ** 2 + deviation_of(second) ** 2
    return ceil(len(first) * alone / paired) if paired else None


def _samples(table: SweepTable, measure: str) -> dict[int, dict[int, float]]:
    """Return the values that don't depend on each other, by point and number."""
    samples = table.samples(measure)
    if not any(samples.values()):
        raise UsageError(f"no run has a number for {measure}")
    if not table.is_antithetic:
        return samples
    return {point: independent(sample, True) for point, sample in samples.items()}


# -- As text


def lines(table: SweepTable, wanted: Sequence[str] = ()) -> list[str]:
    """Say what has come of a sweep: a row for each point, how points compare, and which runs have failed."""
    measures = shown_measures(table, wanted)
    points = table.points()
    numbers = {measure: estimates(table, measure) for measure in measures if any(table.samples(measure).values())}
    counts: dict[int, int] = {}
    for row in table.rows:
        counts[row[0]] = counts.get(row[0], 0) + 1  # type: ignore[index,arg-type]
    rows = [
        [
            *_parameters(parameters),
            f"{counts[point]:,}",
            *(str(numbers[each].get(point, "")) if each in numbers else "" for each in measures),
        ]
        for point, parameters in points.items()
    ]
    return [*_laid_out([*table.parameters, "runs", *measures], rows), *_compared(table, [*numbers], points)]


def _compared(table: SweepTable, measures: Sequence[str], points: Mapping[int, Point]) -> list[str]:
    if not 2 <= len(points) <= _COMPARED_MAX or not measures or not has_intervals():
        return []
    found = {measure: {each.point: each for each in comparisons(table, measure)} for measure in measures}
    if not any(found.values()):
        return []
    first = next(iter(points))
    how = "paired, since their draws are common" if table.is_common else "independent runs"
    settings = zip(table.parameters, _parameters(points[first]), strict=True)
    named = ", ".join(f"{name}={value}" for name, value in settings)
    rows = [
        [*_parameters(parameters), *(_difference(found[each].get(point)) for each in measures)]
        for point, parameters in points.items()
        if point != first
    ]
    return ["", f"differences from {named} ({how}):", *_laid_out([*table.parameters, *measures], rows)]


def _difference(compared: Comparison | None) -> str:
    if compared is None:
        return ""
    difference = compared.difference
    sign = "+" if difference.mean > 0 else ""
    pairs = "" if compared.runs_unpaired is None else f" (unpaired: {compared.runs_unpaired:,} runs)"
    return f"{sign}{difference}{pairs}"


def _parameters(cells: Sequence[Cell]) -> list[str]:
    return [f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells]


def _laid_out(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (titles, *rows)
    ]
