"""One measurement in a fresh process: what it found is the JSON on the last line of its output.

A fresh process for each, because memory that an earlier measurement left behind, warm caches of the interpreter and the
garbage collector's counters would all be part of the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

if __package__:
    from .children import PeerError
else:
    from children import PeerError

UNCOMPILED = "WORLDLINE_UNCOMPILED"
TIMEOUT_S = 600
LOOK_S = 0.25

Facts = dict[str, Any]


def measure(
    script: Path,
    *arguments: object,
    uncompiled: bool = False,
    core: int | None = None,
    launcher: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
) -> Facts:
    """Run a script to its end and return what it found; on one core if that is given."""
    command = [*launcher, sys.executable, str(script), *map(str, arguments)]
    environment = os.environ | {UNCOMPILED: "1" if uncompiled else "0"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
    except subprocess.TimeoutExpired:
        raise PeerError(f"{' '.join(command)} took longer than {timeout_s:g} s") from None
    if done.returncode:
        raise PeerError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{done.stderr.strip()}")
    facts: Facts = json.loads(done.stdout.splitlines()[-1])
    return facts


def answer(scenarios: Mapping[str, Callable[..., Facts]], doc: str | None, facts: Facts) -> None:
    """Be such a script: run the scenario that the command line names, and print what it found besides these facts."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=scenarios)
    parser.add_argument("numbers", type=int, nargs="+", help="the scenario's arguments, in their order")
    given = parser.parse_args()
    print(json.dumps({**facts, **scenarios[given.scenario](*given.numbers)}))


def settled(share_max: float = 0.1, wait_s: float = 20.0) -> float:
    """Wait until others leave the machine alone, but not for ever; return the share of it that they use."""
    until = time.monotonic() + wait_s
    while True:
        before = _busy_and_all()
        time.sleep(LOOK_S)
        busy, all_of_it = (now - then for now, then in zip(_busy_and_all(), before, strict=True))
        share = busy / max(all_of_it, 1)
        if share <= share_max or time.monotonic() > until:
            return share


def _busy_and_all() -> tuple[int, int]:
    """Return how long the machine's cores were busy so far, and how long they were there, in the system's ticks."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    ticks = [int(number) for number in first.split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def last_core() -> int:
    """Return the core to pin to: the last one, because the first has more of the system's own work."""
    return max(os.sched_getaffinity(0))


def timed(run: Callable[[], object]) -> float:
    """Return the processor time that something takes, in seconds: what others do on the machine doesn't count."""
    start = time.process_time()
    run()
    return time.process_time() - start


def resident() -> int:
    """Return how many bytes of memory this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def resident_max() -> int:
    """Return how many bytes of memory this process has occupied at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise PeerError("/proc/self/status doesn't say VmHWM")
