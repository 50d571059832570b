"""Exchanges: how orders get to secondaries, and acks back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from worldline.world.engine import PhysicsEngine, agreement
from worldline.world.hosting import Hosting
from worldline.world.orders import StepAck, StepOrder


class Exchange(Protocol):
    """Reaches all secondaries of a run."""

    @property
    def secondaries(self) -> tuple[str, ...]: ...

    @property
    def agreement(self) -> dict[str, str]:
        """What all secondaries simulate: see `engine.agreement`."""

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        """Hand out orders, and hand back acks until that returns true: they are all there."""

    def wait(self, seconds: float) -> None:
        """Let that much time of the wall clock pass, and raise if a secondary goes meanwhile."""


class LocalExchange:
    """Secondaries in this very process, one after the other; one is enough, unless placement is to be seen."""

    def __init__(self, open_engine: Callable[[], PhysicsEngine], names: Iterable[str] = ("local",)) -> None:
        engines = {name: open_engine() for name in names}
        self._hostings = {name: Hosting(name, engine) for name, engine in engines.items()}
        self.agreement = agreement(next(iter(engines.values())))

    @property
    def secondaries(self) -> tuple[str, ...]:
        return tuple(sorted(self._hostings))

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        for name, order in orders.items():
            take(self._hostings[name].carry_out(order))

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
