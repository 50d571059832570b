"""Shapes: what collides, and what is drawn. Each is centered on the origin of its own frame, along z if it is round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, pi

from worldline.model.errors import ConfigurationError, shown
from worldline.world.pose import ORIGIN, Pose, Vector, length

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


def check_finite(what: str, *numbers: float) -> None:
    if not all(map(isfinite, numbers)):
        raise ConfigurationError(f"{what} needs finite numbers, not {shown(numbers)}")


def check_not_negative(what: str, *numbers: float) -> None:
    for number in numbers:
        if not (isfinite(number) and number >= 0):
            raise ConfigurationError(f"{what} must be at least 0 and finite, not {shown(number)}")


# Mass and moments of inertia of a link: given, or worked out from shapes and their densities.

Moments = tuple[float, float, float, float, float, float]
"""Ixx, Iyy, Izz, Ixy, Ixz, Iyz."""

WATER = 1000.0
"""The density in kg/m³ of whatever has none of its own, as SDF says."""

_TOLERANCE = 1e-6  # Relative. Files give moments with few digits, which may break a rule by the last of them.


@dataclass(frozen=True, slots=True)
class Inertia:
    """`pose` is the frame of the moments, relative to the link: its position is the center of mass."""

    mass: float = 1.0
    pose: Pose = ORIGIN
    moments: Moments = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not (isfinite(self.mass) and self.mass > 0):
            raise ConfigurationError(f"a mass must be above 0 and finite, not {shown(self.mass)}")
        if not all(map(isfinite, self.moments)) or not _is_possible(self.moments):
            raise ConfigurationError(
                f"no body has the moments of inertia {shown(self.moments)}",
                advice="they must be positive, and none of the three principal ones larger than the other two together",
            )


def shape_inertia(shape: Shape, density: float) -> Inertia:
    """Return the inertia of a solid shape, in its own frame."""
    if not (isfinite(density) and density > 0):
        raise ConfigurationError(f"a density must be above 0 and finite, not {shown(density)}")
    match shape:
        case BoxShape((x, y, z)):
            mass = density * x * y * z
            principal = (mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y))
        case SphereShape(r):
            mass = density * 4 / 3 * pi * r * r * r
            principal = (2 / 5 * mass * r * r,) * 3
        case EllipsoidShape((a, b, c)):
            mass = density * 4 / 3 * pi * a * b * c
            principal = (mass / 5 * (b * b + c * c), mass / 5 * (a * a + c * c), mass / 5 * (a * a + b * b))
        case CylinderShape(r, h):
            mass = density * pi * r * r * h
            across = mass / 12 * (3 * r * r + h * h)
            principal = (across, across, mass / 2 * r * r)
        case CapsuleShape(r, h):
            tube, caps = density * pi * r * r * h, density * 4 / 3 * pi * r * r * r
            mass = tube + caps
            # Each half of a sphere has its center of mass 3/8 r from where it is cut; Steiner's rule, twice.
            ends = caps * (2 / 5 * r * r + h * h / 4 + 3 / 8 * h * r)
            across = tube * (h * h / 12 + r * r / 4) + ends
            principal = (across, across, tube * r * r / 2 + caps * 2 / 5 * r * r)
        case PlaneShape():
            raise ConfigurationError("a plane has no mass", advice="give its link an inertial of its own")
    return Inertia(mass, ORIGIN, (*principal, 0.0, 0.0, 0.0))


def cone_inertia(radius: float, height: float, density: float) -> Inertia:
    """Return the inertia of a solid cone that points up, in a frame in the middle of its height."""
    check_size("cone", "radius", radius)
    check_size("cone", "length", height)
    cylinder = shape_inertia(CylinderShape(radius, height), density)
    mass = cylinder.mass / 3
    across = mass * (3 / 20 * radius * radius + 3 / 80 * height * height)
    moments = (across, across, 3 / 10 * mass * radius * radius, 0.0, 0.0, 0.0)
    return Inertia(mass, Pose((0.0, 0.0, -height / 4)), moments)


def combined(parts: Sequence[tuple[Pose, Inertia]]) -> Inertia:
    """Return the inertia of several bodies that are fixed to one link; each comes with the pose of its frame."""
    mass = 0.0
    weighted = [0.0, 0.0, 0.0]
    placed = [(each.mass, pose.compose(each.pose), each.moments) for pose, each in parts]
    for part_mass, pose, _ in placed:
        mass += part_mass
        for axis in range(3):
            weighted[axis] += part_mass * pose.position[axis]
    if not (isfinite(mass) and mass > 0):
        raise ConfigurationError(f"a mass must be above 0 and finite, not {shown(mass)}")
    center = (weighted[0] / mass, weighted[1] / mass, weighted[2] / mass)
    total = [0.0] * 6
    for part_mass, pose, moments in placed:
        x, y, z = (pose.position[axis] - center[axis] for axis in range(3))
        steiner = (y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z)
        for index, moment in enumerate(_turned(pose, moments)):
            total[index] += moment + part_mass * steiner[index]
    return Inertia(mass, Pose(center), (total[0], total[1], total[2], total[3], total[4], total[5]))


def scaled(inertia: Inertia, mass: float) -> Inertia:
    """Return the inertia of the same body made of a stuff that gives it this mass."""
    factor = mass / inertia.mass
    a, b, c, d, e, f = (moment * factor for moment in inertia.moments)
    return Inertia(mass, inertia.pose, (a, b, c, d, e, f))


def _turned(pose: Pose, moments: Moments) -> Moments:
    """Return the moments as seen from outside of the pose's frame: R I Rᵀ."""
    xx, yy, zz, xy, xz, yz = moments
    # Columns of R I: the tensor's columns, turned. Then the same again on the rows.
    columns = [pose.rotate((xx, xy, xz)), pose.rotate((xy, yy, yz)), pose.rotate((xz, yz, zz))]
    rows: list[Vector] = [pose.rotate((columns[0][row], columns[1][row], columns[2][row])) for row in range(3)]
    return (rows[0][0], rows[1][1], rows[2][2], rows[0][1], rows[0][2], rows[1][2])


def _is_possible(moments: Moments) -> bool:
    """Whether some body has these moments: the tensor is positive, and so is half its trace minus the tensor.

    The second is the triangle inequality of the principal moments, without a need to work those out.
    """
    xx, yy, zz, xy, xz, yz = moments
    trace = xx + yy + zz
    slack = _TOLERANCE * trace
    half = trace / 2 + slack
    return trace > 0 and _is_positive(moments) and _is_positive((half - xx, half - yy, half - zz, -xy, -xz, -yz))


def _is_positive(moments: Moments) -> bool:
    xx, yy, zz, xy, xz, yz = moments
    minor = xx * yy - xy * xy
    determinant = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return xx > 0 and minor > 0 and determinant > 0


UNIT_INERTIA = Inertia()
"""What a link has that says nothing about it, as SDF says."""
