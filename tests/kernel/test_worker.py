"""One worker: what it takes in from the others."""

from __future__ import annotations

import pytest

from worldline.kernel import Entity, Simulation
from worldline.kernel.worker import Worker
from worldline.model import InternalError


class Listener(Entity):
    heard: tuple[str, ...] = ()

    def on_news(self, text: str) -> None:
        self.heard = (*self.heard, text)


def test_a_message_from_before_the_time_a_worker_was_let_go_to_is_a_bug() -> None:
    simulation = Simulation()
    for name in ("a", "b"):
        simulation.add(name, Listener())
    worker = Worker(simulation.model(), [0, 1], 0)
    worker.advance(100)
    worker.accept([(100, 1, "b", 0, "a", 0, "news", "in time")])
    told = "a at 0s: a message from b, sent at 1ns, arrives at 99ns, but worker 0 was let go to 100ns"
    with pytest.raises(InternalError, match=told):
        worker.accept([(99, 1, "b", 2, "a", 0, "news", "late")])
