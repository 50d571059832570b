"""Ping-pong: two players, one ball, and a link on which it flies 40 to 70 ms. The shortest example there is.

Ann serves. The player who gets the ball plays it back, until it has crossed the table ten times. Then neither has
anything left to wait for, and the run is over. How long each ball flies is drawn from the seed: the same in every run.
"""

from __future__ import annotations

from worldline import Participant

RALLY = 10


def player(self: Participant) -> None:
    """Plays every ball back but the last."""
    hits = 0
    if self.name == "ann":
        self.publish("ball", b"1")
        hits += 1
    for ball in self.messages():
        number = int(ball.payload)
        print(f"ball {number}, {(ball.arrival - ball.sent) / 1e6:.1f} ms in the air")
        if number < RALLY:
            self.publish("ball", str(number + 1).encode())
            hits += 1
    print(f"{hits} hits")
