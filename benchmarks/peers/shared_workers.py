"""Worldline with many participants in a few processes, as `worldline run --executor "workers(2)"` runs them.

Each publishes in every step, on a topic of its own, and hears one neighbor; the latency is twenty steps.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peers.children import PeerError

PROGRAM = """
import time

def run(me):
    began = time.monotonic()
    heard = 0
    for step in range(1, {steps} + 1):
        me.publish(me.name, b"8 bytes.")
        heard += len(me.advance(step * 1_000_000))
    if heard != max(0, {steps} - 20):
        raise SystemExit(f"{{heard}} messages came")
    print("ran from", began, "to", time.monotonic())
"""


def stepping(n: int, workers: int, steps: int, *, timeout_s: float = 120) -> float:
    """Return how many steps per second all of them take together, from the first one's first to the last one's last."""
    names = [f"p{number}" for number in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "stepping.py").write_text(PROGRAM.format(steps=steps))
        entries = (
            f'[[participants]]\nname = "{name}"\nentry = "stepping:run"\npublishes = ["{name}"]\n'
            f'subscribes = ["{names[number - 1]}"]\n'
            for number, name in enumerate(names)
        )
        (here / "stepping.toml").write_text('name = "stepping"\n[link]\nlatency = "20ms"\n' + "".join(entries))
        command = [sys.executable, "-m", "worldline", "run", "stepping.toml", "--no-record"]
        done = subprocess.run(
            [*command, "--executor", f"workers({workers})"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    spans = [(float(began), float(ended)) for began, ended in re.findall(r"ran from ([\d.]+) to ([\d.]+)", done.stdout)]
    if done.returncode or len(spans) != n:
        raise PeerError(f"shared workers: {len(spans)} of {n} came to the end: {done.stderr}")
    return n * steps / (max(ended for _, ended in spans) - min(began for began, _ in spans))


if __name__ == "__main__":
    print(f"{stepping(*map(int, sys.argv[1:])):,.0f} steps/s")
