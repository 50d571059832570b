"""The draws of a participant's clock, by name: the steps of its walk.

A step is drawn when the clock is first asked about a time that depends on it. That may be before that time, since a
participant may ask its clock about the future.
"""

from __future__ import annotations

from collections.abc import Callable

from worldline.model.clock import LocalClock, RunningClock
from worldline.model.distributions import ClockRate, Distribution
from worldline.model.draw_names import CLOCK_WALK
from worldline.model.draws import DrawSource, DrawTable
from worldline.model.latency import Uniform


def clock_distributions(described: LocalClock) -> dict[str, Distribution]:
    """Return what is drawn of a clock, by purpose."""
    walk = described.wander
    return {} if walk is None else {CLOCK_WALK: ClockRate(Uniform(-walk.step, walk.step))}


def clock_by_table(
    described: LocalClock, seed: int, participant: str, table: DrawTable, time: Callable[[], int]
) -> RunningClock:
    """Return a participant's clock in a run whose draws go through a table; `time` says when they are made."""
    distribution = clock_distributions(described).get(CLOCK_WALK)
    if distribution is None:
        return RunningClock(described, seed, participant)

    def step(segment: int) -> int:
        name = (CLOCK_WALK, participant, str(segment - 1))  # There is none into the first segment.
        return int(table.draw(DrawSource(name, distribution, ("clock", participant), segment), time()))

    return RunningClock(described, seed, participant, step)
