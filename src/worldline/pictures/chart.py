"""Draws curves over time as SVG: panels one above the other on one time axis, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from worldline.pictures.svg import INK, document, path, text_at

WIDTH, LEFT, RIGHT, TOP = 960, 64, 150, 92
PANEL, GAP, ROW = 140, 40, 24
PALE, GRID = "#616e7c", "#e4e7eb"
END = WIDTH - RIGHT  # Where the curves end and their names begin.


@dataclass(frozen=True)
class Series:
    """A curve; with `steps`, each value holds until the next."""

    label: str
    color: str
    points: Sequence[tuple[float, float]]
    steps: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves on one scale, from the first of its ticks to the last; what lies beyond is drawn at its edge."""

    title: str
    ticks: Sequence[float]
    series: Sequence[Series]


@dataclass(frozen=True)
class Marks:
    """Moments, drawn as a row of strokes below the panels."""

    label: str
    color: str
    moments: Sequence[float]


def chart(title: str, subtitle: str, seconds: Sequence[int], panels: Sequence[Panel], marks: Sequence[Marks]) -> str:
    """Return the picture as text; `seconds` are the ticks of the time that all panels share."""
    rows = TOP + len(panels) * (PANEL + GAP)
    axis = rows + len(marks) * ROW
    height = axis + 56

    def x(time: float) -> float:
        return LEFT + (time - seconds[0]) / (seconds[-1] - seconds[0]) * (END - LEFT)

    parts = [_text(LEFT, 32, title, size=19), _text(LEFT, 54, subtitle, PALE, size=13)]
    for second in seconds:
        parts += [
            _line(x(second), TOP, x(second), axis, GRID),
            _text(x(second), axis + 20, str(second), PALE, anchor="middle"),
        ]
    parts.append(_text((LEFT + END) / 2, axis + 42, "time (s)", PALE, anchor="middle"))
    for place, panel in enumerate(panels):
        parts += _panel(panel, TOP + place * (PANEL + GAP), x)
    for place, row in enumerate(marks):
        middle = rows + (place + 0.5) * ROW
        parts += [_line(x(moment), middle - 7, x(moment), middle + 7, row.color, 1.5) for moment in row.moments]
        parts.append(_text(END + 14, middle + 4, row.label, row.color))
    return document(WIDTH, height, parts, kind="chart", title=title)


def _panel(panel: Panel, top: float, x: Callable[[float], float]) -> list[str]:
    low, high = panel.ticks[0], panel.ticks[-1]

    def y(value: float) -> float:
        return top + PANEL - (max(low, min(high, value)) - low) / (high - low) * PANEL

    parts = [_text(LEFT, top - 8, panel.title)]
    for tick in panel.ticks:
        parts += [
            _line(LEFT, y(tick), END, y(tick), PALE if tick == 0 else GRID),
            _text(LEFT - 8, y(tick) + 4, f"{tick:g}", PALE, anchor="end"),
        ]
    for place, series in enumerate(panel.series):
        corners: list[tuple[float, float]] = []
        for time, value in series.points:
            if series.steps and corners:
                corners.append((x(time), corners[-1][1]))
            corners.append((x(time), y(value)))
        height = top + 14 + 20 * place
        if corners:
            parts.append(path(corners, fill="none", stroke=series.color, stroke_width=1.8))
        parts += [
            _line(END + 14, height, END + 34, height, series.color, 2.5),
            _text(END + 42, height + 4, series.label),
        ]
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1) -> str:
    return path(((x1, y1), (x2, y2)), stroke=color, stroke_width=width)


def _text(x: float, y: float, text: str, color: str = INK, *, size: int = 12, anchor: str | None = None) -> str:
    return text_at(x, y, text, size=size, fill=color, text_anchor=anchor)
