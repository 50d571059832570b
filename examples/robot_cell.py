"""A robot cell in one process: a camera, a planner and an arm, with delay and loss between them.

Run it twice, or on another machine: the trace and the digest are the same. `worldline check examples/robot_cell.py`
tries a thousand schedules of the same federation.
"""

from __future__ import annotations

import sys

from worldline import MS, Federation, Network, Participant, Program, Rule, format_time, link, run, uniform

TRACE: list[tuple[int, str, str]] = []


def say(participant: Participant, text: str) -> None:
    """Note a line of the trace. Sorted by time at the end, so it doesn't matter who ran first."""
    TRACE.append((participant.now, participant.name, text))


def camera(self: Participant) -> None:
    """Takes a picture of the conveyor every 20 ms; the part on it drifts, and the sensor is noisy."""
    noise = self.random("noise")
    while not self.ended:
        place = self.now / 1e6 * 0.5
        self.publish("image", f"{place + noise.gauss(0, 0.2):.3f}".encode())
        self.promise(until=self.now + 20 * MS)
        self.advance(by="20ms")


def planner(self: Participant) -> None:
    """Turns each picture into a target, 3 ms of thinking later."""
    seen = None
    for image in self.messages():
        place = float(image.payload)
        speed = 0.0 if seen is None else (place - seen[1]) / (image.sent - seen[0]) * 1e6
        seen = (image.sent, place)
        target = place + speed * 10
        say(self, f"picture of {format_time(image.sent)}: part at {place:.2f} mm, reach for {target:.2f} mm")
        self.publish("target", f"{target:.3f}".encode(), at=self.now + 3 * MS)


def arm(self: Participant) -> None:
    """Moves towards the newest target every 5 ms and reports where it is."""
    place, target = 0.0, 0.0
    while not self.ended:
        for message in self.advance(by="5ms"):
            target = float(message.payload)
            say(self, f"new target {target:.2f} mm, {format_time(self.now - message.sent)} old")
        place += max(-4.0, min(4.0, 0.5 * (target - place)))
        if not self.ended:
            self.publish("pose", f"{place:.3f}".encode())


def watchdog(self: Participant) -> None:
    """Stops the cell when the arm has gone too far."""
    for pose in self.messages():
        if float(pose.payload) > 90:
            say(self, f"arm at {float(pose.payload):.2f} mm: stop in 10ms")
            self.stop(at=self.now + 10 * MS)
            return


federation = Federation(
    {
        "camera": Program(camera, publishes=["image"]),
        "planner": Program(planner, publishes=["target"], subscribes=["image"]),
        "arm": Program(arm, publishes=["pose"], subscribes={"target": "mailbox"}),
        "watchdog": Program(watchdog, publishes=[], subscribes=["pose"], controls=True),
    },
    network=Network(
        default=link("1ms"),
        rules=(
            Rule(topic="image", link=link(uniform("4ms", "9ms"), loss=0.1)),
            Rule(topic="target", link=link("2ms", loss=0.05)),
        ),
    ),
    seed=7,
    end="1s",
)


def main() -> None:
    outcome = run(federation)
    for time, name, text in sorted(TRACE):
        print(f"{format_time(time):>14}  {name:<9} {text}")
    print()
    for name, time in outcome.times.items():
        print(f"{name:<9} left at {format_time(time)}")
    for (receiver, topic, reason), count in outcome.dropped.items():
        print(f"{receiver:<9} missed {count} on {topic}: {reason}")
    print(f"\n{outcome.events} events, digest {outcome.digest.hex()}")


if __name__ == "__main__":
    sys.exit(main())
