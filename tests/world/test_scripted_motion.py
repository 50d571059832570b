"""Where a scripted model is, against a search through all of its waypoints."""

from __future__ import annotations

from itertools import pairwise

import pytest

from worldline.model.time import MS
from worldline.world.description import ScriptedMotion, Waypoint
from worldline.world.engines.drives import pose_at
from worldline.world.pose import Pose

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
