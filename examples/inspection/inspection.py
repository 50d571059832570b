"""An inspection cell whose parts take time to compute: who waits for whom, and what would help?

    worldline run examples/inspection/inspection.toml --timing
    worldline why inspection.mcap

What a real camera, planner and controller would compute, `time.sleep` stands for here.
"""

import time

from worldline import Participant


def camera(self: Participant) -> None:
    """Take a picture every 33 ms, which takes 20 ms."""
    while True:
        time.sleep(0.020)
        self.publish("images", b"picture")
        self.advance(by="33ms")


def planner(self: Participant) -> None:
    """Decide every 10 ms where to go, which takes 4 ms."""
    while True:
        self.advance(by="10ms")
        time.sleep(0.004)
        self.publish("commands", b"go on")


def arm(self: Participant) -> None:
    """Follow each command, which takes 3 ms, and say where it is."""
    for _ in self.messages():
        time.sleep(0.003)
        self.publish("pose", b"here")
