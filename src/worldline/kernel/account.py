"""What an observer is told of entities: the engine comes here only if there is an observer.

What isn't a message between two entities is a note of the one to which it happens: a timer that rings, a process that
goes on, a value that is recorded, a line in its log. What comes from outside has no sender, and takes no time: it is
sent when it arrives.

The chain of who was created during the run and has ended is part of that of who has its place (`roster.py`), whether
that one has ended or not. So its end is told without a chain, and those of all others at the end of the run.
"""

from __future__ import annotations

from typing import Any

from worldline.history.plain import encoded
from worldline.kernel.packing import PackedCopy

TIMER, PROCESS, RECORD = "worldline/timer", "worldline/process", "worldline/record"
"""The topics of notes: of timers that ring, of processes that go on, of values that are recorded."""


def tell_sending(
    engine: Any,
    sender: Any,
    target: Any,
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
    observer.sent(sender.name, number, topic, engine.now, payload_told(payload), until)
    observer.arrives(sender.name, number, target.name, arrival, 0, lost)
    if arrival_of_copy:
        observer.arrives(sender.name, number, target.name, arrival_of_copy, 1, lost)


def tell_unheard(engine: Any, sender: Any, target: Any, reason: str) -> None:
    """Take back that the message at hand reaches its receiver."""
    if not getattr(target, "_wl_tells_itself", False):
        order = engine.order
        engine.observer.arrives(sender.name, order >> 1, target.name, engine.now, order & 1, reason)


def tell_own(engine: Any, entity: Any, topic: str, what: Any) -> None:
    """Tell what happens to an entity alone, as a note of its own."""
    if not entity._wl_tells_itself:
        engine.observer.noted(entity.name, topic, engine.now, encoded(what))


def told_of_timer(topic: Any, payload: Any) -> dict[str, Any]:
    """Return what there is to tell of a timer; one without a topic ends a time that a process waits for."""
    return {"topic": topic, "payload": payload} if isinstance(topic, str) else {"topic": None, "payload": None}


def payload_told(carried: Any) -> bytes:
    return encoded(carried.open() if type(carried) is PackedCopy else carried)
