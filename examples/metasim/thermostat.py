"""A room and its thermostat, in plain Python: what takes part needn't be Drake.

Each is a `MessageSimulator`, which Worldline drives. The room knows when it publishes next, and says so in `due`. The
thermostat doesn't: it answers what arrives, at once.

The physics is +, -, * and / in a fixed order, and what is sent is rounded, so the digest is the same on every machine.
"""

from __future__ import annotations

from worldline import SECOND, Message, Participant, payload
from worldline.metasim import Send, drive

STEP = 1 * SECOND
REPORT = 30 * SECOND
OUTSIDE = 4.0
TARGET, SLACK = 20.0, 0.5


class Room:
    """Loses warmth all the time, and is heated now and then."""

    def __init__(self) -> None:
        self.degrees = self.warmest = 15.0
        self._heats = False
        self._now = 0

    def begin(self, now: int, send: Send) -> None:
        self._send = send
        self._now = now // STEP * STEP  # Not 0, after a crash.
        self._report(now)

    def due(self) -> int:
        return (self._now // REPORT + 1) * REPORT

    def advance_to(self, time: int) -> None:
        """Take the steps that end by then."""
        while self._now + STEP <= time:
            self._now += STEP
            self.degrees += 0.01 * self._heats - 0.0002 * (self.degrees - OUTSIDE)
            self.warmest = max(self.warmest, self.degrees)
            if self._now % REPORT == 0:
                self._report(self._now)

    def receive(self, messages: list[Message]) -> None:
        self._heats = payload.from_json(messages[-1].payload, bool)

    def _report(self, at: int) -> None:
        self._send("temperature", payload.to_json(round(self.degrees, 3)), at)


class Thermostat:
    """Says to the heater what to do when that changes."""

    def __init__(self) -> None:
        self.switched = 0
        self._heats = False

    def begin(self, now: int, send: Send) -> None:
        self._send = send

    def due(self) -> None:
        return None  # It sends when it receives something, and when that is can't be known.

    def advance_to(self, time: int) -> None:
        pass  # Nothing happens in it by itself.

    def receive(self, messages: list[Message]) -> None:
        for message in messages:
            degrees = payload.from_json(message.payload, float)
            heats = degrees < TARGET + (SLACK if self._heats else -SLACK)
            if heats != self._heats:
                self._heats = heats
                self.switched += 1
                self._send("heater", payload.to_json(heats), message.arrival)


def room(me: Participant) -> None:
    simulator = Room()
    drive(me, simulator)
    print(f"{simulator.degrees:.1f} °C; never above {simulator.warmest:.1f} °C")


def thermostat(me: Participant) -> None:
    simulator = Thermostat()
    drive(me, simulator)
    print(f"switched {simulator.switched} times")
