"""The participants of federation.toml: each is a function that lives through the run in its own simulated time."""

from __future__ import annotations

from worldline import Participant


def room(self: Participant) -> None:
    """Cools down, or warms up while the heater is on; its thermometer is noisy."""
    noise = self.stream("noise")
    temperature, heated = 19.0, False
    while not self.ended:
        self.publish("temperature", f"{temperature + noise.gauss(0, 0.1):.2f}".encode())
        for message in self.advance(by="100ms"):
            heated = message.payload == b"on"
        temperature += 0.08 if heated else -0.05


def heater(self: Participant) -> None:
    """Keeps the room at 20 degrees, with some slack so that it doesn't switch all the time."""
    heating = False
    for reading in self.messages():
        wanted = float(reading.payload) < (20.3 if heating else 19.7)
        if wanted != heating:
            heating = wanted
            self.publish("power", b"on" if heating else b"off")


def display(self: Participant) -> None:
    """Shows once a second what has come in last."""
    while not self.ended:
        for message in self.advance(by="1s"):
            print(f"{message.topic}: {message.payload.decode()}")
