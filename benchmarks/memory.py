"""How the launcher's memory goes over a long run: a federation of processes, with its recording and its journal.

The launcher is the process of `worldline run`: server, recorder and journal in one. Its resident memory is read from
/proc in its two parts: what it has allocated itself (`own`), and the pages of files that it has mapped (`mapped`): of
its libraries, and of the end of the journal. The system may take those back at any time. In the end, the medians of the
first and the last quarter are compared, without the first minute, when everything is still being loaded.

What grows by rights is the index of the recording: about 200 bytes for every chunk of 128 KiB.

    python benchmarks/memory.py --minutes 60
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

WARM_UP_S = 60.0
FEDERATION = """\
until = "10000000s"

[link]
latency = "uniform(1ms, 5ms)"
loss = 0.01

[[participants]]
name = "camera"
entry = "soak:tell"

[[participants]]
name = "lidar"
entry = "soak:tell"

[[participants]]
name = "planner"
entry = "soak:answer"

[[participants]]
name = "logger"
entry = "soak:count"
"""
PROGRAMS = """\
def tell(me):
    me.subscribe("plan", "mailbox")  # So it can't run ahead of the planner.
    while not me.ended:
        me.publish(me.name, me.random.randbytes(200))
        me.advance(by="4ms")


def answer(me):
    me.subscribe("camera")
    me.subscribe("lidar")
    for message in me.messages():
        me.publish("plan", message.payload[-20:])


def count(me):
    me.subscribe("plan")
    for number, _ in enumerate(me.messages(), 1):
        if number % 500 == 0:
            print(number, "plans")
"""


class Sample(NamedTuple):
    """One look at the launcher: when, its memory in MB, and how large its files were, in MB."""

    after_s: float
    own: float
    mapped: float
    recording: float
    journal: float


def look(pid: int, began: float, folder: Path) -> Sample:
    """Read what a process holds, and how large its files are. The recording has another name while it is written."""
    status = Path(f"/proc/{pid}/status").read_text()
    kinds = {kind: int(size) / 1024 for kind, size in re.findall(r"^(Rss\w+):\s+(\d+) kB", status, re.MULTILINE)}
    files = [sum(path.stat().st_size for path in folder.glob(f"*.{kind}")) / 2**20 for kind in ("mcap", "journal")]
    return Sample(time.monotonic() - began, kinds["RssAnon"], kinds["RssFile"] + kinds["RssShmem"], *files)


def soak(minutes: float, every_s: float, realtime: float | None, folder: Path) -> list[Sample]:
    """Run a federation for so long, and look at its launcher now and then."""
    (folder / "soak.toml").write_text(FEDERATION)
    (folder / "soak.py").write_text(PROGRAMS)
    command = [sys.executable, "-m", "worldline", "run", "soak.toml", "-q"]
    command += ["--record", "soak.mcap", "--journal", "soak.journal"]
    if realtime is not None:
        command += ["--realtime", str(realtime)]
    launcher = subprocess.Popen(command, cwd=folder, env=os.environ | {"PYTHONHASHSEED": "0"})
    began = time.monotonic()
    samples: list[Sample] = []
    try:
        print(f"{'minutes':>8} {'own':>8} {'mapped':>8} {'recording':>10} {'journal':>8}   MB")
        while (left := began + minutes * 60 - time.monotonic()) > 0:
            time.sleep(min(every_s, left))
            if launcher.poll() is not None:
                raise SystemExit(f"the run ended early, with exit code {launcher.returncode}")
            samples.append(sample := look(launcher.pid, began, folder))
            minute, *sizes = sample
            print(f"{minute / 60:8.1f} {sizes[0]:8.1f} {sizes[1]:8.1f} {sizes[2]:10.1f} {sizes[3]:8.1f}", flush=True)
    finally:
        launcher.terminate()  # Where this is started in the background, SIGINT may be ignored.
        launcher.wait()
    return samples


def report(samples: list[Sample]) -> None:
    """Compare the first quarter with the last."""
    warm = [sample for sample in samples if sample.after_s > WARM_UP_S] or samples
    quarter = max(1, len(warm) // 4)
    for kind in ("own", "mapped"):
        first, last = (statistics.median(getattr(sample, kind) for sample in part)
                       for part in (warm[:quarter], warm[-quarter:]))  # fmt: skip
        most = max(getattr(sample, kind) for sample in warm)
        print(f"{kind}: median {first:.1f} MB in the first quarter, {last:.1f} MB in the last; at most {most:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=15.0, metavar="SECONDS")
    parser.add_argument(
        "--realtime", type=float, metavar="RATE", help="slow the run down, for a machine that is shared"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="worldline-memory-") as folder:
        report(soak(options.minutes, options.every, options.realtime, Path(folder)))


if __name__ == "__main__":
    main()
