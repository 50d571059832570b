"""Our laboratory in the scenarios of its benchmark, and the bare kernel with the same work in its handlers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from worldline.kernel import Entity, Simulation, build
from worldline.model import SECOND
from worldline.nodes import Scheduler, Topology
from worldline.nodes.algorithms import find
from worldline.nodes.algorithms.bellman_ford_ids import BellmanFordIds
from worldline.nodes.shapes import random
from worldline.nodes.trial import Trial, search

if __package__:
    from . import apart
else:
    import apart

SEED = 1

Facts = dict[str, Any]


def graph(size: int, degree: int) -> Topology:
    return random(size, degree=degree, seed=SEED)


def nodes(size: int, degree: int, sources: int) -> Facts:
    """Id propagation in the laboratory, as users have it; `sources` nodes announce themselves."""
    run = Scheduler.over(graph(size, degree), BellmanFordIds, seed=SEED)
    for node in range(sources):
        run.start(node)
    seconds = apart.timed(run.run)
    result = run.result()
    known = sum(len(node.distances) for node in run.nodes)
    return {
        "deliveries": result.events,
        "rate": result.events / seconds,
        "known": known,
        "memory": apart.resident_max(),
        "digest": result.digest.hex(),
    }


def bare(size: int, degree: int, sources: int) -> Facts:
    """The same on the kernel alone: entities that know each other's names."""
    topology = graph(size, degree)

    class Place(Entity):
        __slots__ = ("distances", "links", "neighbors", "routes")

        def __init__(self, node: int) -> None:
            self.neighbors = [f"{neighbor:05}" for neighbor in topology.neighbors[node]]
            self.links = {name: link for link, name in enumerate(self.neighbors)}
            self.distances = {node: 0}
            self.routes: dict[int, int] = {}

        def on_begin(self, _: None) -> None:
            bits = self.random.getrandbits
            for name in self.neighbors:
                self.send(name, "message", (int(self.name), 0), delay=1 + (bits(64) * SECOND >> 64))

        def on_message(self, message: tuple[int, int]) -> None:
            goal, distance = message
            link = self.links[self.sender]
            distance += 1
            known = self.distances.get(goal)
            if known is None or distance < known:
                self.distances[goal] = distance
                self.routes[goal] = link
                onward = (goal, distance)
                send, bits = self.send, self.random.getrandbits
                for each, name in enumerate(self.neighbors):
                    if each != link:
                        send(name, "message", onward, delay=1 + (bits(64) * SECOND >> 64))

    simulation = Simulation(seed=SEED)
    places = [Place(node) for node in range(size)]
    for node, place in enumerate(places):
        simulation.add(f"{node:05}", place)
    for node in range(sources):
        simulation.send(f"{node:05}", "begin")
    seconds = apart.timed(simulation.run)
    events = simulation.result().events
    known = sum(len(place.distances) for place in places)
    return {"deliveries": events, "rate": events / seconds, "known": known, "memory": apart.resident_max()}


def raft(size: int, seeds: int, workers: int) -> Facts:
    """Many seeds of a Raft cluster, by the wall clock: that's what whoever waits for it sees."""
    trial = Trial(algorithm=find("raft"), topology=f"clique:{size}", until=3 * SECOND)
    search(trial, range(workers), workers=workers)  # The server that processes are forked from is there then.
    began = time.perf_counter()
    report = search(trial, range(seeds), workers=workers)
    seconds = time.perf_counter() - began
    if report.failure is not None:
        raise SystemExit(f"seed {report.failure.seed}: {report.failure.failure}")
    return {"rate": seeds / seconds, "events": report.events, "digest": report.digest}


SCENARIOS: dict[str, Callable[..., Facts]] = {"nodes": nodes, "bare": bare, "raft": raft}


if __name__ == "__main__":
    apart.answer(SCENARIOS, __doc__, {"build": build})
