"""When a participant that didn't have to wait tells what it has said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from worldline.federation.participant.aio import AsyncParticipant
from worldline.federation.participant.participant import Participant
from worldline.lock import Join, Ledger, ParticipantEvent, Promise, Publish, Reached, StartRun, Subscription
from worldline.lock.ledger import Wire
from worldline.model import FOREVER, Message


class Courier(Wire):
    """Takes what is told, and tells only what is urgent."""

    disowned = False

    def __init__(self) -> None:
        self.told: list[list[ParticipantEvent]] = []

    def tell(self, events: list[ParticipantEvent]) -> None:
        self.told.append(events)

    def is_due(self, urgent: bool) -> bool:
        return urgent

    async def drain(self) -> None: ...


def next_of(kind: str, ledger: Ledger, courier: Courier) -> Any:
    if kind == "blocking":
        return Participant(ledger, courier).next  # type: ignore[arg-type]
    participant = AsyncParticipant(ledger, courier)  # type: ignore[arg-type]
    return lambda *given, **named: asyncio.run(participant.next(*given, **named))


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
def test_a_promise_is_told_once_the_participant_moves_on_and_not_before(kind: str) -> None:
    ledger, courier = Ledger("a", Join(subscribes=(Subscription("x"),))), Courier()
    ledger.take_outbox()
    ledger.receive(StartRun("a", 0, 0, 1, FOREVER))
    ledger.horizon = 100
    ledger.held.append(Message(0, 0, "b", 0, 0, "x", b""))
    next_ = next_of(kind, ledger, courier)
    ledger.publish("y", b"")
    assert len(next_(50, promise=50)) == 1  # It arrives now, and there is more to do at this time.
    assert courier.told == []
    assert next_(50) == []
    assert courier.told == [[Publish("y", b"", 0), Promise(50), Reached(50)]]
    assert next_(60) == []  # Nothing presses any more.
    assert len(courier.told) == 1
