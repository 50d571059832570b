"""Boundaries: planes that enclose a simulation, each with what happens to an agent that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite, nextafter
from typing import Any

from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.agent import current
from worldline.spacetime.geometry import Vector, product
from worldline.spacetime.space import Point, sign_of_interval

Action = str | Callable[[Any, "Boundary"], None]


class Boundary:
    """A plane in spacetime: inside is where normal · X + offset is positive.

    An agent whose trajectory reaches it executes the action there, once: "remove", "reflect", "wrap", "stop", or a
    function of the agent and the boundary. If that leaves it on its way out, it goes on outside. `period` is the
    vector from this side to the opposite one, for "wrap".
    """

    is_end = False
    """Whether it is the end of the run."""

    def __init__(
        self, normal: Point, offset: float, action: Action = "remove", *, name: str = "", period: Point | None = None
    ) -> None:
        self.normal = _as_vector(normal, "the normal")
        if not any(self.normal.coordinates()):
            raise ConfigurationError("the normal of a boundary is 0", advice="it says which way is inside")
        if isinstance(offset, bool) or not isinstance(offset, int | float) or not isfinite(offset):
            raise ConfigurationError(f"{shown(offset)} isn't the offset of a boundary", advice="use a number")
        self.offset = float(offset)
        self.period = None if period is None else _as_vector(period, "the period")
        if self.period is not None and len(self.period) != len(self.normal):
            raise ConfigurationError(f"the period {self.period} and the normal {self.normal} are of different spaces")
        self.name = name or f"{self.normal}·X + {self.offset:g} = 0"
        if isinstance(action, str):
            if action not in _ACTIONS:
                raise ConfigurationError(
                    f"{shown(action)} isn't what a boundary can do", advice=f"use {', '.join(_ACTIONS)} or a function"
                )
            self.action = _ACTIONS[action]
        elif callable(action):
            self.action = action
        else:
            raise ConfigurationError(f"{shown(action)} isn't a function", advice="it takes the agent and the boundary")
        if self.action is wrap and self.period is None:
            raise ConfigurationError(
                f"{self.name}: a boundary that wraps leads to the opposite one", advice="use box()"
            )
        square = product(self.normal, self.normal)[0]
        if self.action is reflect and square >= 0.0:
            raise ConfigurationError(f"{self.name}: only a wall in space can reflect", advice="its normal is spacelike")

    def height(self, point: Point) -> float:
        """Return normal · X + offset: how far inside a point is."""
        return self.normal.dot(point) + self.offset

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Boundary {self.name}>"


def end_of_time(n: int, until: float) -> Boundary:
    """Return the last moment of lab time, which takes all agents out of the run."""
    made = Boundary([-1.0] + [0.0] * (n - 1), until, name=f"the end, at {until:g}")
    made.is_end = True
    return made


def below(n: int, axis: int, limit: float, action: Action = "remove", **options: Any) -> Boundary:
    """Return the boundary that keeps a coordinate below a limit, in a space of n dimensions; 0 is lab time."""
    return _wall(n, axis, limit, 1.0, action, **options)


def above(n: int, axis: int, limit: float, action: Action = "remove", **options: Any) -> Boundary:
    """Return the boundary that keeps a coordinate above a limit."""
    return _wall(n, axis, limit, -1.0, action, **options)


def box(low: Sequence[float], high: Sequence[float], action: Action = "reflect") -> list[Boundary]:
    """Return the walls of a box at rest: two corners of it, without lab time."""
    if not isinstance(low, Sequence) or not isinstance(high, Sequence):
        raise ConfigurationError(
            f"{shown(low)} to {shown(high)} isn't a box", advice="give two corners: [0, 0], [1, 1]"
        )
    if len(low) != len(high) or not all(least < most for least, most in zip(low, high, strict=True)):
        raise ConfigurationError(
            f"{shown(low)} to {shown(high)} isn't a box", advice="give the least and most of each axis"
        )
    n = len(low) + 1
    walls = []
    for axis, (least, most) in enumerate(zip(low, high, strict=True), 1):
        across = [0.0] * n
        across[axis] = most - least
        walls.append(above(n, axis, least, action, period=across))
        walls.append(below(n, axis, most, action, period=[-each for each in across]))
    return walls


def _wall(n: int, axis: int, limit: float, side: float, action: Action, **options: Any) -> Boundary:
    if not 0 <= axis < n:
        raise ConfigurationError(f"there is no axis {axis} in a space of {n} dimensions")
    normal = [0.0] * n
    normal[axis] = side if axis else -side  # The product counts space negative.
    name = f"{'t' if axis == 0 else f'x{axis}'} {'<' if side > 0 else '>'} {limit:g}"
    return Boundary(normal, limit * side, action, **{"name": name, **options})


def _as_vector(given: Any, what: str) -> Vector:
    try:
        return given if isinstance(given, Vector) else Vector(given)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{what} of a boundary is {shown(given)}", advice="it's a vector: (-1, 0, 0, 0)"
        ) from None


def remove(_: object, __: Boundary) -> None:
    current().die()


def stop(_: object, __: Boundary) -> None:
    """Let an agent stay where it is, at rest in the lab."""
    agent = current()
    agent.velocity = agent.space.rest


def reflect(_: object, boundary: Boundary) -> None:
    """Turn an agent back as a mirror does, one that moves too: V − 2 (V·N) / (N·N) N."""
    agent = current()
    normal = boundary.normal
    share = 2.0 * agent.velocity.dot(normal) / normal.dot(normal)
    agent.velocity = agent.velocity - normal * share


def wrap(_: object, boundary: Boundary) -> None:
    """Take an agent to the opposite side, as late as light gets there: none is faster."""
    agent = current()
    assert boundary.period is not None  # Checked when it was made.
    here = agent.position
    there = list(here + boundary.period)
    there[0] = here[0] + (-boundary.period.dot(boundary.period)) ** 0.5
    while sign_of_interval(there, here) < 0:
        there[0] = nextafter(there[0], inf)
    agent.jump_to(there)


_ACTIONS: dict[str, Callable[[Any, Boundary], None]] = {
    "remove": remove,
    "reflect": reflect,
    "wrap": wrap,
    "stop": stop,
}


def check_boundaries(given: Any, n: int) -> list[Boundary]:
    """Take one boundary, or several; refuse those of another space."""
    if not isinstance(given, Boundary | Iterable):
        raise ConfigurationError(f"{shown(given)} isn't a boundary", advice="use Boundary, below, above or box")
    boundaries = [given] if isinstance(given, Boundary) else list(given)
    for each in boundaries:
        if not isinstance(each, Boundary):
            raise ConfigurationError(f"{shown(each)} isn't a boundary", advice="use Boundary, below, above or box")
        if len(each.normal) != n:
            raise ConfigurationError(f"{each}: its normal has {len(each.normal)} coordinates, and the space {n}")
    return boundaries
