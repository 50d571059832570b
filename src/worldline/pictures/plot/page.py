"""The page of a chart: one file of HTML with its looks, data and script, and nothing from elsewhere.

Lines are drawn by `page.js`, which lets its reader zoom, choose lines and read values; without scripts, for bars and
cells and on logarithmic axes, the page has the picture as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from worldline.pictures.player import POLICY, script_data
from worldline.pictures.plot.chart import Cells, Chart, Line, Panel
from worldline.pictures.plot.figure import svg_of, thinned
from worldline.pictures.svg import escaped

_PIXELS = 5000  # Columns that lines are thinned to: enough to zoom in some times.


def page_of(chart: Chart) -> str:
    """Write the page of a chart."""
    here = Path(__file__).parent
    picture = svg_of(chart).decode()
    picture = picture[picture.index("<svg") :]
    shown = [_content(panel) for panel in chart.panels]
    style, script = ((here / f"page.{ending}").read_text(encoding="utf-8") for ending in ("css", "js"))
    if not chart.log and all(each is not None for each in shown):
        data = script_data({"x": chart.x_title, "ticks": list(chart.ticks), "panels": shown})
        body = f"""<main id="plots"></main>
<footer class="note">Drag to zoom, double-click to go back, ← → to move; click a name to hide its line.</footer>
<noscript><figure>{picture}</figure></noscript>
<script id="data" type="application/json">{data}</script>
<script>
{script}</script>"""
    else:
        body = f"<main><figure>{picture}</figure></main>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(chart.title)}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{escaped(chart.title)}</h1><span class="note">{escaped(chart.subtitle)}</span></header>
{body}
</body>
</html>
"""


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
