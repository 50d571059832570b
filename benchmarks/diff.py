"""How long it takes to compare two recordings of a million messages, and how much memory.

Three pairs: one parts at message 900,000 (the equal chunks before aren't unpacked); one parts at the first message and
differs in every one after it; one has a single message more at the beginning, so that all chunks are shifted and
everything has to be read. Each comparison is a process of its own, whose time and peak memory are measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from worldline.model import plan
from worldline.recording import Recorder

MEMBERS = 16
COMPARE = """
import resource, sys, time
from worldline.recording.comparing import compare_recordings
began, worked = time.perf_counter(), time.process_time()
difference = compare_recordings(*sys.argv[1:])
assert not difference.is_same
took, worked = time.perf_counter() - began, time.process_time() - worked
print(took, worked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def record(path: Path, count: int, offset_of: Callable[[int], float], *, more: bool = False) -> None:
    """Record messages that go round in a circle; `offset_of` is added to what is in them."""
    names = [f"member{number:02}" for number in range(MEMBERS)]
    recorder = Recorder(path, plan(names), encoding="json")
    for name in names:
        recorder.began(name, 0)
    if more:
        recorder.noted(names[0], "greeting", 0, b'"hello"')
    for number in range(count):
        at = 1 + number * 1000
        sender, receiver = names[number % MEMBERS], names[(number + 1) % MEMBERS]
        value = number * 0.1 + offset_of(number)
        recorder.sent(sender, number, "value", at, b'{"number":%d,"value":%.3f}' % (number, value), at + 900)
        recorder.arrives(sender, number, receiver, at + 500, 0, None)
        recorder.passed(at)
    for name in names:
        recorder.ended(name, count * 1000 + 1, b"")
    recorder.close()


def measured(a: Path, b: Path) -> list[float]:
    """Return seconds, seconds of a processor, and megabytes of one comparison."""
    done = subprocess.run([sys.executable, "-c", COMPARE, a, b], capture_output=True, text=True, check=True)
    return [float(each) for each in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    count = options.messages
    late = count * 9 // 10
    table = Table("two recordings that", "seconds", "of a processor", "megabytes", title=f"{count:,} messages each")
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder) / "a.mcap", Path(folder) / "b.mcap"
        record(a, count, lambda _: 0.0)
        pairs: list[tuple[str, Callable[[int], float], bool]] = [
            (f"part at message {late:,}", lambda number: float(number >= late), False),
            ("differ in every message", lambda _: 1.0, False),
            ("are shifted by one message", lambda _: 0.0, True),
        ]
        for title, offset_of, more in pairs:
            b.unlink(missing_ok=True)
            record(b, count, offset_of, more=more)
            results = [measured(a, b) for _ in range(options.rounds)]
            seconds, worked, megabytes = min(results)
            table.add_row(title, f"{seconds:.2f}", f"{worked:.2f}", f"{megabytes:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
