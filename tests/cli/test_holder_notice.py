"""Whoever holds all others for long is named, and nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from worldline.cli.run_federation import holder_notice
from worldline.history.outcome import ALL_OTHERS, THE_RUN, Status, WaitReason
from worldline.model import MS

CHAIN = (WaitReason("a", "b", "a waits"), WaitReason("b", "c", "b waits for c"))


class Hour:
    """A clock that is moved by hand, and what was said at which time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[tuple[float, str]] = []
        self.notice = holder_notice(lambda text: self.said.append((self.now, text)), 10.0, lambda: self.now)

    def pass_(self, seconds: float, time: int, waits: tuple[WaitReason, ...] = CHAIN) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.5
            self.notice(Status(time, ask=lambda: waits))


def test_the_one_at_the_root_is_named_after_the_patience_and_then_ever_less_often() -> None:
    hour = Hour()
    hour.pass_(100, 5 * MS)
    assert [at for at, _ in hour.said] == [10.5, 20.5, 40.5, 80.5]
    assert hour.said[0][1] == "c has held the run at 5ms for 10 s: b waits for c"


def test_nobody_is_named_as_long_as_time_goes_on() -> None:
    hour = Hour()
    for step in range(20):
        hour.pass_(9, step * MS)
    assert hour.said == []


def test_when_time_has_gone_on_the_patience_begins_anew() -> None:
    hour = Hour()
    hour.pass_(15, 5 * MS)
    hour.pass_(15, 6 * MS)
    assert [text.partition(" for ")[0] for _, text in hour.said] == [
        "c has held the run at 5ms",
        "c has held the run at 6ms",
    ]


def test_an_operator_or_somebody_missing_isnt_named() -> None:
    hour = Hour()
    hour.pass_(50, 5 * MS, (WaitReason("a", None, "the barrier is at 5ms"),))
    hour.pass_(50, 0, (WaitReason(THE_RUN, "late", "it begins when late has joined"),))
    hour.pass_(50, 6 * MS, ())
    assert hour.said == []


def test_in_one_process_the_one_that_runs_is_named() -> None:
    hour = Hour()
    hour.pass_(11, 5 * MS, (WaitReason(ALL_OTHERS, "slow", "slow has been running for 11 s"), *CHAIN))
    assert hour.said[0][1] == "slow has held the run at 5ms for 10 s: slow has been running for 11 s"


SLOW = """
import time
def slow(me):
    time.sleep(1.5)
"""


def test_patience_that_is_asked_for_speaks_also_with_quiet(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "slow.toml").write_text('until = "1s"\n[[participants]]\nname = "a"\nentry = "slow:slow"\n')
    command = ("-m", "worldline", "run", "slow.toml", "--quiet", "--no-record", "--patience", "0.2")
    run = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "a has held the run at 0s for " in run.stderr
