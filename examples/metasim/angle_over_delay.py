"""At which delay does the pendulum fall? And how many lost messages can it take?

Runs the two diagrams of `pendulum.py` in this process, with one network after the other between them, and the same loop
as one plain Drake diagram; draws the angle over time in all of them. See `--help`.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from chart import Curve, Panel, chart
from pendulum import controller, fell_at, swing, swing_in_one_process

from worldline import Federation, Network, Program, link, run
from worldline.pictures.svg import ALARM, INK

DELAYS_MS = (20, 40, 60)
LOSSES = (0.1, 0.3, 0.5)
LOSSY_MS = 40  # The delay of the network that loses messages.
DELAY_MS_MAX = 200
SEED = 1
BLUES = ("#7fb8da", "#2f86c1", "#0b4f86")

Angles = list[tuple[float, float]]
"""Times in seconds, and the angles at them in radians."""


def angles_over(delay_ms: int, loss: float, seconds: float) -> Angles:
    """Run the pair over a network: every message takes this long, and is lost with this probability."""
    angles: Angles = []

    def plant(me):
        swing(me, lambda time, angle: angles.append((time, angle)))

    programs = {
        "plant": Program(plant, publishes=["state"], subscribes=["torque"]),
        "controller": Program(controller, publishes=["torque"], subscribes=["state"]),
    }
    network = Network(default=link(f"{delay_ms}ms", loss=loss))
    run(Federation(programs, network=network, seed=SEED, until=f"{seconds}s"))
    return angles


def delay_ms_of_fall(seconds: float) -> int | None:
    """Return the delay from which on the pendulum falls, to a millisecond, by halving; None if it doesn't."""
    stands, falls = 0, DELAY_MS_MAX
    if fell_at(angles_over(falls, 0.0, seconds)) is None:
        return None
    while falls - stands > 1:
        middle = (stands + falls) // 2
        if fell_at(angles_over(middle, 0.0, seconds)) is None:
            stands = middle
        else:
            falls = middle
    return falls


def curve(name: str, angles: Angles, color: str, dashes: str | None = None) -> Curve:
    fell = fell_at(angles)
    degrees = [(time, math.degrees(angle)) for time, angle in angles]
    if fell is None:
        return Curve(name, color, degrees, dashes)
    return Curve(f"{name}: falls", ALARM, degrees, dashes)


def draw(seconds: float) -> str:
    plain: Angles = []
    swing_in_one_process(seconds, lambda time, angle: plain.append((time, angle)))
    falls_ms = delay_ms_of_fall(seconds)
    print("it stands" if falls_ms is None else f"it falls from a delay of {falls_ms} ms on, each way")
    delays = [curve("no delay, one process", plain, INK, "5 3")]
    for delay_ms, color in zip((*DELAYS_MS, falls_ms), (*BLUES, ALARM), strict=True):
        if delay_ms is not None:
            delays.append(curve(f"{delay_ms} ms", angles_over(delay_ms, 0.0, seconds), color))
    losses = []
    for loss, color in zip(LOSSES, BLUES, strict=True):
        angles = angles_over(LOSSY_MS, loss, seconds)
        fell = fell_at(angles)
        print(f"{loss:.0%} are lost: " + ("it stands" if fell is None else f"it falls at {fell:.2f} s"))
        losses.append(curve(f"{loss:.0%} are lost", angles, color))
    return chart(
        "An inverted pendulum and its controller in two processes",
        "State and torque are sent every 5 ms; the controller was designed without delay in mind",
        seconds,
        "°",
        (
            Panel("Angle when every message takes …", -10, 30, delays),
            Panel(f"Angle when every message takes {LOSSY_MS} ms, and …", -10, 30, losses),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each run is (default: 3)")
    parser.add_argument("--out", type=Path, default=Path("pendulum.svg"), help="the picture (default: pendulum.svg)")
    options = parser.parse_args()
    options.out.write_text(draw(options.seconds), encoding="utf-8")
    print(f"the picture is {options.out}")


if __name__ == "__main__":
    main()
