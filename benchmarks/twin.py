"""What `--twin` costs the participant that has one, and everybody else.

Two participants in processes of their own pass a message to and fro. Runs with and without a twin of one of them take
turns; compared are the medians of the time of a round trip, and of what it takes of that participant's processor. The
twin needs a core: where there are fewer than four, it takes its share of those of the others, and the times differ.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import Launch, LaunchOptions, SpecialRoles

PROGRAM = """
import time

def ann(me):
    me.publish("ball", bytes(100))
    began, used, trips = time.perf_counter(), time.process_time(), 0
    for ball in me.messages():
        trips += 1
        me.publish("ball", ball.payload)
    print((time.perf_counter() - began) / trips, (time.process_time() - used) / trips)

def bob(me):
    for ball in me.messages():
        me.publish("ball", ball.payload)
"""
PART = '[[participants]]\nname = "{0}"\nentry = "tennis:{0}"\npublishes = ["ball"]\nsubscribes = ["ball"]\n'


def run_once(file: Path, twinned: tuple[str, ...]) -> tuple[float, float]:
    """Run it, and return the seconds of a round trip, and those of ann's processor."""
    said: list[str] = []
    launch = Launch(
        read_setup(file),
        LaunchOptions(hear=lambda _who, _at, line: said.append(line), roles=SpecialRoles(twinned=twinned)),
    )
    launch.check_ends(launch.run())
    wall, used = map(float, said[-1].split())
    return wall, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trips", type=int, default=20_000)
    arguments = parser.parse_args()
    took: dict[str, list[tuple[float, float]]] = {"alone": [], "with a twin": []}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tennis.py").write_text(PROGRAM)
        file = Path(folder) / "tennis.toml"
        file.write_text(f'until = "{2 * arguments.trips}ms"\n{PART.format("ann")}{PART.format("bob")}')
        for _ in range(arguments.rounds):
            took["alone"].append(run_once(file, ()))
            took["with a twin"].append(run_once(file, ("ann",)))
    table = Table("a run", "µs for a round trip", "of the participant's processor")
    for kind, runs in took.items():
        wall, used = (statistics.median(column) * 1e6 for column in zip(*runs, strict=True))
        table.add_row(kind, f"{wall:.1f}", f"{used:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
