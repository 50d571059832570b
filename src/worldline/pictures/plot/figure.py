"""Draws charts with matplotlib: the same bytes for the same chart, whatever settings its user has.

Texts are drawn as outlines of the font that matplotlib brings along, so pictures look the same everywhere; there is no
date and no random name in them. What pyplot keeps for a whole process isn't used.

A line of more points than can be seen is thinned: in each column of pixels, the first and the last point, the lowest
and the highest stay (which is all that a pixel can show).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from worldline.extras import installing
from worldline.model.errors import UsageError
from worldline.pictures.plot.chart import Bars, Cells, Chart, Line, Numbers, Panel
from worldline.pictures.svg import INK, PALETTE, SOFT, fitted

_WIDTH, _HEIGHT = 9.6, 2.3  # In inches: of a picture, and of a panel.
_ALONE, _CELLS = 3.9, 4.6  # The height of a panel that is the only one.
_PIXELS = 1200  # Columns of pixels of a panel, at most.
_PNG_DPI = 160
_GRID, _EDGE = "#e6eaee", "#9aa5b1"
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.2, 1.4)), (0, (7, 2, 1.2, 2)))
_WAY, _DIGITS = re.compile(rb' d="[^"]+"'), re.compile(rb"(\.\d\d)\d+")  # More than two digits can't be seen.
_MARKED_UP_TO = 40  # Points.
_LEGEND_ROWS = 11
_LABEL_UP_TO = 150.0  # How wide a name in a legend may be, in points.
_NUMBERED_UP_TO = 120  # Cells.
# What of a user's own settings isn't about looks.
_NOT_LOOKS = (
    *("backend", "interactive", "toolbar", "webagg", "tk.", "docstring", "timezone", "date.epoch", "keymap", "macosx"),
    *("figure.max_open_warning", "figure.raise_window", "savefig.directory", "figure.hooks"),
)
_LOOKS = {
    "svg.hashsalt": "worldline",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # A name with a dollar is a name.
    "axes.labelcolor": SOFT,
    "axes.edgecolor": _EDGE,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "lines.linewidth": 1.5,
    "lines.solid_joinstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def library(name: str) -> Any:
    """Import a module of matplotlib, or numpy."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError("to plot needs matplotlib, which isn't installed", advice=installing("plot")) from error


def svg_of(chart: Chart) -> bytes:
    """Return a chart as SVG."""
    canvas = library("matplotlib.backends.backend_svg").FigureCanvasSVG
    text = _written(chart, canvas, "print_svg", metadata={"Date": None, "Creator": None, "Title": chart.title})
    return _WAY.sub(lambda way: _DIGITS.sub(rb"\1", way[0]), text)


def png_of(chart: Chart) -> bytes:
    """Return a chart as PNG."""
    canvas = library("matplotlib.backends.backend_agg").FigureCanvasAgg
    return _written(chart, canvas, "print_png", metadata={"Software": None, "Title": chart.title})


def _written(chart: Chart, canvas: Any, method: str, **given: Any) -> bytes:
    file = io.BytesIO()
    with _settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of letters that the font hasn't, and of axes that are a point.
        figure = drawn(chart)
        drawing = canvas(figure)
        _settle(figure)
        getattr(drawing, method)(file, **given)
    return file.getvalue()


def _settle(figure: Any) -> None:
    """Lay a figure out, and round where its axes are: what the solver finds differs in the last bits by luck."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in figure.axes:
        box = ax.get_position()
        ax.set_position([round(float(each), 4) for each in (box.x0, box.y0, box.width, box.height)])


def _settings() -> AbstractContextManager[None]:
    """Set matplotlib's own defaults and our looks, whatever its user has changed."""
    matplotlib = library("matplotlib")
    usual = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith(_NOT_LOOKS)}
    context: AbstractContextManager[None] = matplotlib.rc_context({**usual, **_LOOKS})
    return context


def figure_of(chart: Chart) -> Any:
    """Return a chart as a figure of matplotlib's, which its caller may go on with."""
    with _settings():
        return drawn(chart)


def drawn(chart: Chart) -> Any:
    """Draw a chart, by the settings that hold."""
    figure_kind = library("matplotlib.figure").Figure
    count = len(chart.panels)
    heights = [_height(panel) for panel in chart.panels]
    if heights == [_HEIGHT]:
        heights = [_ALONE]
    top = 0.52 if chart.subtitle else 0.32
    whole = sum(heights) + top
    figure = figure_kind(figsize=(_WIDTH, whole), dpi=_PNG_DPI, layout="constrained")
    figure.get_layout_engine().set(
        rect=(0.005, 0.01, 0.99, 1 - top / whole - 0.01), hspace=0.05, h_pad=0.06, w_pad=0.06
    )
    figure.text(0.012, 1 - 0.1 / whole, fitted(chart.title, 640, 12), size=12, weight="bold", va="top", ha="left")
    if chart.subtitle:
        below = 1 - 0.34 / whole
        figure.text(0.012, below, fitted(chart.subtitle, 660, 8.5), size=8.5, color=SOFT, va="top", ha="left")
    shares = not any(isinstance(panel.content, Cells) or _has_bars(panel) for panel in chart.panels)
    axes = figure.subplots(count, 1, squeeze=False, sharex=shares, height_ratios=heights)[:, 0]
    for place, (ax, panel) in enumerate(zip(axes, chart.panels, strict=True)):
        _draw_panel(figure, ax, panel, chart)
        if place == count - 1 or not shares:
            ax.set_xlabel(chart.x_title)
    return figure


def _height(panel: Panel) -> float:
    if isinstance(panel.content, Cells):
        return _CELLS
    return min(_HEIGHT, 0.62 + 0.22 * len(panel.levels)) if panel.levels and not _has_bars(panel) else _HEIGHT


def _has_bars(panel: Panel) -> bool:
    return not isinstance(panel.content, Cells) and any(isinstance(each, Bars) for each in panel.content)


def _draw_panel(figure: Any, ax: Any, panel: Panel, chart: Chart) -> None:
    if panel.title:
        ax.set_title(fitted(panel.title, 560, 9.5), loc="left", size=9.5, color=INK, pad=5)
    if isinstance(panel.content, Cells):
        _draw_cells(figure, ax, panel.content)
        return
    ax.margins(x=0.01, y=0.08)
    if panel.y_title:
        ax.set_ylabel(panel.y_title)
    for each in panel.content:
        if isinstance(each, Bars):
            color = PALETTE[each.color % len(PALETTE)]
            ax.stairs(each.counts, each.edges, fill=True, color=color, alpha=0.3, label=_label(each.label))
            ax.stairs(each.counts, each.edges, color=color, linewidth=1.2)
        else:
            _draw_line(ax, each, chart.log)
    for name in chart.log:
        _scale_by_powers(ax, name)
    if panel.limits is not None:
        ax.set_ylim(*panel.limits)
    if chart.x_whole and "x" not in chart.log:
        ax.xaxis.set_major_locator(library("matplotlib.ticker").MaxNLocator(integer=True))
    if panel.is_whole and "y" not in chart.log:
        ax.yaxis.set_major_locator(library("matplotlib.ticker").MaxNLocator(integer=True))
        low, high = ax.get_ylim()
        if high - low < 2:
            ax.set_ylim(low - 1, high + 1)
    if panel.levels:
        _name(ax.xaxis if _has_bars(panel) else ax.yaxis, panel.levels)
        if not _has_bars(panel):
            ax.set_ylim(-0.5, len(panel.levels) - 0.5)
    if chart.ticks:
        _name(ax.xaxis, chart.ticks)
    if len(panel.content) > 1 and not _is_named(panel):
        columns = -(-len(panel.content) // _LEGEND_ROWS)
        ax.legend(
            loc="upper left",
            bbox_to_anchor=(1.005, 1.03),
            borderaxespad=0,
            ncols=columns,
            handlelength=1.7,
            labelcolor=INK,
        )


def _scale_by_powers(ax: Any, name: str) -> None:
    """Make an axis logarithmic, with ticks at powers of ten; if these are few, also between them."""
    ticker = library("matplotlib.ticker")
    getattr(ax, f"set_{name}scale")("log", nonpositive="clip")  # A band goes down to the edge then.
    axis = getattr(ax, f"{name}axis")
    low, high = getattr(ax, f"get_{name}lim")()
    between = (1.0, 2.0, 5.0) if low > 0 and high < 1000 * low else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=between))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))  # Its own would be TeX.


def _is_named(panel: Panel) -> bool:
    """Whether the axis says what a legend would: in rows of moments."""
    return bool(panel.levels) and [each.label for each in panel.content] == list(panel.levels)  # type: ignore[union-attr]


def _name(axis: Any, texts: Sequence[str]) -> None:
    axis.set_ticks(range(len(texts)), [fitted(each, 120, 8.5) for each in texts])


def _label(text: str) -> str:
    # A name that begins with an underscore would be left out of the legend.
    return "\u200b" + fitted(text, _LABEL_UP_TO, 8.5)


def _draw_line(ax: Any, line: Line, log: str) -> None:
    color, dash = PALETTE[line.color % len(PALETTE)], _DASHES[(line.dash + line.color // len(PALETTE)) % len(_DASHES)]
    x, y = thinned(line.x, line.y, _PIXELS, by_powers="x" in log)
    if "y" in log:
        y = library("numpy").where(y > 0, y, float("nan"))
    many = len(x) > _MARKED_UP_TO
    alone = len(x) == 1  # A line of one point can't be seen.
    look: dict[str, Any] = {"color": color, "linestyle": dash, "label": _label(line.label)}
    if line.style == "points":
        ax.plot(x, y, **{**look, "linestyle": "none"}, marker="o", markersize=2.2 if many else 4, markeredgewidth=0)
        return
    if (line.marked and not many) or alone:
        look |= {"marker": "o", "markersize": 3.6, "markeredgewidth": 0}
    if many:
        look["linewidth"] = 1.2
    ax.plot(x, y, drawstyle="steps-post" if line.style == "steps" else "default", **look)
    if line.low is not None:
        ax.fill_between(line.x, line.low, line.high, color=color, alpha=0.16, linewidth=0)


def _draw_cells(figure: Any, ax: Any, cells: Cells) -> None:
    numpy = library("numpy")
    values = numpy.array(cells.values, dtype=float)
    picture = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis", interpolation="nearest")
    ax.grid(visible=False)
    ax.set_xticks(range(len(cells.columns)), list(cells.columns))
    ax.set_yticks(range(len(cells.rows)), list(cells.rows))
    ax.set_ylabel(cells.row_title)
    bar = figure.colorbar(picture, ax=ax, pad=0.015, fraction=0.045)
    bar.outline.set_visible(False)
    bar.set_label(cells.value_title)
    if values.size > _NUMBERED_UP_TO:
        return
    finite = values[numpy.isfinite(values)]
    middle = (finite.min() + finite.max()) / 2 if finite.size else 0.0
    for (row, column), value in numpy.ndenumerate(values):
        if numpy.isfinite(value):
            ink = "white" if value < middle else INK
            ax.text(column, row, f"{value:.3g}", ha="center", va="center", size=8, color=ink)


def thinned(x: Numbers, y: Numbers, columns: int, *, by_powers: bool = False) -> tuple[Any, Any]:
    """Leave out points that can't be seen if there are so many columns of pixels; all that remain are points of it.

    `by_powers`: the columns are those of a logarithmic axis, which begins with the first number above 0.
    """
    numpy = library("numpy")
    x, y = numpy.asarray(x, dtype=float), numpy.asarray(y, dtype=float)
    if by_powers:
        x, y = x[x > 0], y[x > 0]
    if len(x) <= 4 * columns:
        return x, y
    edges = (numpy.geomspace if by_powers else numpy.linspace)(x[0], x[-1], columns, endpoint=False)
    starts = numpy.unique(numpy.searchsorted(x, edges))
    starts = starts[starts < len(x)]
    ends = numpy.append(starts[1:], len(x)) - 1
    kept = [starts, ends]
    counts = ends - starts + 1
    for extreme in (numpy.fmin, numpy.fmax):
        found = numpy.flatnonzero(y == numpy.repeat(extreme.reduceat(y, starts), counts))
        if len(found):
            places = numpy.searchsorted(found, starts)
            kept.append(found[places[places < len(found)]])
    chosen = numpy.unique(numpy.concatenate(kept))
    return x[chosen], y[chosen]


def histogram(samples: Sequence[Numbers], bins: int | None = None) -> list[tuple[Any, Any]]:
    """Count samples between edges that all of them share: as many as there are good reasons for, unless it is said."""
    numpy = library("numpy")
    arrays = [numpy.asarray(each, dtype=float) for each in samples]
    finite = [each[numpy.isfinite(each)] for each in arrays]
    everything = numpy.concatenate(finite) if finite else numpy.array([])
    if not everything.size:
        raise UsageError("there are no numbers to count")
    edges = _edges(numpy, everything, bins)
    return [(edges, numpy.histogram(each, edges)[0]) for each in finite]


def _edges(numpy: Any, values: Any, bins: int | None) -> Any:
    low, high = float(values.min()), float(values.max())
    whole = bool((values == numpy.rint(values)).all())
    if bins is None and whole and high - low <= 60:
        return numpy.arange(low - 0.5, high + 1.0, 1.0)  # A bar for each number.
    if low == high:
        return numpy.array([low - 0.5, high + 0.5])
    count = bins or min(100, max(5, len(numpy.histogram_bin_edges(values, "auto")) - 1))
    return numpy.linspace(low, high, count + 1)


def is_whole(values: Numbers) -> bool:
    """Whether values are whole numbers or truth values throughout: those hold until the next one."""
    return {*map(type, values)} <= {int, bool}
