"""Packed poses: where a model is follows from its canonical link, however it is turned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.world.stage import packed, vehicle
from worldline.world.pose import ORIGIN, Pose
from worldline.world.spectator import ModelTracker, pack_poses


def test_the_layout() -> None:
    assert pack_poses([Pose((1.0, 2.0, 3.0))]).hex() == (
        "000000000000f03f00000000000000400000000000000840000000000000f03f" + "0" * 48
    )
    assert len(pack_poses([ORIGIN] * 3)) == 3 * 56


@pytest.mark.parametrize("canonical", ["arm", "chassis"])
def test_where_a_model_is(canonical: str) -> None:
    model = vehicle("m", (0.0, 0.0, 0.0))
    links = tuple(
        replace(link, pose=Pose.from_rpy(link.pose.position, 0.3, -0.8, 1.1 + place))
        for place, link in enumerate(model.links)
    )
    tilted = replace(model, links=links, canonical_link=canonical)
    at = Pose.from_rpy((4.0, -5.0, 6.0), 0.5, 0.6, 2.0)
    seen = ModelTracker(tilted).sighting(packed(tilted, at))
    assert seen.position == pytest.approx(at.position)
    assert seen.ahead == pytest.approx(at.rotate((1.0, 0.0, 0.0)))
