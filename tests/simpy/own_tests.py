"""A plugin of pytest that runs SimPy's own tests against ours: `import simpy` means Worldline's.

Its benchmarks are run once, as tests. Its tests of real time have a clock of their own here, which sleeping advances:
by the machine's clock, they would fail wherever it is busy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from worldline.simpy import rt

for name, module in list(sys.modules.items()):
    if f"{name}.".startswith("worldline.simpy."):
        sys.modules[name.removeprefix("worldline.")] = module


class Clock:
    """A clock that goes on only when a program sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds + 1e-6  # No sleep is shorter than it was meant to be.


@pytest.fixture
def benchmark() -> Callable[..., Any]:
    return lambda function, *arguments: function(*arguments)


@pytest.fixture(autouse=True)
def _clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for place in (rt, request.module):
        for name in ("monotonic", "sleep"):
            if hasattr(place, name):
                monkeypatch.setattr(place, name, getattr(clock, name))
