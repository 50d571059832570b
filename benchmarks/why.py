"""What `worldline why --follow` costs a busy run, and what `--timing` does.

Eight participants in processes of their own pass messages on as fast as they can. Runs alone, followed and with a
timing take turns; compared are the medians of their times from the start to the end, and of the processor time that
the server took. On a machine that is busy with other things the former differ by more than what is to be measured. The
processor time of a single look is given too. Under 2 % is the aim.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from worldline.federation.server.operating import look_at
from worldline.history.outcome import Status
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import Launch
from worldline.recording.timing import TimingWriter
from worldline.wire.operator import SituationTold, operator_frame

PARTICIPANTS = 8
LOOKS_PER_SECOND = 8
PROGRAM = """
def pass_on(me):
    me.publish(f"from {me.name}", b"0")
    for message in me.messages():
        me.publish(f"from {me.name}", b"%d" % (int(message.payload) + 1))
"""


def write_ring(folder: Path, milliseconds: int) -> Path:
    """Write a federation whose participants pass messages on in a circle, each every millisecond."""
    parts = "".join(
        f'[[participants]]\nname = "p{number}"\nentry = "ring:pass_on"\npublishes = ["from p{number}"]\n'
        f'subscribes = ["from p{(number - 1) % PARTICIPANTS}"]\n'
        for number in range(PARTICIPANTS)
    )
    (folder / "ring.py").write_text(PROGRAM)
    file = folder / "ring.toml"
    file.write_text(f'name = "ring"\nuntil = "{milliseconds}ms"\n[link]\nlatency = "1ms"\n{parts}')
    return file


class _Watching:
    """Measures a run from its first moment to its last, and what a look takes of the processor."""

    def __init__(self, launch: Launch, *, is_followed: bool) -> None:
        self.launch = launch
        self.is_followed = is_followed
        self.begun_at = 0
        self.began: float | None = None
        self.used = 0.0
        self.looks: list[float] = []

    def __call__(self, status: Status) -> None:
        self.begin(status)
        if self.began is not None and len(self.looks) < 100:
            began = time.thread_time()
            operator_frame(SituationTold(look_at(self.launch.server)))
            self.looks.append(time.thread_time() - began)

    def begin(self, status: Status) -> None:
        """Begin to measure, once whoever follows the run is there: starting that isn't part of looking."""
        if self.began is None and status.time > 0 and (self.launch.server.host._trunks or not self.is_followed):
            self.began, self.used, self.begun_at = time.perf_counter(), time.process_time(), status.time


@contextmanager
def following(*, wanted: bool) -> Iterator[None]:
    """Follow whatever runs, as a user would."""
    if not wanted:
        yield
        return
    command = [sys.executable, "-m", "worldline", "why", "ring", "--follow", "--json", "--every", "0.5"]
    watcher = subprocess.Popen(
        ["sh", "-c", 'until "$@" 2> /dev/null; do :; done', "sh", *command], stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def run_once(file: Path, kind: str) -> tuple[float, float, list[float]]:
    """Run it, and return how many seconds it took, those of the server's processor, and what looks took."""
    setup = read_setup(file)
    writer = TimingWriter(file.with_suffix(".timing"), "ring", setup.plan) if kind == "timing" else None
    launch = Launch(setup, hear=lambda *_: None, witness=writer)
    watching = _Watching(launch, is_followed=kind == "followed")
    with following(wanted=kind == "followed"):
        launch.run(watching if kind == "looks" else watching.begin)
        ended, used = time.perf_counter(), time.process_time()
    if writer is not None:
        writer.close()
    assert watching.began is not None, "the run is too short: nobody has seen it"
    assert setup.plan.end is not None
    part = (setup.plan.end - watching.begun_at) / setup.plan.end  # Of the run.
    return (ended - watching.began) / part, (used - watching.used) / part, watching.looks


def measure(rounds: int, milliseconds: int) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the median seconds of each kind of run, those of its server's processor, and those of a look."""
    took: dict[str, list[tuple[float, float]]] = {"alone": [], "followed": [], "timing": []}
    with tempfile.TemporaryDirectory() as folder:
        file = write_ring(Path(folder), milliseconds)
        *_, looks = run_once(file, "looks")
        for _ in range(rounds):
            for kind, seconds in took.items():
                seconds.append(run_once(file, kind)[:2])
    medians = {
        kind: (statistics.median(wall for wall, _ in runs), statistics.median(used for _, used in runs))
        for kind, runs in took.items()
    }
    return medians, statistics.median(looks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=int, default=4000)
    arguments = parser.parse_args()
    took, look_s = measure(arguments.rounds, arguments.milliseconds)
    messages = arguments.milliseconds * PARTICIPANTS
    table = Table("a run", "seconds", "messages/s", "than alone", "server's processor", "than alone")
    for kind, (seconds, used) in took.items():
        more, much = (f"{mine / alone - 1:+.1%}" for mine, alone in zip(took[kind], took["alone"], strict=True))
        table.add_row(kind, f"{seconds:.2f}", f"{messages / seconds:,.0f}", more, f"{used:.2f}", much)
    console = Console()
    console.print(table)
    share = look_s * LOOKS_PER_SECOND
    console.print(f"a look takes {look_s * 1e6:.0f} µs; {LOOKS_PER_SECOND} of them are {share:.2%} of a second")


if __name__ == "__main__":
    main()
