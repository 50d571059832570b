"""A simulation as executors are given it, the share of each worker, and what comes of a run."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from worldline.history.journal import run_digest
from worldline.history.monitor import Monitor, Monitors
from worldline.history.observer import OUTSIDE, Observer
from worldline.history.outcome import End, Outcome
from worldline.kernel.account import payload_told
from worldline.kernel.entity import Entity
from worldline.kernel.roster import KernelNetwork
from worldline.model.errors import ConfigurationError, Stuck, WorldlineError

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


def quicken(entity: Entity) -> None:
    """Give an entity a dict of attributes of its own, which takes more memory.

    Objects of one class share the keys of their dicts. If the class is built on one that C knows, as these are, Python
    then reads and writes attributes half as fast as it could. Without attributes there is no dict yet; to ask for it
    would make one, and that would slow down calls of methods.
    """
    kind = type(entity)
    own = kind.__mro__[: kind.__mro__.index(Entity)]
    if kind.__init__ is not object.__init__ and any("__slots__" not in each.__dict__ for each in own):
        entity.__dict__ = {**vars(entity)}


def restored(entity: Made, state: dict[str, Any]) -> Made:
    """Give an entity the attributes of a state, and no others; return it."""
    for name in list(vars(entity)):
        if name not in state:
            delattr(entity, name)
    for name, value in state.items():
        setattr(entity, name, value)
    return entity


# -- What comes of a run, whatever executed it


@dataclass(frozen=True, kw_only=True)
class KernelOutcome(Outcome):
    """What a simulation has come to so far. Who hasn't ended is among the members with the time FOREVER."""


def combined(parts: Sequence[WorkerReport], until: int | None) -> KernelOutcome:
    """Put together what the workers tell."""
    members: dict[str, End] = {}
    dropped: dict[tuple[str, str, str], int] = {}
    monitors: dict[tuple[str, str], Monitor] = {}
    for part in parts:
        members.update(part.members)
        for what, number in part.dropped.items():
            dropped[what] = dropped.get(what, 0) + number
        monitors.update(part.monitors)
    now = max(part.now for part in parts) if until is None else until
    for monitor in monitors.values():
        if monitor.end is None:
            monitor.end = now
    return KernelOutcome(
        digest=run_digest((name, at, chain) for name, (at, chain) in members.items()),
        now=now,
        events=sum(part.events for part in parts),
        members=members,
        dropped=dict(sorted(dropped.items())),
        monitors=Monitors(sorted(monitors.items())),
    )


# -- What a worker in another process is given, and what it gives back, as bytes


def shares_of(model: Model, workers: Sequence[int], count: int) -> list[bytes]:
    """Return each worker's share, a model of which only its entities are there; refuse what can't be sent."""
    entities: list[dict[str, bytes]] = [{} for _ in range(count)]
    advice = "make it something that can be pickled, or make it in start(), which runs in the worker"
    for name, worker in zip(model.names, workers, strict=True):
        entity = model.entities[name]
        entities[worker][name] = packed_state(type(entity), state_of(entity), name, advice, is_opened=True)
    network, declared_only = model.topology.network, model.topology.declared_only
    return [_dumps((model.names, workers, own, network, declared_only, model.seed, model.sendings)) for own in entities]


def packed_state(kind: type, state: dict[str, Any], name: str, advice: str, *, is_opened: bool) -> bytes:
    """Return a class and an object's attributes as bytes; if something can't be sent to a worker, say which it is.

    With `is_opened` it is also looked whether it can be unpickled.
    """
    try:
        packed = _dumps((kind, state))
        if is_opened and kind.__module__ != "__main__":  # That module exists only here until a worker has its own.
            pickle.loads(packed)
    except Exception:  # An attribute's own code may raise anything; which one it was is found below.
        parts = [(f"its attribute {attribute}", value, advice) for attribute, value in state.items()]
        for what, value, hint in [*parts, ("its class", kind, "define it at the top level of a module")]:
            reason = _obstacle(value, is_opened=is_opened)
            if reason is not None:
                problem = f"{what} can't be sent to a worker: {reason}"
                raise ConfigurationError(problem, participant=name, advice=hint) from None
        raise
    return packed


class LeftBehind:
    """Stands for an attribute that couldn't be brought back from a worker."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # What pickle and others look for.
            raise AttributeError(name)
        raise AttributeError(
            f"{name} was left behind in the worker: {self.reason} (for later, keep in an attribute what can be pickled)"
        )

    def __repr__(self) -> str:
        return f"<left behind in the worker: {self.reason}>"


def final_state(kind: type, state: dict[str, Any], *, is_opened: bool) -> bytes | None:
    """Return a class and an object's attributes after a run; what can't leave the process is said to be left behind.

    None if its class can't be found from outside, as it may be for an object that was created during the run.
    """
    if _obstacle(kind, is_opened=is_opened) is not None:
        return None
    try:
        return _dumps((kind, state))
    except Exception:  # As above.
        reasons = {name: _obstacle(value, is_opened=is_opened) for name, value in state.items()}
        return _dumps((kind, {name: state[name] if why is None else LeftBehind(why) for name, why in reasons.items()}))


def _obstacle(value: Any, *, is_opened: bool) -> str | None:
    """Return why a value can't leave the process; None if it can."""
    try:
        packed = _dumps(value)
        if is_opened:
            pickle.loads(packed)
    except Exception as error:  # As above.
        return error.problem if isinstance(error, WorldlineError) else str(error)
    return None


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


# -- What an observer is told once for all entities: the beginning of a run, and its end


def tell_beginning(observer: Observer, model: Model) -> None:
    """Tell who takes part from the start, and what is sent from outside as far as that is known."""
    observer.began(OUTSIDE, 0)
    for name in model.names:
        observer.began(name, 0)
    for number, sending in sorted(enumerate(model.sendings), key=lambda each: each[1].at):
        tell_from_outside(observer, number, sending, model.entities)


def tell_from_outside(observer: Observer, number: int, sending: Sending, entities: Mapping[str, Entity]) -> None:
    """Tell of a message from outside, unless its receiver does."""
    if getattr(entities.get(sending.to), "_wl_tells_itself", False):
        return
    observer.sent(OUTSIDE, number, sending.topic, sending.at, payload_told(sending.payload), sending.at)
    observer.arrives(OUTSIDE, number, sending.to, sending.at, 0, None)


def tell_end(observer: Observer, members: Mapping[str, End], now: int) -> None:
    """Tell what has become of all entities."""
    for name, (at, chain) in sorted(members.items()):
        observer.ended(name, at, chain)
    observer.passed(now)


def endless(events_max: int, now: int) -> Stuck:
    """Say that a run goes on for too long to have an end."""
    return Stuck(
        f"it hasn't ended after {events_max:,} events",
        at=now,
        advice="does it ever end? If it takes longer, raise --events-max, or events_max",
    )
