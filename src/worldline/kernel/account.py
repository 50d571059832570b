"""What an observer is told of entities: the engine comes here only if somebody looks on.

What isn't a message between two entities is a note of the one to which it happens: a timer that rings, a process that
goes on, a value that is recorded. What comes from outside has no sender, and takes no time: it is sent when it arrives.

The chain of who was created during the run and has ended is part of that of who has its place (`roster.py`), whether
that one has ended or not. So its end is told without a chain, and those of all others at the end of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from worldline.history.observer import Observer
from worldline.history.outcome import End
from worldline.history.plain import encoded
from worldline.kernel.parcel import Parcel

if TYPE_CHECKING:
    from worldline.kernel.build import Core, Engine
    from worldline.kernel.entity import Entity
    from worldline.kernel.model import Model, Sending

OUTSIDE = ""  # The name of the sender of what is sent from outside; no entity can have it.

TIMER, PROCESS, RECORD = "worldline/timer", "worldline/process", "worldline/record"
"""The topics of notes: of timers that ring, of processes that go on, of values that are recorded."""


# -- Told once for all entities, whoever they are run by


def tell_beginning(observer: Observer, model: Model) -> None:
    """Tell who takes part from the start, and what is sent from outside as far as that is known."""
    observer.began(OUTSIDE, 0)
    for name in model.names:
        observer.began(name, 0)
    for number, sending in sorted(enumerate(model.sendings), key=lambda each: each[1].at):
        tell_from_outside(observer, number, sending, model.entities)


def tell_from_outside(observer: Observer, number: int, sending: Sending, entities: Mapping[str, Entity]) -> None:
    """Tell of a message from outside, unless its receiver does."""
    if sending.to in entities and entities[sending.to]._wl_tells_itself:
        return
    observer.sent(OUTSIDE, number, sending.topic, sending.at, _payload(sending.payload), sending.at)
    observer.arrives(OUTSIDE, number, sending.to, sending.at, 0, None)


def tell_end(observer: Observer, members: Mapping[str, End], now: int) -> None:
    """Tell what has become of everybody."""
    for name, (at, chain) in sorted(members.items()):
        observer.ended(name, at, chain)
    observer.passed(now)


# -- Told by engines, of their own entities


def tell_sending(
    engine: Engine,
    sender: Entity,
    target: Core,
    topic: str,
    payload: Any,
    order: int,
    arrival: int,
    arrival_of_copy: int,
    lost: str | None,
) -> None:
    """Tell of a message, and what will become of it; without a copy, that one's arrival is 0."""
    if sender._wl_tells_itself:
        return
    observer, number = engine.observer, order >> 1
    until = max(arrival, arrival_of_copy)
    observer.sent(sender.name, number, topic, engine.now, _payload(payload), until)
    observer.arrives(sender.name, number, target.name, arrival, 0, lost)
    if arrival_of_copy:
        observer.arrives(sender.name, number, target.name, arrival_of_copy, 1, lost)


def tell_unheard(engine: Engine, sender: Core, target: Core, reason: str) -> None:
    """Take back that the message at hand reaches its receiver."""
    if not getattr(target, "_wl_tells_itself", False):
        order = engine.order
        engine.observer.arrives(sender.name, order >> 1, target.name, engine.now, order & 1, reason)


def tell_timer(engine: Engine, entity: Entity, topic: str, payload: Any) -> None:
    _tell(engine, entity, TIMER, {"topic": topic, "payload": payload})


def tell_waking(engine: Engine, entity: Entity, generator: Any) -> None:
    _tell(engine, entity, PROCESS, {"process": generator.__qualname__})


def tell_interruption(engine: Engine, entity: Entity, generator: Any, cause: Any) -> None:
    """Tell that an entity has interrupted a process of its own; what others do is a message."""
    _tell(engine, entity, PROCESS, {"process": generator.__qualname__, "interrupt": cause})


def tell_note(engine: Engine, entity: Entity, value: Any) -> None:
    _tell(engine, entity, RECORD, value)


def _tell(engine: Engine, entity: Entity, topic: str, what: Any) -> None:
    if not entity._wl_tells_itself:
        engine.observer.noted(entity.name, topic, engine.now, encoded(what))


def _payload(carried: Any) -> bytes:
    return encoded(carried.open() if type(carried) is Parcel else carried)
