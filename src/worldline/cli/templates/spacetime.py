"""Two agents a light-second apart call each other. Try: worldline run spacetime.py --until 6"""

from __future__ import annotations

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski

UNTIL = 4


class Caller(Agent):
    """Answers each call with a call, which travels at the speed of light."""

    to_other: Channel

    def call(self) -> None:
        print("called at", self.position)
        self.to_other.send(Caller.call)


def model(seed: int = 0) -> ForwardSimulation:
    with ForwardSimulation(Minkowski(4), seed=seed) as simulation:
        near, far = Caller(), Caller()
        far.jump_to((0, 0, 0, 1))
        near.to_other, far.to_other = Channel(near, far), Channel(far, near)
        near.call()
    return simulation
