"""One worker: what it takes in from the others."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest

from worldline.kernel import Entity, Simulation
from worldline.kernel.engine import LETTER
from worldline.kernel.worker import Worker
from worldline.model import FOREVER, SECOND, InternalError, ModelError, Network, link


class Listener(Entity):
    heard: tuple[Any, ...] = ()

    def on_news(self, text: Any) -> None:
        self.heard = (*self.heard, text)


def test_a_message_from_before_the_time_a_worker_was_let_go_to_is_a_bug() -> None:
    simulation = Simulation()
    for name in ("a", "b"):
        simulation.add(name, Listener())
    worker = Worker(simulation.model(), [0, 1], 0)
    worker.advance(100)
    along = pickle.dumps((["", "news"], [], ["in time"]))
    worker.accept(1, LETTER.pack(100, 1, 0, 1, 0, 1, 0) + along, 0, 1)
    told = "a at 0s: a message from b, sent at 1ns, arrives at 99ns, but worker 0 was let go to 100ns"
    with pytest.raises(InternalError, match=told):
        worker.accept(1, LETTER.pack(99, 1, 2, 1, 0, 1, -1), 0, 1)


class Postman(Entity):
    """Sends one letter of each kind to an entity of another worker, and once more after that."""

    def start(self) -> None:
        for payload in (None, 7, -(2**70), "word", ("a", 1.5), {"key": [1, 2]}):
            self.send("b", "news", payload, delay=SECOND)
        self.create(Child(), "child")
        self.schedule("later", delay=2 * SECOND)

    def on_later(self, _: object) -> None:
        self.send("b", "news", "later", delay=SECOND)
        self.send("b/none", "other", delay=SECOND)


class Child(Entity):
    def start(self) -> None:
        self.send("b", "news", "from a child", delay=SECOND)


def test_letters_arrive_as_they_were_sent() -> None:
    """Of several payloads, from an entity that was created, with topics that the other one has heard of or not."""
    names = ("a", "b")
    here, there = Simulation(network=Network(default=link(SECOND))), Simulation(network=Network(default=link(SECOND)))
    for simulation in (here, there):
        for name, entity in zip(names, (Postman(), Listener()), strict=True):
            simulation.add(name, entity)
    sender, receiver = Worker(here.model(), [0, 1], 0), Worker(there.model(), [0, 1], 1)
    sender.advance(SECOND)
    first, count = sender.take_letters(1), sender.posted(1)
    assert count == 7
    assert sender.take_letters(1) == b""
    receiver.accept(0, b"head" + first, 4, count)
    sender.advance(3 * SECOND)
    second = sender.take_letters(1)
    assert sender.posted(1) == 9
    assert len(second) < len(first)
    receiver.accept(0, second, 0, 2)
    receiver.advance(3 * SECOND)
    with pytest.raises(ModelError, match="a message to b/none arrives at 3s, and there never was such an entity"):
        receiver.advance(FOREVER)
    heard = there["b"].heard  # type: ignore[attr-defined]
    assert heard == (None, 7, -(2**70), "word", ("a", 1.5), {"key": [1, 2]}, "from a child", "later")


class Player(Entity):
    """Plays for a second by the clock, which no model should look at."""

    def __init__(self, other: str) -> None:
        self.other = other
        self.began = 0.0

    def start(self) -> None:
        self.began = time.monotonic()
        self.send(self.other, "ball")

    def on_ball(self, _: object) -> None:
        if time.monotonic() - self.began < 1.5:
            self.send(self.other, "ball")


@pytest.mark.long
def test_a_run_whose_workers_mostly_wait_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(network=Network(default=link("1us")))
    simulation.add("a", Player("b"))
    simulation.add("b", Player("a"))
    simulation.run(executor="processes(2)")
    said = capfd.readouterr().err
    assert said.count("worldline: processes(2) is slower than one process, at about 0.") == 1
    assert "a worker may go on for 1us until it has to hear from the others" in said
    assert "into links, with declared_only=True if only linked entities talk" in said
