"""What `run` and `info` count as lost: the same messages, whatever the room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from worldline.cli.runner import losses_in_words
from worldline.recording import Recording

FEDERATION = """
from worldline import Federation, Network, Program, link

def sends(me):
    while True:
        me.publish("x", b"")
        me.advance(by="10ms")

def listens(me):
    while True:
        me.advance(by="50ms")

programs = {"a": Program(sends), "b": Program(listens, subscribes={"x": "newest(2)"})}
model = Federation(programs, network=Network(default=link("35ms", loss=0.2)), until="300ms")
"""

KERNEL = """
from worldline.kernel import Entity, Simulation
from worldline.model import Network, link

UNTIL = "305ms"

class Sends(Entity):
    def start(self):
        while True:
            self.send("b", "x")
            yield "10ms"

class Listens(Entity):
    def on_x(self, _): ...

def model(*, seed=0):
    simulation = Simulation(seed=seed, network=Network(default=link("35ms", loss=0.2)))
    simulation.add("a", Sends())
    simulation.add("b", Listens())
    return simulation
"""

NODES = """
from worldline.nodes import Algorithm, Node, Trial
from worldline.nodes.faults import as_fault

class Sends(Node):
    def execute(self, _):
        self.broadcast("x")
        self.set_timer("10ms")

faults = tuple(map(as_fault, ["50ms crash 1", "90ms recover 1", "120ms down 0 1", "160ms up 0 1"]))
algorithm = Algorithm(name="sends", node=Sends, topology="clique:2")
model = Trial(algorithm=algorithm, faults=faults, latency="35ms", until=305_000_000, kinds={"loss": 0.1})
"""


@pytest.mark.parametrize("text", [FEDERATION, KERNEL, NODES], ids=["federation", "kernel", "nodes"])
def test_run_and_info_count_the_same_messages_as_lost(worldline: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "lossy.py").write_text(text)
    code, out, err = worldline("run", "lossy.py", "--record", "lossy.mcap")
    assert code == 0, err
    (said,) = (line.split(", ", 2)[2] for line in out.split("\n") if "simulated in" in line)
    lost = next(part for part in said.split(", ") if part.endswith("messages lost"))
    assert lost != "0 messages lost"
    (counted,) = (line for line in worldline("info", "lossy.mcap")[1].split("\n") if "messages lost" in line)
    assert counted.split(", ")[0] == lost
    if "Federation" in text:
        assert said == counted  # With what buffers didn't keep.
    else:
        assert counted.endswith("still under way at the end")


def test_what_arrives_is_lost_or_under_way_adds_up(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "lossy.py").write_text(KERNEL)
    worldline("run", "lossy.py", "--record", "lossy.mcap")
    recording = Recording(tmp_path / "lossy.mcap")
    count = recording.counts()["x"]
    assert count.published == count.arrivals + sum(loss.count for loss in recording.loss_counts())


def test_losses_are_said_in_words() -> None:
    counts = {
        ("b", "x", "lost at the sender"): 1,
        ("b", "x", "dropped by its buffer"): 1200,
        ("c", "x", "still under way at the end"): 3,
        ("d", "x", "its target was dead"): 4,
    }
    said = "1 message lost, 1,200 not kept by buffers, 3 still under way at the end, 4 sent to the dead"
    assert losses_in_words(counts) == said
    assert losses_in_words({}) == "0 messages lost"
    assert losses_in_words({}, "dropped by its buffer") == "0 messages lost, 0 not kept by buffers"
