"""A spectator needs to write only what it wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.world.stage import packed, perform, stage, vehicle
from worldline.world.pose import Pose
from worldline.world.spectator import Spectator, position_in


def test_what_isn_t_written_does_nothing() -> None:
    class Counting(Spectator):
        steps = 0

        def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
            self.steps += 1

    counting = Counting()
    perform(counting, stage(), 10)
    assert counting.steps == 11
    Spectator().interacted(0, 0, None)


@pytest.mark.parametrize("canonical", ["arm", "chassis"])
def test_where_a_model_is(canonical: str) -> None:
    model = vehicle("m", (0.0, 0.0, 0.0))
    links = tuple(
        replace(link, pose=Pose.from_rpy(link.pose.position, 0.3, -0.8, 1.1 + place))
        for place, link in enumerate(model.links)
    )
    tilted = replace(model, links=links, canonical_link=canonical)
    at = Pose.from_rpy((4.0, -5.0, 6.0), 0.5, 0.6, 2.0)
    assert position_in(tilted)(packed(tilted, at)) == pytest.approx(at.position)
