"""Charts of sweeps: a measure over a parameter, with the interval of its mean; grouped by another, or as a heat map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, nan
from typing import NamedTuple

from worldline.experiments.statistics import interval, mean_of
from worldline.experiments.table import Cell, SweepTable
from worldline.model.errors import UsageError, WorldlineError, nearest, shown
from worldline.model.reading import as_time
from worldline.model.text import counted
from worldline.pictures.plot.chart import LINES_MAX, Bars, Cells, Chart, Line, Panel, PlotOptions
from worldline.pictures.plot.figure import histogram

_LISTED = 12


class _Group(NamedTuple):
    """What the points of a line, a bar or a cell have in common: texts for x and by, and all that was measured."""

    x: Cell
    by: Cell
    values: list[float]


def lines_over_parameters(table: SweepTable, options: PlotOptions) -> Chart:
    """Make a chart with a panel for each measure: means over a parameter, with the band of their intervals."""
    measures = _measures(table, options)
    x, by = _axes(table, options)
    cells: list[Cell] = _in_order(table.column(x)) if x else [None]
    are_numbers = all(isinstance(cell, int | float) for cell in cells)
    places = {cell: float(cell if are_numbers else place) for place, cell in enumerate(cells)}  # type: ignore[arg-type]
    panels = []
    for measure in measures:
        groups = _groups(table, measure, x, by)
        several = _in_order(group.by for group in groups)
        if len(several) > LINES_MAX:
            raise UsageError(f"{by} has {len(several)} values, and at most {LINES_MAX} lines can be told apart")
        content = [
            _line(
                f"{by} = {_text(each)}" if by else "mean",
                color,
                [group for group in groups if group.by == each],
                places,
            )
            for color, each in enumerate(several)
        ]
        panels.append(Panel(title=measure, content=content, y_title="mean and 95 % interval"))
    return Chart(
        title=", ".join(measures) + (f" over {x}" if x else ""),
        subtitle=_subtitle(table, x, by),
        x_title=x or "",
        panels=panels,
        ticks=() if are_numbers else [_text(cell) if x else "all runs" for cell in cells],
        x_whole=all(isinstance(cell, int) for cell in cells),
    ).alone()


def _line(label: str, color: int, groups: Sequence[_Group], places: dict[Cell, float]) -> Line:
    ordered = sorted(groups, key=lambda group: places[group.x])
    means = [interval(group.values) for group in ordered]
    known = all(mean.half_width < inf for mean in means)
    return Line(
        label=label,
        x=[places[group.x] for group in ordered],
        y=[mean.mean for mean in means],
        low=[mean.low for mean in means] if known else None,
        high=[mean.high for mean in means] if known else None,
        color=color,
        marked=True,
    )


def heat_map(table: SweepTable, options: PlotOptions) -> Chart:
    """Make a chart with a heat map for each measure: its means over two parameters."""
    x, by = _axes(table, options)
    if x is None or by is None:
        raise UsageError("a heat map has two parameters, and the sweep has one", advice="leave out --kind heat")
    measures = _measures(table, options)
    columns, rows = _in_order(table.column(x)), _in_order(table.column(by))
    panels = []
    for measure in measures:
        means = {(group.x, group.by): mean_of(group.values) for group in _groups(table, measure, x, by)}
        content = Cells(
            columns=[_text(each) for each in columns],
            rows=[_text(each) for each in rows],
            values=[[means.get((column, row), nan) for column in columns] for row in rows],
            row_title=by,
            value_title=f"mean of {measure}",
        )
        panels.append(Panel(title=measure, content=content))
    return Chart(
        title=f"{', '.join(measures)} over {x} and {by}", subtitle=_subtitle(table, x, by), x_title=x, panels=panels
    ).alone()


def bars_of_runs(table: SweepTable, options: PlotOptions) -> Chart:
    """Make a chart with a histogram for each measure: a value for each run, grouped by a parameter."""
    measures = _measures(table, options)
    by = options.by or options.x
    if by is not None:
        _check_parameter(table, by)
    panels = []
    for measure in measures:
        groups = _groups(table, measure, None, by)
        counts = histogram([group.values for group in groups], options.bins)
        content = [
            Bars(label=f"{by} = {_text(group.by)}" if by else measure, edges=edges, counts=count, color=color)
            for color, (group, (edges, count)) in enumerate(zip(groups, counts, strict=True))
        ]
        panels.append(Panel(title=measure, content=content, y_title="runs"))
    return Chart(title=", ".join(measures), subtitle=_subtitle(table, None, by), x_title="value", panels=panels).alone()


def _measures(table: SweepTable, options: PlotOptions) -> tuple[str, ...]:
    """Return the columns that are asked for. The name of a series alone means the mean of it."""
    if not options.topics:
        listed = ", ".join(table.measures[:_LISTED])
        raise UsageError("nothing says what to plot", advice=f"name a measure as the topic, such as {listed}")
    found = []
    for name in options.topics:
        for column in (name, f"{name}.mean"):
            if column in table.measures:
                found.append(column)
                break
        else:
            known = [*table.measures, *(each.removesuffix(".mean") for each in table.measures)]
            listed = f"there are {', '.join(table.measures[:_LISTED])}"
            raise UsageError(f"{table.path} has no measure {shown(name)}", advice=nearest(name, known) or listed)
    return tuple(found)


def _axes(table: SweepTable, options: PlotOptions) -> tuple[str | None, str | None]:
    """Return the parameters across and of the lines: those that are named, otherwise the first ones that vary."""
    for name in (options.x, options.by):
        if name is not None:
            _check_parameter(table, name)
    varied = [name for name in table.parameters if len({*table.column(name)}) > 1]
    free = [name for name in varied if name not in (options.x, options.by)]
    x = options.x or (free.pop(0) if free else None)
    by = options.by or (free.pop(0) if free else None)
    return x, by


def _check_parameter(table: SweepTable, name: str) -> None:
    if name not in table.parameters:
        listed = f"parameters: {', '.join(table.parameters)}" if table.parameters else "it varies none"
        raise UsageError(
            f"{table.path} has no parameter {shown(name)}", advice=nearest(name, table.parameters) or listed
        )


def _groups(table: SweepTable, measure: str, x: str | None, by: str | None) -> list[_Group]:
    """Put runs together that have the same x and by, in the order of their points."""
    samples, points = table.samples(measure), table.points()
    place_x = table.parameters.index(x) if x else None
    place_by = table.parameters.index(by) if by else None
    found: dict[tuple[Cell, Cell], list[float]] = {}
    for point, values in samples.items():
        own = points[point]
        key = (own[place_x] if place_x is not None else None, own[place_by] if place_by is not None else None)
        found.setdefault(key, []).extend(values[replicate] for replicate in sorted(values))
    groups = [_Group(*key, values) for key, values in found.items() if values]
    if not groups:
        raise UsageError(f"no run of {table.path} has measured {measure}")
    return groups


def _in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Return each value once: numbers and times by their size, texts in the order in which they come up."""
    distinct = list(dict.fromkeys(cells))
    sizes = {cell: size for cell in distinct if (size := _size(cell)) is not None}
    return sorted(distinct, key=sizes.__getitem__) if len(sizes) == len(distinct) else distinct


def _size(cell: Cell) -> float | None:
    if isinstance(cell, int | float):
        return cell
    try:
        return None if cell is None else float(cell)
    except ValueError:
        pass
    try:
        return as_time(str(cell), "a time")
    except WorldlineError:
        return None


def _text(cell: Cell) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _subtitle(table: SweepTable, x: str | None, by: str | None) -> str:
    others = [name for name in table.parameters if name not in (x, by) and len({*table.column(name)}) > 1]
    failed = len(table.failures())
    return ", ".join(
        [
            f"{counted(len(table), 'run')} of {table.facts['target'].rpartition('/')[2]}",
            *([f"over all values of {', '.join(others)}"] if others else []),
            *([f"{failed:,} failed"] if failed else []),
        ]
    )
