"""A simulation as it is given to executors: who takes part, the links, and what is sent from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from worldline.history.outcome import End
from worldline.kernel.entity import Entity
from worldline.kernel.monitor import Monitor
from worldline.kernel.topology import KernelNetwork

Made = TypeVar("Made")


class Sending(NamedTuple):
    """A message from outside: its payload's fingerprint, and the payload, packed if it can change."""

    to: str
    topic: str
    content: int
    payload: Any
    at: int


@dataclass(frozen=True)
class Model:
    """All that a run depends on."""

    names: tuple[str, ...]  # Sorted.
    entities: Mapping[str, Entity]
    topology: KernelNetwork
    seed: int
    sendings: tuple[Sending, ...] = ()
    created: dict[str, Entity] = field(default_factory=dict)  # By the run; brought back from workers.

    def outline(self) -> tuple[object, ...]:
        """Return what two processes that build the same model agree on."""
        kinds = tuple(type(self.entities[name]).__qualname__ for name in self.names)
        sendings = tuple(sending._replace(payload=None) for sending in self.sendings)
        return self.names, kinds, self.topology.network, self.topology.declared_only, self.seed, sendings


@dataclass
class WorkerReport:
    """What one worker has to tell of a run.

    Monitors of those who haven't ended have no end either: when the run ended, one worker alone can't say.
    """

    now: int
    events: int
    members: dict[str, End]
    dropped: dict[tuple[str, str, str], int]
    monitors: dict[tuple[str, str], Monitor]
    states: dict[str, Any] = field(default_factory=dict)


def state_of(entity: Any, base: type = Entity) -> dict[str, Any]:
    """Return an entity's own attributes, those in slots too; what its base class keeps isn't its own."""
    state = dict(vars(entity))
    for kind in type(entity).__mro__:
        if kind is base:
            break
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(entity, name):
                state[name] = getattr(entity, name)
    return state


def restored(entity: Made, state: dict[str, Any]) -> Made:
    """Give an entity the attributes of a state, and no others; return it."""
    for name in list(vars(entity)):
        if name not in state:
            delattr(entity, name)
    for name, value in state.items():
        setattr(entity, name, value)
    return entity
