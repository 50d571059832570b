"""What a plot shows, before it is drawn: panels with lines, bars or cells. No library is needed for that.

A plot has a title and panels, one above the other. Panels of lines share one horizontal axis. Values are plain lists of
numbers, or arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.reading import as_time
from worldline.model.time import FOREVER

Style = Literal["line", "steps", "points"]
Numbers = Any
"""A sequence of numbers, or an array of numpy."""

LINES_MAX = 32
"""More lines than that in one panel can't be told apart."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Values `y` over `x`, both as long; `low` and `high` are the edges of a band around it.

    Lines of the same `color` and `dash` look alike: numbers into the palette, and into the list of dashes.
    """

    label: str
    x: Numbers
    y: Numbers
    style: Style = "line"
    color: int = 0
    dash: int = 0
    low: Numbers = None
    high: Numbers = None
    marked: bool = False

    @classmethod
    def through(cls, points: Iterable[tuple[float, float]], label: str, style: Style = "line", color: int = 0) -> Line:
        """Return the line through some points."""
        pairs = list(points)
        return cls(label=label, x=[x for x, _ in pairs], y=[y for _, y in pairs], style=style, color=color)


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A histogram: `counts` between each two `edges`."""

    label: str
    edges: Numbers
    counts: Numbers
    color: int = 0


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A heat map: a value for each row and column, NaN where there is none; the first row is at the bottom."""

    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    row_title: str
    value_title: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What shares a vertical axis; `levels` are the texts that values are, which are their places among them."""

    title: str
    content: Sequence[Line] | Sequence[Bars] | Cells
    y_title: str = ""
    levels: Sequence[str] = ()
    limits: tuple[float, float] | None = None  # What lies beyond isn't shown.
    is_whole: bool = False  # All values are whole numbers.


def marks(moments: Mapping[str, Sequence[float]], color: int = 0) -> Panel:
    """Return a panel with a row of points for each name: moments at which something happened."""
    lines = [
        Line(label=name, x=times, y=[float(place)] * len(times), style="points", color=color + place)
        for place, (name, times) in enumerate(moments.items())
    ]
    return Panel(title="", content=lines, levels=list(moments))


@dataclass(frozen=True, kw_only=True)
class Chart:
    """All that is drawn. With `ticks`, the horizontal axis has these texts, at 0, 1, 2...

    `log` names the logarithmic axes: "x", "y", "xy"; numbers up to 0 aren't shown on these.
    """

    title: str
    subtitle: str = ""
    x_title: str = ""
    panels: Sequence[Panel] = field(default_factory=tuple)
    ticks: Sequence[str] = ()
    x_whole: bool = False  # There is nothing between whole numbers.
    log: str = ""

    def alone(self) -> Chart:
        """Leave out the title of a panel that is the only one: it would say what the chart's says."""
        if len(self.panels) != 1:
            return self
        return replace(self, panels=[replace(self.panels[0], title="")])


# What is wanted of a plot.


class PlotKind(StrEnum):
    """How values are drawn."""

    LINE = "line"
    STEPS = "steps"
    POINTS = "points"
    HISTOGRAM = "histogram"
    HEAT = "heat"


class LogAxes(StrEnum):
    """Which axes are logarithmic."""

    X = "x"
    Y = "y"
    XY = "xy"


class PlotOptions(Struct, frozen=True, kw_only=True):
    """What is plotted, and how. `topics` are names of fields, or of a sweep's measures; `senders` tell them.

    Of a sweep, `x` is the parameter across, and `by` the one that lines or rows are for.
    """

    topics: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    start: str | None = None
    until: str | None = None
    kind: PlotKind | None = None
    bins: int | None = None
    log: LogAxes | None = None
    x: str | None = None
    by: str | None = None
    title: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """From when to when values count."""
        start = 0 if self.start is None else as_time(self.start, "the start")
        end = FOREVER if self.until is None else as_time(self.until, "the end")
        if end <= start:
            raise ConfigurationError(f"nothing lies between {shown(self.start)} and {shown(self.until)}")
        return start, end
