"""Environments that keep up with the clock on the wall."""

from __future__ import annotations

from time import monotonic, sleep

from worldline.simpy.engine import EmptySchedule, Environment, Infinity, SimTime


class RealtimeEnvironment(Environment):
    """An Environment of which a unit of time takes `factor` seconds. If `strict`, being late by one is an error."""

    def __init__(self, initial_time: SimTime = 0, factor: float = 1.0, strict: bool = True) -> None:
        super().__init__(initial_time)
        self.env_start = initial_time
        self.real_start = monotonic()
        self._factor = factor
        self._strict = strict

    @property
    def factor(self) -> float:
        return self._factor

    @property
    def strict(self) -> bool:
        return self._strict

    def sync(self) -> None:
        """Take this moment as the one at which the simulation began."""
        self.real_start = monotonic()

    def step(self) -> None:
        """Wait for the next event's moment, and let it happen; too late a moment is an error, if `strict`."""
        time = self.peek()
        if time is Infinity:
            raise EmptySchedule
        due = self.real_start + (time - self.env_start) * self._factor
        late = monotonic() - due
        if self._strict and late > self._factor:
            raise RuntimeError(f"Simulation too slow for real time ({late:.3f}s).")
        while (left := due - monotonic()) > 0:  # A signal may end a sleep early.
            sleep(left)
        super().step()
