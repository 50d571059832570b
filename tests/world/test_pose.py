"""Poses turn, compose and invert as geometry says."""

from __future__ import annotations

from math import cos, nan, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import ConfigurationError
from worldline.world.pose import ZERO, Pose, Vector

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
