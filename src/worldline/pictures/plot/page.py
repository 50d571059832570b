"""The page of a chart: lines can be zoomed, chosen and read; bars, cells and logarithmic axes are a picture."""

from __future__ import annotations

from typing import Any

from worldline.pictures.page import Page, written_page
from worldline.pictures.plot.chart import Cells, Chart, Line, Panel
from worldline.pictures.plot.figure import svg_of, thinned

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
