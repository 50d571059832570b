"""Shapes: what collides, and what is drawn. Each is centered on the origin of its own frame, along z if it is round."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from worldline.model.errors import ConfigurationError, shown
from worldline.world.pose import Vector, length

SHAPE_SIZE_MAX = 1e9  # Meters. Beyond it, squares and volumes of shapes are no longer sensible floats.


@dataclass(frozen=True, slots=True)
class BoxShape:
    size: Vector
    """The lengths of its edges."""

    def __post_init__(self) -> None:
        check_size("box", "size", *self.size)


@dataclass(frozen=True, slots=True)
class SphereShape:
    radius: float

    def __post_init__(self) -> None:
        check_size("sphere", "radius", self.radius)


@dataclass(frozen=True, slots=True)
class CylinderShape:
    radius: float
    length: float

    def __post_init__(self) -> None:
        check_size("cylinder", "radius", self.radius)
        check_size("cylinder", "length", self.length)


@dataclass(frozen=True, slots=True)
class CapsuleShape:
    """A cylinder of this length with half a sphere on either end."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        check_size("capsule", "radius", self.radius)
        check_size("capsule", "length", self.length)


@dataclass(frozen=True, slots=True)
class EllipsoidShape:
    radii: Vector

    def __post_init__(self) -> None:
        check_size("ellipsoid", "radii", *self.radii)


@dataclass(frozen=True, slots=True)
class PlaneShape:
    """Everything below a plane through the origin is solid. `size` is only how much of it is drawn."""

    normal: Vector = (0.0, 0.0, 1.0)
    size: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        if not abs(length(self.normal) - 1) < 1e-6:
            raise ConfigurationError(f"a plane needs a normal of length 1, not {shown(self.normal)}")
        check_size("plane", "size", *self.size)


Shape = BoxShape | SphereShape | CylinderShape | CapsuleShape | EllipsoidShape | PlaneShape


def check_size(what: str, which: str, *numbers: float) -> None:
    for number in numbers:
        if not (isfinite(number) and 0 < number <= SHAPE_SIZE_MAX):
            raise ConfigurationError(f"the {which} of a {what} must be above 0 and finite, not {shown(number)}")
