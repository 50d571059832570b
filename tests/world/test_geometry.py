"""Poses turn and compose as geometry says, shapes weigh what textbooks and MuJoCo say, scripts lead along waypoints."""

from __future__ import annotations

from itertools import pairwise
from math import cos, nan, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import ConfigurationError
from worldline.model.time import MS
from worldline.world.description import ScriptedMotion, Waypoint
from worldline.world.engines.drives import pose_at
from worldline.world.pose import ORIGIN, ZERO, Pose, Vector
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

angles = st.floats(-pi, pi)
lengths = st.floats(-100, 100)
poses = st.builds(Pose.from_rpy, st.tuples(lengths, lengths, lengths), angles, angles, angles)


def near(point: Vector) -> object:
    return pytest.approx(point, abs=1e-9)


@pytest.mark.parametrize(
    ("turn", "turned"),
    [
        ((pi / 2, 0, 0), (0, 0, 1)),
        ((0, 0, pi / 2), (-1, 0, 0)),
        ((0, pi / 2, 0), (0, 1, 0)),
        ((pi / 2, 0, pi / 2), (0, 0, 1)),  # Roll comes first: yaw then leaves z as it is.
        ((0, 0, 0.3), (-sin(0.3), cos(0.3), 0)),
    ],
)
def test_angles_turn_y(turn: Vector, turned: Vector) -> None:
    assert Pose.from_rpy(ZERO, *turn).rotate((0, 1, 0)) == near(turned)


@given(poses, poses, st.tuples(lengths, lengths, lengths))
def test_a_composed_pose_places_like_one_after_the_other(outer: Pose, inner: Pose, point: Vector) -> None:
    assert outer.compose(inner).place(point) == near(outer.place(inner.place(point)))


@given(poses, st.tuples(lengths, lengths, lengths))
def test_an_inverse_takes_points_back(pose: Pose, point: Vector) -> None:
    assert pose.inverse().place(pose.place(point)) == near(point)


def test_quaternions_of_any_length_are_taken() -> None:
    assert Pose.from_quaternion(ZERO, (0, 0, 0, 5)).quaternion == (0, 0, 0, 1)


@pytest.mark.parametrize("bad", [(0, 0, 0, 0), (nan, 0, 0, 1), (1e300, 1e300, 0, 0)])
def test_other_quaternions_are_not(bad: tuple[float, float, float, float]) -> None:
    with pytest.raises(ConfigurationError, match="quaternion"):
        Pose.from_quaternion(ZERO, bad)


def test_poses_are_finite() -> None:
    with pytest.raises(ConfigurationError, match="finite"):
        Pose((nan, 0, 0))
    with pytest.raises(ConfigurationError, match="finite"):
        Pose.from_rpy(ZERO, 0, nan, 0)
    with pytest.raises(ConfigurationError, match="length 1"):
        Pose(ZERO, (2, 0, 0, 0))


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


TIMES = (5, 6, 40, 41, 90)
POINTS = tuple(Waypoint(time=time * MS, pose=Pose((float(number**2), 0.0, 0.0))) for number, time in enumerate(TIMES))


@pytest.mark.parametrize("loop", [False, True])
def test_a_scripted_model_is_between_the_waypoints_before_and_after(loop: bool) -> None:
    for ms in range(300):
        time = ms * MS
        if loop and time > POINTS[-1].time:
            time = POINTS[0].time + (time - POINTS[0].time) % (POINTS[-1].time - POINTS[0].time)
        time = min(max(time, POINTS[0].time), POINTS[-1].time)
        before, after = next((a, b) for a, b in pairwise(POINTS) if a.time <= time <= b.time)
        part = (time - before.time) / (after.time - before.time)
        expected = before.pose.position[0] + part * (after.pose.position[0] - before.pose.position[0])
        assert pose_at(ScriptedMotion(waypoints=POINTS, loop=loop), ms * MS).position[0] == pytest.approx(expected)


class _CountedPoints(list[Waypoint]):
    """Counts who looks at its elements."""

    looked = 0

    def __getitem__(self, number):  # type: ignore[no-untyped-def]
        self.looked += 1
        return super().__getitem__(number)

    def __iter__(self):  # type: ignore[no-untyped-def]
        for number in range(len(self)):
            yield self[number]


def test_long_scripts_are_not_searched_from_the_start() -> None:
    points = _CountedPoints(Waypoint(time=number * MS, pose=Pose((float(number), 0.0, 0.0))) for number in range(4096))
    motion = ScriptedMotion(waypoints=points)  # type: ignore[arg-type]
    points.looked = 0
    assert pose_at(motion, 4000 * MS + MS // 2).position[0] == 4000.5
    assert points.looked < 20
