"""Secondaries on this machine."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from worldline.processes.lifeline import Lifeline
from worldline.world import distributed as local
from worldline.world.distributed import LocalSecondaries


class Stubborn:
    """A process that ends only when it has to, and a clock that moves while somebody waits for it."""

    now = 0.0

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None:
            Stubborn.now += timeout
            raise subprocess.TimeoutExpired("secondary", timeout)
        return -9


def test_all_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.time, "monotonic", lambda: Stubborn.now)
    with LocalSecondaries(Path("any.sdf"), "kinematic", 5) as secondaries:
        for name in secondaries.names:
            process: Any = Stubborn()
            lifeline = Lifeline()
            lifeline.hand_over()
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process.
            secondaries._processes.append(local._LocalProcess(name, process, lifeline, said))
    assert Stubborn.now == local._GRACE_S
