"""What is plotted of what: recordings, outcomes and sweeps, by the names of fields and measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from worldline.experiments.table import SweepTable, is_sweep, read_sweep
from worldline.files.saving import save
from worldline.history.outcome import Outcome
from worldline.model.errors import UsageError, shown
from worldline.pictures.page import Page, written_page
from worldline.pictures.plot.chart import Bars, Cells, Chart, Line, LogAxes, Panel, PlotKind, PlotOptions
from worldline.pictures.plot.figure import figure_of, png_of, svg_of, thinned
from worldline.pictures.plot.over_parameters import bars_of_runs, heat_map, lines_over_parameters
from worldline.pictures.plot.over_time import bars_of, lines_over_time, of_outcome, of_recordings
from worldline.recording.reader import Recording
from worldline.recording.signals import field_names, some_of

Source = str | PathLike[str] | Recording | Outcome | SweepTable
ENDINGS = (".svg", ".png", ".html")


class Plot:
    """A plot, which a notebook shows as it is."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    def svg(self) -> str:
        """Return it as SVG."""
        return svg_of(self.chart).decode()

    def png(self) -> bytes:
        """Return it as PNG."""
        return png_of(self.chart)

    def html(self) -> str:
        """Return it as a page that needs nothing else: lines can be zoomed, and say their values under the mouse."""
        return page_of(self.chart)

    def figure(self) -> Any:
        """Return it as a figure of matplotlib's, to go on with."""
        return figure_of(self.chart)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file: .svg, .png or .html."""
        path = Path(path)
        ending = checked_ending(path)
        save(path, self.png() if ending == ".png" else (self.svg() if ending == ".svg" else self.html()).encode())

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Plot of {self.chart.title}>"


def checked_ending(path: Path) -> str:
    """Return the ending of a file that is one of a plot's."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} says nothing of what to write", advice=f"let it end in {', '.join(ENDINGS)}")
    return path.suffix


def plot(*sources: Source, topics: str | Sequence[str] = (), **options: Any) -> Plot:
    """Plot signals of runs, over each other if there are several; or measures of a sweep.

    Sources are recordings or their files, outcomes, and sweeps or their files. The options are those of `PlotOptions`.
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    if "senders" in options:
        senders = options["senders"]
        options["senders"] = (senders,) if isinstance(senders, str) else tuple(senders)
    if options.get("kind") is not None:
        options["kind"] = _one_of(PlotKind, options["kind"], "a kind of plot")
    if options.get("log") is not None:
        options["log"] = _one_of(LogAxes, options["log"], "a choice of axes")
    return plotted(sources, PlotOptions(topics=names, **options))


Choice = TypeVar("Choice", PlotKind, LogAxes)


def _one_of(choices: type[Choice], name: str, what: str) -> Choice:
    try:
        return choices(name)
    except ValueError as error:
        raise UsageError(f"{shown(name)} isn't {what}", advice=", ".join(choices)) from error


def plotted(sources: Sequence[Source], options: PlotOptions) -> Plot:
    """Plot sources."""
    if not sources:
        raise UsageError("there is nothing to plot", advice="name a recording")
    opened = [_opened(each) for each in sources]
    sweeps = [each for each in opened if isinstance(each, SweepTable)]
    if sweeps:
        if len(opened) > 1:
            raise UsageError("a sweep is plotted alone", advice="name one file")
        chart = _chart_of_sweep(sweeps[0], options)
    else:
        chart = _chart_of_runs([each for each in opened if not isinstance(each, SweepTable)], options)
    chart = replace(chart, title=options.title) if options.title else chart
    return Plot(chart if options.log is None else logarithmic(chart, options.log.value))


def logarithmic(chart: Chart, axes: str) -> Chart:
    """Return a chart with logarithmic axes; refuse those that can't be."""
    for panel in chart.panels:
        if isinstance(panel.content, Cells):
            raise UsageError("a heat map has no logarithmic axes", advice="draw it on plain axes")
        if panel.levels and "y" in axes:
            texts = panel.title or chart.title
            raise UsageError(f"{texts} is texts, which have no logarithm", advice="let only x be logarithmic")
        for each in panel.content:
            if "x" in axes and (chart.ticks or isinstance(each, Bars)):
                what = "names" if chart.ticks else "bars"
                raise UsageError(f"the horizontal axis is of {what}, and can't be logarithmic", advice="let only y be")
            values = {"x": each.x, "y": each.y} if isinstance(each, Line) else {"y": each.counts}
            for axis in axes:
                if not any(value > 0 for value in values[axis]):
                    problem = f"{each.label} has no numbers above 0 on the {axis} axis"
                    raise UsageError(problem, advice="draw it on plain axes")
    return replace(chart, log=axes)


def _opened(source: Source) -> Recording | Outcome | SweepTable:
    if isinstance(source, Recording | Outcome | SweepTable):
        return source
    path = Path(source)
    return read_sweep(path) if is_sweep(path) else Recording(path)


def _chart_of_runs(runs: Sequence[Recording | Outcome], options: PlotOptions) -> Chart:
    if options.kind is PlotKind.HEAT or options.x or options.by:
        given = "a heat map" if options.kind is PlotKind.HEAT else "a parameter across"
        raise UsageError(f"{given} is for sweeps, and this is a run", advice="leave it out")
    if not options.topics:
        some = ", ".join(some_of(_known(runs[0])))
        raise UsageError(
            "nothing says what to plot", advice=f"name a field as the topic, such as {some}" if some else None
        )
    found = []
    recordings = [each for each in runs if isinstance(each, Recording)]
    read = iter(of_recordings(recordings, options) if recordings else ())
    for place, each in enumerate(runs, 1):
        found.append(next(read) if isinstance(each, Recording) else of_outcome(each, options, f"run {place}"))
    if options.kind is PlotKind.HISTOGRAM:
        return bars_of(found, options)
    return lines_over_time(found, options)


def _known(run: Recording | Outcome) -> list[str]:
    if isinstance(run, Recording):
        return list(field_names(run.tellings))
    return list(dict.fromkeys(what for _, what in run.monitors))


def _chart_of_sweep(table: SweepTable, options: PlotOptions) -> Chart:
    if options.senders or options.start is not None or options.until is not None:
        raise UsageError("members and times are those of runs, and this is a sweep", advice="leave them out")
    if options.kind is PlotKind.HEAT:
        return heat_map(table, options)
    if options.kind is PlotKind.HISTOGRAM:
        return bars_of_runs(table, options)
    if options.kind is not None:
        raise UsageError(f"a sweep isn't drawn as {options.kind}", advice="choose histogram or heat, or leave it out")
    return lines_over_parameters(table, options)


# The page of a chart: lines can be zoomed, chosen and read; bars, cells and logarithmic axes are a picture.

_PIXELS = 5000  # Columns that lines are thinned to: enough to zoom in some times.


def page_of(chart: Chart) -> Page:
    """Write the page of a chart."""
    panels = [_content(panel) for panel in chart.panels]
    drawn = panels if not chart.log and all(each is not None for each in panels) else []
    told = {"subtitle": chart.subtitle, "x": chart.x_title, "ticks": list(chart.ticks), "panels": drawn}
    return written_page(chart.title, {"chart": told}, svg_of(chart))


def _content(panel: Panel) -> dict[str, Any] | None:
    """Return a panel of lines as plain values; None, if it has others."""
    if isinstance(panel.content, Cells):
        return None
    lines = [each for each in panel.content if isinstance(each, Line)]
    if len(lines) < len(panel.content):
        return None
    return {
        "title": panel.title,
        "y": panel.y_title,
        "levels": list(panel.levels),
        "limits": panel.limits,
        "lines": [_line(each) for each in lines],
    }


def _line(line: Line) -> dict[str, Any]:
    x, y = thinned(line.x, line.y, _PIXELS)
    told: dict[str, Any] = {
        "label": line.label,
        "color": line.color,
        "dash": line.dash,
        "style": line.style,
        "marked": line.marked,
        "x": _numbers(x),
        "y": _numbers(y),
    }
    if line.low is not None:
        told |= {"low": _numbers(line.low), "high": _numbers(line.high)}
    return told


def _numbers(values: Any) -> list[float | None]:
    """Return numbers as JSON can have them: of nine digits, and nothing for those that aren't."""
    rounded = (float(f"{value:.9g}") for value in map(float, values))
    return [value if value - value == 0 else None for value in rounded]
