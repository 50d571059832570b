"""Curves over time in panels, one below the other, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from worldline.pictures.sheet import ticks_between
from worldline.pictures.svg import ALARM, FAINT, INK, SOFT, cross, document, element, path, text_at

_WIDTH, _LEFT, _RIGHT, _TOP = 960.0, 64.0, 190.0, 96.0
_PANEL, _GAP, _BOTTOM = 190.0, 62.0, 52.0
_END = _WIDTH - _RIGHT  # Where the curves end, and what they are begins.
_ROW = 19.0
_APART = 2.5  # Pixels between points of a curve: more can't be seen.


class Curve(NamedTuple):
    """Values over seconds. One that leaves its panel ends there, with a cross."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]
    dashes: str | None = None


class Panel(NamedTuple):
    """Curves on one scale."""

    title: str
    low: float
    high: float
    curves: Sequence[Curve]


def chart(title: str, subtitle: str, seconds: float, unit: str, panels: Sequence[Panel]) -> str:
    """Draw panels that share one axis of time."""
    height = _TOP + len(panels) * (_PANEL + _GAP) - _GAP + _BOTTOM
    parts = [
        text_at(_LEFT, 36, title, size=19),
        text_at(_LEFT, 58, subtitle, size=13, fill=SOFT),
    ]
    for place, panel in enumerate(panels):
        parts += _panel(panel, _TOP + place * (_PANEL + _GAP), seconds, unit)
    parts.append(text_at((_LEFT + _END) / 2, height - 14, "time (s)", size=12, fill=SOFT, text_anchor="middle"))
    return document(_WIDTH, height, parts, kind="chart", title=title)


def _panel(panel: Panel, top: float, seconds: float, unit: str) -> Iterator[str]:
    bottom = top + _PANEL

    def x(time: float) -> float:
        return _LEFT + time / seconds * (_END - _LEFT)

    def y(value: float) -> float:
        return bottom - (value - panel.low) / (panel.high - panel.low) * _PANEL

    yield text_at(_LEFT, top - 10, panel.title, size=13)
    across, up = ticks_between(0.0, seconds, 10), ticks_between(panel.low, panel.high, 6)
    for value, label in zip(across.values, across.labels, strict=True):
        yield path(((x(value), top), (x(value), bottom)), stroke=FAINT, stroke_width=0.7)
        yield text_at(x(value), bottom + 17, label, size=11, fill=SOFT, text_anchor="middle")
    for value, label in zip(up.values, up.labels, strict=True):
        color = SOFT if value == 0 else FAINT
        yield path(((_LEFT, y(value)), (_END, y(value))), stroke=color, stroke_width=0.7)
        yield text_at(_LEFT - 8, y(value) + 4, f"{label}{unit}", size=11, fill=SOFT, text_anchor="end")
    for place, curve in enumerate(panel.curves):
        inside = list(takewhile(lambda point: panel.low <= point[1] <= panel.high, curve.points))
        look = {"stroke": curve.color, "stroke_width": 1.8, "stroke_dasharray": curve.dashes}
        yield path(_thinned([(x(time), y(value)) for time, value in inside]), fill="none", **look)
        row = top + 12 + _ROW * place
        yield path(((_END + 14, row - 4), (_END + 38, row - 4)), **look)
        if len(inside) < len(curve.points):
            time, value = inside[-1]
            yield element("path", d=cross(x(time), y(value), 4), stroke=curve.color, stroke_width=1.8)
        color = ALARM if curve.color == ALARM else INK
        yield text_at(_END + 46, row, curve.name, size=12, fill=color, class_="curve")


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out points that are closer to their predecessors than anybody can see."""
    kept = points[:1]
    for point in points[1:]:
        if abs(point[0] - kept[-1][0]) + abs(point[1] - kept[-1][1]) >= _APART:
            kept.append(point)
    return kept
