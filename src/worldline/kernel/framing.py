"""What an observer is told once for all entities, whoever runs them: the beginning of a run, and its end."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.history.observer import OUTSIDE, Observer
from worldline.history.outcome import End
from worldline.kernel.account import payload_told
from worldline.kernel.entity import Entity
from worldline.kernel.model import Model, Sending
from worldline.model.errors import Stuck


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
    """Tell what has become of everybody."""
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
