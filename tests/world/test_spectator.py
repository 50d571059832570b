"""A spectator needs to write only what it wants to know."""

from __future__ import annotations

from collections.abc import Mapping

from tests.world.stage import perform, stage
from worldline.world.spectator import Spectator


def test_what_isn_t_written_does_nothing() -> None:
    class Counting(Spectator):
        steps = 0

        def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
            self.steps += 1

    counting = Counting()
    perform(counting, stage(), 10)
    assert counting.steps == 11
    Spectator().interacted(0, 0, None)
