"""A pipeline without queues: each stage moves away from the one before, as fast as it needs to.

Here space isn't a place. It is what lies between two stages of a program, and a stage chooses how much of it there is.
A source makes an item in each unit of its time. A stage needs some of its own time for an item, and hands it on. One
that is slower than its predecessor would pile up items. Usually such a pipeline has queues with limits, and messages
that say stop and go on.

In spacetime a stage can do it alone. To one that moves away at the speed v, items come rarer by the Doppler factor

    k = √((1 + v) / (1 − v)),  so that  v = (k² − 1) / (k² + 1).

If items are T apart for the stage before, and it takes s of its own time for each, then it chooses k = s/T, and items
come exactly s apart. A stage that isn't slower moves with its predecessor, k = 1. Factors of one stage after another
are multiplied, which is why stage i, whose items are Tᵢ apart, has the velocity of k = Tᵢ/T₀ in the lab, where the
source is at rest. Items that would wait are under way instead: the space in between is the queue, and has no limit.

With ``placed`` off all stages are at rest, and items wait. Both give the same items in the same order, and for
stages' own clocks the same throughput: the slowest stage decides. What changes is how soon stages act on what they
are sent. And the farther apart two stages are, the less they have to wait for each other when they run on two
processors: light is long under way.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski, SpacetimeOutcome
from worldline.spacetime.loading import at_least

UNTIL = 100.0

SERVICES = (0.8, 2.0, 1.5, 3.0)
"""How long each stage takes for an item, in its own time; the source makes one in each unit of its own."""

SLACK = 1.001  # Items come a little rarer than they must, so that rounding doesn't let one wait.


class Source(Agent):
    """Makes items."""

    to_next: Channel

    def make(self, item: int, items: int) -> None:
        self.to_next.send(Stage.take, item)
        if item + 1 < items:
            self.after(1.0, Source.make, item + 1, items)


class Stage(Agent):
    """Takes its time for each item, and hands it on. What comes in the meantime waits."""

    service: float
    waiting: deque[int]
    to_next: Channel | None = None
    is_busy = False
    longest = 0
    done = 0
    in_order = True

    def take(self, item: int) -> None:
        self.waiting.append(item)
        if self.is_busy:
            self.longest = max(self.longest, len(self.waiting))
        else:
            self.begin()

    def begin(self) -> None:
        self.is_busy = True
        self.after(self.service, Stage.finish, self.waiting.popleft())

    def finish(self, item: int) -> None:
        self.in_order = self.in_order and item == self.done
        self.done += 1
        if self.to_next is not None:
            self.to_next.send(Stage.take, item)
        else:
            self.log(f"item {item} is ready, at {self.local_time:.3f} of its time")
        if self.waiting:
            self.begin()
        else:
            self.is_busy = False


def model(*, seed: int = 0, items: int = 12, placed: bool = True) -> ForwardSimulation:
    """Send so many items through the stages, which choose their velocities, or are all at rest."""
    at_least(1, items=items)
    simulation = ForwardSimulation(Minkowski(2), seed=seed)
    with simulation:
        source = Source()
        source.name = "source"
        before: Any = source
        for number, (service, factor) in enumerate(zip(SERVICES, factors(), strict=True), 1):
            stage = Stage()
            stage.name = f"stage-{number}"
            stage.service = service
            stage.waiting = deque()
            stage.jump_to((0.0, float(number)))  # Not all at one place: there light would take no time.
            if placed:
                stage.velocity = simulation.space.velocity((factor**2 - 1.0) / (factor**2 + 1.0))
            before.to_next = Channel(before, stage)
            before = stage
        source.make(0, items)
    return simulation


def factors() -> list[float]:
    """Return how much rarer items come to each stage than the source makes them."""
    apart = 1.0
    found = []
    for service in SERVICES:
        apart = max(apart, service * SLACK)
        found.append(apart)
    return found


def outcome(simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
    """No item waits where stages have placed themselves; items stay in order in any case."""
    stages: list[Any] = [simulation[f"stage-{number}"] for number in range(1, result.agents)]
    assert all(stage.in_order for stage in stages)
    is_placed = any(stage.velocity[1] for stage in stages)
    longest = [stage.longest for stage in stages]
    assert is_placed == (not any(longest))
    return f"{stages[-1].done} items; waiting at most: {', '.join(map(str, longest))}"
