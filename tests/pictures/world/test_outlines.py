"""Outlines: what shapes look like from above."""

from __future__ import annotations

from math import pi

import pytest

from tests.world.stage import shaped
from worldline.pictures.world.outlines import Round, model_outlines
from worldline.world.pose import ORIGIN, Pose
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)

LYING = Pose.from_rpy((0.0, 0.0, 0.0), pi / 2, 0.0, 0.0)


def seen(shape: Shape, at: Pose = ORIGIN) -> object:
    (outline,) = model_outlines(shaped("m", shape, (0.0, 0.0, 0.0)), at)
    return outline


def reach(shape: Shape, at: Pose) -> tuple[float, float]:
    """Return how wide and high the polygon is."""
    outline = seen(shape, at)
    assert isinstance(outline, tuple)
    xs, ys = zip(*outline, strict=True)
    return max(xs) - min(xs), max(ys) - min(ys)


@pytest.mark.parametrize("shape", [SphereShape(0.5), CylinderShape(0.5, 2.0), CapsuleShape(0.5, 2.0)])
def test_what_is_round(shape: Shape) -> None:
    assert seen(shape, Pose((1.0, 2.0, 3.0))) == Round((1.0, 2.0), 0.5)


def test_a_box_is_a_rectangle() -> None:
    assert seen(BoxShape((2.0, 4.0, 6.0))) == ((-1.0, -2.0), (1.0, -2.0), (1.0, 2.0), (-1.0, 2.0))
    assert reach(BoxShape((2.0, 4.0, 6.0)), LYING) == pytest.approx((2.0, 6.0))


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (CylinderShape(0.5, 3.0), (1.0, 3.0)),
        (CapsuleShape(0.5, 3.0), (1.0, 4.0)),
        (EllipsoidShape((1.0, 2.0, 3.0)), (2.0, 6.0)),
    ],
)
def test_what_lies(shape: Shape, size: tuple[float, float]) -> None:
    assert reach(shape, LYING) == pytest.approx(size)


def test_planes_look_like_nothing() -> None:
    assert model_outlines(shaped("m", PlaneShape(), (0, 0, 0), static=True), ORIGIN) == []
