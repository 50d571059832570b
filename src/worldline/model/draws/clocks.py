"""The draws of a participant's clock, by name: its offset and drift, and the steps of its walk.

A step is drawn when the clock is first asked about a time that depends on it. That may be before that time, since a
participant may ask its clock about the future. Everything else is drawn at the start.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from worldline.model.clock import LocalClock, RunningClock
from worldline.model.draws.distributions import ClockOffset, ClockRate, Distribution
from worldline.model.draws.draws import DrawSource, DrawTable
from worldline.model.draws.names import CLOCK_DRIFT, CLOCK_OFFSET, CLOCK_WALK
from worldline.model.latency import Uniform

_KEYS = {CLOCK_OFFSET: "clock offset", CLOCK_DRIFT: "clock drift", CLOCK_WALK: "clock"}


def clock_distributions(described: LocalClock) -> dict[str, Distribution]:
    """Return what is drawn of a clock, by purpose."""
    found: dict[str, Distribution] = {}
    if not isinstance(described.offset, int):
        found[CLOCK_OFFSET] = ClockOffset(described.offset)
    if not isinstance(described.drift, int):
        found[CLOCK_DRIFT] = ClockRate(described.drift)
    if described.wander is not None:
        found[CLOCK_WALK] = ClockRate(Uniform(-described.wander.step, described.wander.step))
    return found


def clock_in_run(
    described: LocalClock, seed: int, participant: str, table: DrawTable | None, time: Callable[[], int]
) -> RunningClock:
    """Return a participant's clock in a run; `table` replaces its draws, and `time` says when they are made."""
    distributions = clock_distributions(described)
    drawing = DrawTable(seed) if table is None else table

    def draw(purpose: str, number: int, sequence: int) -> int:
        name = (purpose, participant, str(number))
        source = DrawSource(name, distributions[purpose], (_KEYS[purpose], participant), sequence)
        return int(drawing.draw(source, time()))

    def step(segment: int) -> int:
        return draw(CLOCK_WALK, segment - 1, segment)  # There is none into the first segment.

    if CLOCK_OFFSET in distributions:
        described = replace(described, offset=draw(CLOCK_OFFSET, 0, 0))
    if CLOCK_DRIFT in distributions:
        described = replace(described, drift=draw(CLOCK_DRIFT, 0, 0))
    return RunningClock(described, seed, participant, None if table is None else step)
