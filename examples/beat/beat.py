"""A 100 Hz plant and a 100 Hz controller, each by its own clock: nearly the same rate, so they beat.

The plant is a mass that is pushed about at random. Every 10 ms by its clock it measures itself, and takes the newest
command that has come; every 10 ms by its own clock the controller takes the newest measurement, and sends a command
that is to bring the mass back to 0. Their clocks differ by 500 ppm: half a second in a quarter of an hour. So one
slides past the other once in 20 seconds. Until then, the measurements that the controller takes are older and older, up
to 11 ms, and at some point its command is too late for the plant's next step: the loop takes 20 ms instead of 10, and
nearly oscillates. Where one overtakes the other, a measurement is never used, or a command twice.

The plotter draws that: `beat.svg`, in the directory that WORLDLINE_OUTPUT names, or else in the current one. With
``--set participants.controller.clock.drift=150ppm`` both clocks run at the same rate, and the beat is gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from worldline import MS, SECOND, Participant, payload
from worldline.pictures.plot import Chart, Line, Panel, Plot, marks

PERIOD = 10 * MS
STIFFNESS, DAMPING = 150.0, 61.0  # Barely stable, if the loop takes 20 ms.


@dataclass
class State:
    """Where the mass is, in millimeters, and how fast it moves; and which measurement its push was worked out from."""

    number: int
    place: float
    speed: float
    answers: int


@dataclass
class Command:
    """How to push the mass; worked out from the measurement of that number."""

    number: int
    push: float


def following(me: Participant) -> int:
    """Return the next multiple of the period, by the participant's own clock."""
    return (me.clock.now // PERIOD + 1) * PERIOD


def plant(me: Participant) -> None:
    """The mass: measures itself, and is pushed, at multiples of 10 ms by its own clock."""
    wind = me.stream("wind")
    dt = PERIOD / SECOND
    place = speed = push = 0.0
    number, answers = 0, -1
    while not me.ended:
        me.publish("state", payload.to_msgpack(State(number, round(place, 6), round(speed, 6), answers)))
        number += 1
        for message in me.advance(to=following(me), clock="local"):
            command = payload.from_msgpack(message.payload, Command)
            push, answers = command.push, command.number
        speed += (push + wind.uniform(-500.0, 500.0)) * dt
        place += speed * dt


def controller(me: Participant) -> None:
    """Pushes the mass back to where it should be, at multiples of 10 ms by its own clock."""
    while not me.ended:
        for message in me.advance(to=following(me), clock="local"):
            state = payload.from_msgpack(message.payload, State)
            push = -STIFFNESS * state.place - DAMPING * state.speed
            if not me.ended:
                me.publish("command", payload.to_msgpack(Command(state.number, round(push, 6))))


def plotter(me: Participant) -> None:
    """Works out how old everything was, and draws it when the run is over."""
    measured: dict[int, int] = {}
    speeds: list[tuple[float, float]] = []
    waits: list[tuple[float, float]] = []
    delays: list[tuple[float, float]] = []
    answered: dict[int, None] = {}
    repeated: list[float] = []
    before = -1
    for message in me.messages():
        at = message.sent / SECOND
        if message.topic == "command":
            command = payload.from_msgpack(message.payload, Command)
            waits.append((at, (message.sent - measured[command.number]) / MS))
            answered[command.number] = None
        else:
            state = payload.from_msgpack(message.payload, State)
            measured[state.number] = message.sent
            speeds.append((at, state.speed))
            if state.answers >= 0:
                delays.append((at, (message.sent - measured[state.answers]) / MS))
                if state.answers == before:
                    repeated.append(at)
                before = state.answers
    unused = [time / SECOND for number, time in measured.items() if number not in answered and time < me.now - 40 * MS]
    picture = Chart(
        title="Two loops of 100 Hz that beat against each other",
        subtitle="the plant's clock is 150 ppm fast, the controller's 350 ppm slow",
        x_title="time (s)",
        panels=(
            Panel(
                title="how old a measurement is when the controller takes it (ms)",
                content=[Line.through(waits, "wait")],
            ),
            Panel(title="delay of the whole loop (ms)", content=[Line.through(delays, "delay", "steps", 1)]),
            Panel(title="how fast the mass moves (mm/s)", content=[Line.through(speeds, "mass", color=2)]),
            marks({"measurement never used": unused, "command used twice": repeated}, color=3),
        ),
    )
    path = Path(os.environ.get("WORLDLINE_OUTPUT", ".")) / "beat.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    Plot(picture).save(path)
    shortest, longest = (found(delay for _, delay in delays) for found in (min, max))
    print(f"the loop took {shortest:.1f} to {longest:.1f} ms; {len(unused)} measurements never used, ", end="")
    print(f"{len(repeated)} commands used twice; the picture is {path}")
