"""The simulators of metasim.toml. Worldline drives each: it says until when to simulate, and what has arrived."""

from __future__ import annotations

from worldline import SECOND, Message, Participant, payload
from worldline.metasim import Send, drive

STEP = 10 * SECOND


class Room:
    """Cools down, and warms up while the heater is on. It publishes its temperature in every step."""

    def __init__(self) -> None:
        self.degrees, self.is_heated, self.now = 15.0, False, 0

    def begin(self, now: int, send: Send) -> None:
        self.send, self.now = send, now
        self.send("temperature", payload.to_json(self.degrees), now)

    def due(self) -> int:
        return self.now + STEP

    def advance_to(self, time: int) -> None:
        while self.now + STEP <= time:
            self.now += STEP
            self.degrees += 0.1 * self.is_heated - 0.002 * (self.degrees - 4)
            self.send("temperature", payload.to_json(round(self.degrees, 3)), self.now)

    def receive(self, messages: list[Message]) -> None:
        self.is_heated = payload.from_json(messages[-1].payload, bool)


class Thermostat:
    """Switches the heater. It sends only when it receives, so it is never due by itself."""

    is_heating = False

    def begin(self, now: int, send: Send) -> None:
        self.send = send

    def due(self) -> None:
        return None

    def advance_to(self, time: int) -> None:
        pass

    def receive(self, messages: list[Message]) -> None:
        for message in messages:
            degrees = payload.from_json(message.payload, float)
            wanted = degrees < (20.5 if self.is_heating else 19.5)
            if wanted != self.is_heating:
                self.is_heating = wanted
                print(f"{degrees:.1f} degrees: {'on' if wanted else 'off'}")
                self.send("heater", payload.to_json(wanted), message.arrival)


def room(me: Participant) -> None:
    drive(me, Room())


def thermostat(me: Participant) -> None:
    drive(me, Thermostat())
