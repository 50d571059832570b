"""An Environment as an entity of the kernel: a SimPy model as a part of a larger simulation.

Inside, times are the model's own. The border has one rule each way (`border.py`). Outwards, an event of the model
happens at its time in nanoseconds, rounded; then the kernel lets the entity act, and what it sends leaves at that
moment. Inwards, a message that arrives at T happens in the model at T / unit, or at the model's time if that is
later already, because it was rounded up.

E1. The entity acts whenever an event of its model is due, and at no other time but when a message arrives. So model and
    kernel never disagree about what comes first by more than half a nanosecond.
E2. What happened in the model becomes part of the entity's history at the end of each turn: so a digest of the
    simulation covers it, and is the same on every executor, as the order of turns is.
"""

from __future__ import annotations

from typing import Any, ClassVar

from worldline.kernel.entity import Entity
from worldline.model.errors import ModelError, UsageError
from worldline.model.randomness import key_of
from worldline.model.time import TimeLike
from worldline.simpy.border import nanoseconds, unit_of
from worldline.simpy.engine import URGENT, Environment, Event, Infinity
from worldline.simpy.hosting import failure_in
from worldline.simpy.resources.store import FilterStore

_DUE = "worldline/due"


class EnvironmentEntity(Entity):
    """Derive from it, and start the model's processes in `set_up`; if that is a generator, it is one itself.

    Messages come to `inbox`, a store: ``message = yield self.inbox.get()``. Processes send by ``self.send(...)``.
    """

    unit: ClassVar[TimeLike] = "1s"
    """How long a unit of the model's time is."""

    def set_up(self, env: Environment) -> Any:
        """Start the model's processes."""
        raise NotImplementedError

    def start(self) -> None:
        seed = key_of(self._wl_roster.seed, "environment", self.name) >> 1
        self.env = Environment(seed=seed, unit=self.unit)
        self.env.measure = self.measure  # type: ignore[method-assign] # What its processes measure is the entity's.
        self.inbox = FilterStore(self.env)
        self._timer: Any = None
        self._unit = unit_of(self.env)
        main = self.set_up(self.env)
        if hasattr(main, "throw"):
            self.env.process(main)
        elif main is not None:
            raise UsageError("set_up() returns something", advice="start processes there, or write it with yield")
        self._turn()

    def handle(self, message: Any) -> None:
        if message.topic != _DUE:
            env = self.env
            arrival = Event(env)
            arrival._ok = True
            arrival._value = message
            arrival.callbacks.append(self._take)
            env.schedule(arrival, URGENT, max(self.now / self._unit - env.now, 0))
        self._turn()

    def _take(self, arrival: Event) -> None:
        self.inbox.put(arrival.value)

    def _turn(self) -> None:
        """Let happen what is due, and see to it that the entity acts again when the next event is."""
        env = self.env
        try:
            while (due := env.peek()) is not Infinity and nanoseconds(due, self._unit) <= self.now:
                env.step()
        except Exception as error:  # It is the model's code, and can raise anything.
            failure = failure_in(env, error)
            if failure is None or failure.process is None:
                raise
            said = f"its process {failure.process.name} has failed: {failure.said}"
            raise ModelError(said, advice=failure.advice) from error
        self._wl_note(_DUE, int(env.chain))
        if self._timer is not None:
            self.cancel(self._timer)
            self._timer = None
        if due != Infinity:
            self._timer = self.schedule(_DUE, delay=nanoseconds(due, self._unit) - self.now)
