"""Inertias of shapes are those of the textbooks, and those of MuJoCo."""

from __future__ import annotations

from math import pi

import pytest

from worldline.model.errors import ConfigurationError
from worldline.world.pose import ORIGIN, Pose
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    Inertia,
    Shape,
    SphereShape,
    combined,
    scaled,
    shape_inertia,
)

SHAPES: list[Shape] = [
    BoxShape((0.2, 0.5, 1.5)),
    SphereShape(0.3),
    CylinderShape(0.2, 1.1),
    CapsuleShape(0.25, 0.8),
    EllipsoidShape((0.2, 0.4, 0.9)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_shapes_weigh_what_mujoco_says(shape: Shape) -> None:
    mujoco = pytest.importorskip("mujoco")
    kinds = {
        BoxShape: lambda s: ("box", [part / 2 for part in s.size]),
        SphereShape: lambda s: ("sphere", [s.radius]),
        CylinderShape: lambda s: ("cylinder", [s.radius, s.length / 2]),
        CapsuleShape: lambda s: ("capsule", [s.radius, s.length / 2]),
        EllipsoidShape: lambda s: ("ellipsoid", list(s.radii)),
    }
    kind, size = kinds[type(shape)](shape)
    geom = f'<geom type="{kind}" size="{" ".join(map(str, size))}" density="700"/>'
    compiled = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>"
    )
    found = shape_inertia(shape, 700)
    assert found.mass == pytest.approx(compiled.body_mass[1])
    assert sorted(found.moments[:3]) == pytest.approx(sorted(compiled.body_inertia[1]))


def test_two_halves_of_a_box_are_a_box() -> None:
    half = shape_inertia(BoxShape((1, 2, 3)), 500)
    whole = combined([(Pose((0.5, 0, 7)), half), (Pose((-0.5, 0, 7)), half)])
    expected = shape_inertia(BoxShape((2, 2, 3)), 500)
    assert whole.pose.position == (0, 0, 7)
    assert whole.mass == expected.mass
    assert whole.moments == pytest.approx(expected.moments)


def test_a_box_turned_by_half_of_that_has_products() -> None:
    box = shape_inertia(BoxShape((1, 2, 3)), 500)
    turned = combined([(Pose.from_rpy((0, 0, 0), 0, 0, pi / 4), box)])
    xx, yy, *_ = box.moments
    assert turned.moments[3] == pytest.approx((xx - yy) / 2)


def test_scaling_keeps_the_shape() -> None:
    box = shape_inertia(BoxShape((1, 2, 3)), 500)
    assert scaled(box, 12).mass == 12
    assert scaled(box, 12).moments[:3] == pytest.approx((13, 10, 5))


@pytest.mark.parametrize(
    "moments",
    [(1, 1, 3, 0, 0, 0), (-1, 1, 1, 0, 0, 0), (0, 0, 0, 0, 0, 0), (1, 1, 1, 2, 0, 0), (float("inf"), 1, 1, 0, 0, 0)],
)
def test_impossible_moments_are_refused(moments: tuple[float, float, float, float, float, float]) -> None:
    with pytest.raises(ConfigurationError, match="moments"):
        Inertia(1, ORIGIN, moments)


@pytest.mark.parametrize("moments", [(1, 1, 2, 0, 0, 0), (0.1261, 0.4165, 0.481, 0, 0, 0), (2, 2, 2, 0.5, 0, -0.5)])
def test_possible_ones_are_not(moments: tuple[float, float, float, float, float, float]) -> None:
    Inertia(1, ORIGIN, moments)


@pytest.mark.parametrize("mass", [0, -1, float("nan"), float("inf")])
def test_masses_are_above_zero(mass: float) -> None:
    with pytest.raises(ConfigurationError, match="mass"):
        Inertia(mass)
