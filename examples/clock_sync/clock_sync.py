"""Clock synchronization as NTP does it, over a network that loses one message in seven and is slower on the way back.

Once a second each client asks the server for the time. From when the question left, when it came and was answered, and
when the answer came, it works out how far its clock is off, if both ways took equally long. They don't: so of its last
eight answers it believes the one with the shortest round trip, in which the two ways can differ least. It corrects a
part of what it finds at once, and its idea of its clock's rate by a little; what is off by a lot, it corrects as a
whole.

A client sees its own clock alone (`me.clock`). What the plotter draws, no participant knows: how far each clock is
off, in `clock_sync.svg`, in the directory that WORLDLINE_OUTPUT names, or else in the current one. All of them settle
about 1 ms behind true time: the way there takes 2 ms at least, the way back 4 ms, and half of the difference is what no
exchange of messages can show.

All arithmetic is in whole nanoseconds and parts per billion.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from worldline import MS, SECOND, Participant, payload
from worldline.pictures.plot import Chart, Line, Panel, Plot, marks

POLL = 1 * SECOND
SAMPLES = 8
STEP_FROM = 20 * MS
BILLION = 10**9
CLOCKS = ("fast", "set", "warm")


@dataclass
class Question:
    """What time is it? `left` is when I asked, by my own clock."""

    number: int
    left: int


@dataclass
class Answer:
    """The question came then, and is answered now, by the server's clock."""

    number: int
    left: int
    came: int
    answered: int


@dataclass
class Report:
    """For the plotter: what the client's clock shows, and what the client makes of it."""

    shows: int
    corrected: int


@dataclass
class Sample:
    """What one exchange has shown: how long it took, by how much the server's clock was ahead, and when that was."""

    round_trip: int
    ahead: int
    at: int


@dataclass
class Servo:
    """What a client has learnt about its clock: a correction, which grows at a rate."""

    correction: int = 0
    rate: int = 0
    since: int = 0
    used: int = -1
    samples: list[Sample] = field(default_factory=list)

    def corrected(self, shows: int) -> int:
        return shows + self.correction + (shows - self.since) * self.rate // BILLION

    def learn(self, sample: Sample) -> None:
        """Take a new sample into account, unless an earlier one with a shorter round trip says more."""
        if not self.samples or abs(self.error(sample)) > STEP_FROM + sample.round_trip:
            self.samples = [sample]  # The clock was set: what was known before is worth nothing.
            self.correction, self.since, self.used = sample.ahead, sample.at, sample.at
            return
        self.samples = [*self.samples, sample][-SAMPLES:]
        best = min(self.samples, key=lambda each: each.round_trip)
        if best.at > self.used:
            error = self.error(best)
            self.correction, self.since = self.corrected(sample.at) - sample.at + error // 3, sample.at
            self.rate += error * BILLION // (60 * POLL)
            self.used = best.at

    def error(self, sample: Sample) -> int:
        """Return by how much the corrected clock was behind the server's, if a sample is right."""
        return sample.at + sample.ahead - self.corrected(sample.at)


def server(me: Participant) -> None:
    """Answers every question; its clock is the one that all others follow."""
    for message in me.messages():
        question = payload.from_msgpack(message.payload, Question)
        answer = Answer(question.number, question.left, came=me.clock.now, answered=me.clock.now)
        me.publish(f"answer to {message.sender}", payload.to_msgpack(answer))


def client(me: Participant) -> None:
    """Asks once a second, by its own clock, and learns from what is answered."""
    servo = Servo()
    number = answers = 0
    while not me.ended:
        me.publish("report", payload.to_msgpack(Report(me.clock.now, servo.corrected(me.clock.now))))
        me.publish("ask", payload.to_msgpack(Question(number, me.clock.now)))
        number += 1
        following = me.clock.now + POLL
        while me.clock.now < following and not me.ended:
            for message in me.next(until=following, clock="local"):
                answer = payload.from_msgpack(message.payload, Answer)
                there, back = answer.came - answer.left, answer.answered - me.clock.now
                servo.learn(Sample(there - back, (there + back) // 2, me.clock.now))
                answers += 1
    off = -servo.rate / 1000
    print(f"asked {number} times, was answered {answers} times; takes its clock to be {off:+.0f} ppm off")


def plotter(me: Participant) -> None:
    """Compares with true time, and draws it when the run is over."""
    shown: dict[str, list[tuple[float, float]]] = {name: [] for name in CLOCKS}
    corrected: dict[str, list[tuple[float, float]]] = {name: [] for name in CLOCKS}
    asked = answered = 0
    for message in me.messages():
        if message.topic == "ask":
            asked += 1
        elif message.topic == "report":
            report = payload.from_msgpack(message.payload, Report)
            at = message.sent / SECOND
            shown[message.sender].append((at, (report.shows - message.sent) / MS))
            corrected[message.sender].append((at, (report.corrected - message.sent) / MS))
        else:
            answered += 1
    picture = Chart(
        title="Three clocks, synchronized over a bad network",
        subtitle=f"{asked - answered} of {asked} questions never came to the server; "
        "the way there takes 2 ms or more, the way back 4 ms or more",
        x_title="time (s)",
        panels=(
            Panel(title="what each clock shows, compared with true time (ms)", content=_lines(shown)),
            Panel(title="the same, corrected (ms)", content=_lines(corrected), limits=(-6, 6)),
            marks({"a clock is set": [60.0]}, color=1),
        ),
    )
    path = Path(os.environ.get("WORLDLINE_OUTPUT", ".")) / "clock_sync.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    Plot(picture).save(path)
    worst = max(abs(error) for errors in corrected.values() for at, error in errors if 30 <= at <= 59 or at >= 90)
    print(f"once settled, no clock was off by more than {worst:.1f} ms; the picture is {path}")


def _lines(errors: dict[str, list[tuple[float, float]]]) -> list[Line]:
    return [Line.through(points, name, color=color) for color, (name, points) in enumerate(errors.items())]
