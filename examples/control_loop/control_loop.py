"""A control loop over a bad network: a cart balances a pole while its controller sits at the other end of the link.

The cart measures itself every 20 ms. The controller answers each measurement with a command, and the cart goes on with
the newest command that has come. Either takes 5 to 25 ms, and one in seven is lost; at 4.3 s the link is down for a
quarter of a second. The pole stays up all the same, as can be seen in the picture that the plotter draws at the end:
`control_loop.svg`, in the directory that WORLDLINE_OUTPUT names, or else in the current one.

The physics is +, -, * and / in a fixed order, and what is sent and drawn is rounded: the picture has the same bytes in
every run. Change the loss, the latency or the seed in `control_loop.toml`, and see how much the pole can take: with
seed 3 it falls.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from worldline import MS, SECOND, Participant, payload
from worldline.pictures.plot import Chart, Line, Panel, Plot, marks

GRAVITY = 9.81
POLE_M = 0.5
SAMPLE = 20 * MS
STEP = 4 * MS  # Of the integration.
PUSH_MAX = 10.0
GAINS = (6.1, 6.6, 43.0, 9.8)  # Of place, speed, angle and turning: optimal on a link without delay.
TARGETS = ((0, 0.0), (1 * SECOND, 1.0), (4 * SECOND, -0.5), (7 * SECOND, 0.5))  # From when on the cart should be where.
DEGREES = 57.29578
UNDER_WAY = 100 * MS  # What was sent so shortly before the end isn't lost, but may not have been answered yet.


@dataclass
class State:
    """A measurement in metres, radians and seconds, and the commands that have come since the last one."""

    number: int
    place: float
    speed: float
    angle: float
    turning: float
    push: float
    heard: list[int]


@dataclass
class Command:
    """How to push the cart, in m/s²; worked out from the measurement of that number."""

    number: int
    target: float
    push: float


def plant(self: Participant) -> None:
    """The cart, its pole (for small angles, so it needs no sine) and its noisy sensor."""
    noise = self.stream("sensor")
    place = speed = angle = turning = push = worst = 0.0
    number, newest = 0, -1
    heard: list[int] = []
    dt = STEP / SECOND
    while not self.ended:
        if self.now % SAMPLE == 0:
            state = State(
                number=number,
                place=round(place, 6),
                speed=round(speed, 6),
                angle=round(angle + noise.uniform(-0.003, 0.003), 6),
                turning=round(turning, 6),
                push=push,
                heard=heard,
            )
            self.publish("state", payload.to_msgpack(state))
            number, heard = number + 1, []
        for message in self.advance(by=STEP):
            command = payload.from_msgpack(message.payload, Command)
            heard.append(command.number)
            if command.number > newest:  # Else it was overtaken on the way.
                newest, push = command.number, command.push
        speed += push * dt
        place += speed * dt
        turning += (GRAVITY * angle - push) / POLE_M * dt
        angle += turning * dt
        worst = max(worst, abs(angle))
        if worst > 1.0:
            print("the pole has fallen")
            return
    print(f"the pole leant {worst * DEGREES:.1f}° at the most, the cart is at {place:+.2f} m")


def controller(self: Participant) -> None:
    """Pushes the cart so that the pole stays up and the cart comes to where it should be."""
    target, answers = 0.0, 0
    for message in self.messages():
        state = payload.from_msgpack(message.payload, State)
        before, target = target, [place for since, place in TARGETS if since <= self.now][-1]
        if target != before:
            print(f"go to {target:+.1f} m")
        errors = (state.place - target, state.speed, state.angle, state.turning)
        push = 0.0
        for gain, error in zip(GAINS, errors, strict=True):  # Not sum(): it rounds differently from Python 3.12 on.
            push += gain * error
        push = max(-PUSH_MAX, min(PUSH_MAX, push))
        self.publish("command", payload.to_msgpack(Command(state.number, target, round(push, 6))))
        answers += 1
    print(f"answered {answers} measurements")


def plotter(self: Participant) -> None:
    """Notes everything, and draws it when the run is over."""
    states: list[tuple[float, State]] = []
    commands: list[tuple[float, Command]] = []
    for message in self.messages():
        if message.topic == "state":
            states.append((message.sent / SECOND, payload.from_msgpack(message.payload, State)))
        else:
            commands.append((message.sent / SECOND, payload.from_msgpack(message.payload, Command)))
    last = (self.now - UNDER_WAY) / SECOND
    answered = {command.number for _, command in commands}
    heard = {number for _, state in states for number in state.heard}
    unanswered = [time for time, state in states if time < last and state.number not in answered]
    unheard = [time for time, command in commands if time < last and command.number not in heard]
    target = Line.through(((time, command.target) for time, command in commands), "target", "steps", 7)
    cart = Line.through(((time, state.place) for time, state in states), "cart")
    pole = Line.through(((time, state.angle * DEGREES) for time, state in states), "pole", color=2)
    push = Line.through(((time, state.push) for time, state in states), "push", "steps", 1)
    picture = Chart(
        title="A pole balanced over a bad network",
        subtitle=f"lost: {len(unanswered)} of {len(states)} measurements, {len(unheard)} of {len(commands)} commands",
        x_title="time (s)",
        panels=(
            Panel(title="position (m)", content=[target, cart]),
            Panel(title="angle (degrees)", content=[pole]),
            Panel(title="push (m/s²)", content=[push]),
            marks({"lost measurements": unanswered, "lost commands": unheard}, color=3),
        ),
    )
    path = Path(os.environ.get("WORLDLINE_OUTPUT", ".")) / "control_loop.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    Plot(picture).save(path)
    print(f"lost: {len(unanswered)} measurements, {len(unheard)} commands; the picture is {path}")
