"""Two halves joined by hand: one loop over both simulators, without Worldline, LCM or events of publishers.

A half's output is looked at when it is to be published, and kept for as long as it is under way; then it is written
into the other's input. Nothing here is shared with what it judges.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder

from tests.metasim.halves import Half, Pair, State, set_start, state_of
from worldline.model import as_time


class HandDriven:
    """A half whose input and output are open."""

    def __init__(self, half: Half, latency: int) -> None:
        builder = DiagramBuilder()
        self._system, taken, given = half.make(builder)
        builder.ExportInput(taken, "in")
        builder.ExportOutput(given, "out")
        self._diagram = builder.Build()
        self._simulator = Simulator(self._diagram)
        self._context = self._simulator.get_mutable_context()
        self._period, self._step = half.period, half.step
        self._published = 0  # How many times.
        self.states: list[State] = []
        self.latency = latency
        self.arriving: list[tuple[int, np.ndarray]] = []
        self._fix(np.zeros(taken.size()))
        set_start(half, self._system.GetMyMutableContextFromRoot(self._context))
        self._simulator.set_monitor(self._note)
        self._simulator.Initialize()

    def due(self) -> int:
        """Return when it does anything next that concerns the other one, in nanoseconds."""
        publishing = _nearest(self._published * self._period)
        return min(publishing, self.arriving[0][0]) if self.arriving else publishing

    def act(self, now: int) -> list[tuple[int, np.ndarray]]:
        """Run to the present time; return what it publishes then, and when that arrives."""
        own = self._published * self._period
        publishes = _nearest(own) == now
        if now:  # It has begun there, and a second look would be a step.
            self._simulator.AdvanceTo(min(own, self._on_step(now, own)) if publishes else self._on_step(now, now / 1e9))
        if not publishes:
            return []
        self._published += 1
        return [(now + self.latency, self._diagram.GetOutputPort("out").Eval(self._context).copy())]

    def take(self, now: int) -> None:
        """Let what arrives now have its effect; the last counts."""
        while self.arriving and self.arriving[0][0] == now:
            self._fix(self.arriving.pop(0)[1])

    def finish(self, end: int) -> None:
        if end > _nearest(self._context.get_time()):
            self._simulator.AdvanceTo(self._on_step(end, end / 1e9))

    def _on_step(self, now: int, otherwise: float) -> float:
        """Return the simulator's own float for a time at which it makes a step, if it does."""
        if self._step is None:
            return otherwise
        own = self._step * round(Fraction(now, 10**9) / Fraction(self._step))
        return own if _nearest(own) == now else otherwise

    def _fix(self, value: np.ndarray) -> None:
        self._diagram.GetInputPort("in").FixValue(self._context, value)

    def _note(self, context: Context) -> None:
        self.states.append((context.get_time(), state_of(self._system.GetMyContextFromRoot(context))))


def _nearest(seconds: float) -> int:
    return round(Fraction(seconds) * 10**9)


def by_hand(pair: Pair, until: str, lost: Callable[[str, int], bool] = lambda *_: False) -> dict[str, list[State]]:
    """Run a pair in one loop, and return the states of each; `lost` says so of a sender's message by its number."""
    end = as_time(until)
    sides = {
        "plant": HandDriven(pair.plant, as_time(pair.forth)),
        "controller": HandDriven(pair.controller, as_time(pair.back)),
    }
    other = {"plant": sides["controller"], "controller": sides["plant"]}
    count = {"plant": 0, "controller": 0}
    while (now := min(side.due() for side in sides.values())) <= end:
        acting = {name: side for name, side in sides.items() if side.due() == now}
        for name, side in acting.items():
            for message in side.act(now):
                if not lost(name, count[name]):
                    other[name].arriving.append(message)
                count[name] += 1
        if now == end:  # What arrives at the end comes too late.
            break
        for side in acting.values():
            side.take(now)
    for side in sides.values():
        side.finish(end)
    return {name: side.states for name, side in sides.items()}
