"""Draws what was learned as SVG: needs no library, and gives the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 84, 56
TOP_RETURN = 500
INK, PALE, GRID = "#1f2933", "#616e7c", "#e4e7eb"


@dataclass(frozen=True)
class Curve:
    """A median over episodes, and the middle half around it."""

    label: str
    color: str
    episodes: Sequence[int]
    low: Sequence[float]
    median: Sequence[float]
    high: Sequence[float]


def picture(curves: Sequence[Curve], learners: int) -> str:
    """Return the picture as text."""
    return "\n".join((*_parts(curves, learners), "</svg>", ""))


def _parts(curves: Sequence[Curve], learners: int) -> Iterator[str]:
    last = curves[0].episodes[-1]

    def x(episodes: float) -> float:
        return LEFT + episodes / last * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / TOP_RETURN * (HEIGHT - TOP - BOTTOM)

    def points(episodes: Sequence[int], values: Sequence[float]) -> list[str]:
        return [f"{x(each):.1f} {y(value):.1f}" for each, value in zip(episodes, values, strict=True)]

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    yield _text(LEFT, 32, "Learning to balance a pole over a bad link", INK, 18)
    about = f"Return of test episodes: median of {learners} learners, and the middle half of them"
    yield _text(LEFT, 54, about, PALE, 13)
    for value in range(0, TOP_RETURN + 1, 100):
        yield f'<path d="M{LEFT} {y(value):.1f}L{WIDTH - RIGHT} {y(value):.1f}" stroke="{GRID}"/>'
        yield _text(LEFT - 8, y(value) + 4, str(value), PALE, 12, "end")
    for episodes in curves[0].episodes[:: max(1, len(curves[0].episodes) // 8)]:
        yield _text(x(episodes), HEIGHT - BOTTOM + 20, str(episodes), PALE, 12, "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "episodes learned from", PALE, 12, "middle")
    for place, curve in enumerate(curves):
        around = [*points(curve.episodes, curve.low), *reversed(points(curve.episodes, curve.high))]
        yield f'<path d="M{"L".join(around)}z" fill="{curve.color}" fill-opacity="0.15"/>'
        line = "L".join(points(curve.episodes, curve.median))
        yield f'<path d="M{line}" fill="none" stroke="{curve.color}" stroke-width="2"/>'
        yield _text(LEFT + 250 * place, TOP - 12, curve.label, curve.color, 13)


def _text(x: float, y: float, text: str, color: str, size: int, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}" text-anchor="{anchor}">{text}</text>'
