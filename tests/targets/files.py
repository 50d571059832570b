"""A small model of each kind, as users write them."""

from __future__ import annotations

from pathlib import Path

FEDERATION = """
from worldline import Federation, Network, Program, link

def ann(self):
    self.publish("ball", b"serve")
    for ball in self.messages():
        self.publish("ball", b"return")

def bob(self):
    for ball in self.messages():
        print("bob hits", ball.payload.decode())
        self.publish("ball", b"return")

def model(*, seed=1, latency="90ms"):
    programs = {"ann": Program(ann, subscribes=["ball"]), "bob": Program(bob, subscribes=["ball"])}
    return Federation(programs, network=Network(default=link(latency)), seed=seed, until="1s")
"""

KERNEL = """
from worldline.kernel import Entity, Simulation

UNTIL = "10s"

class Ticker(Entity):
    ticks = 0

    def start(self):
        while True:
            yield self.random.exponential("1s")
            self.ticks += 1
            self.send("counter", "tick", self.ticks, delay="1s")

class Counter(Entity):
    seen = 0

    def on_tick(self, number):
        self.seen += 1

def model(*, seed=3, tickers=2):
    simulation = Simulation(seed=seed)
    simulation.add("counter", Counter())
    for number in range(tickers):
        simulation.add(f"ticker {number}", Ticker())
    return simulation

def outcome(simulation, result):
    return f"seen {simulation['counter'].seen}"
"""

NODES = """
from worldline.nodes import Algorithm, Node, Start, at_end

class Greeter(Node):
    '''Says hello to its neighbors.'''

    def __init__(self, num_nodes, id, num_neighbors, send, *, times=1):
        super().__init__(num_nodes, id, num_neighbors, send)
        self.times, self.heard = times, 0

    def execute(self, event):
        if isinstance(event, Start):
            for _ in range(self.times):
                self.broadcast("hello")
        else:
            self.heard += 1

@at_end("everybody has heard everybody")
def all_heard(run):
    return all(node.heard == node.times * node.num_neighbors for node in run.nodes)

model = Algorithm(name="greetings", node=Greeter, topology="ring:4", properties=(all_heard,))
"""

SPACETIME = """
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

UNTIL = 4.5

class Clock(Agent):
    def tick(self):
        self.log("tick")
        self.after(1.0, Clock.tick)

def model(*, seed=0, clocks=1):
    simulation = ForwardSimulation(Minkowski(2), seed=seed)
    with simulation:
        for _ in range(clocks):
            Clock().after(1.0, Clock.tick)
    return simulation

def outcome(simulation, result):
    return f"{len(simulation.agents)} clocks"
"""

MODELS = {"federation": FEDERATION, "kernel": KERNEL, "nodes": NODES, "spacetime": SPACETIME}


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)
