"""The primary's end of a federation: orders to secondaries as messages, and their acks.

The primary is a participant that lives in the server's own thread. What is published is an order to each secondary that
has something to do, and the lock hands out the acks when all have answered. The federation's time is that of the run:
an order goes out at its iteration's time, and the ack is back two nanoseconds later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from worldline.world.orders import StepAck, StepOrder, decode_ack, encode
from worldline.world.secondary import orders_for

if TYPE_CHECKING:
    from worldline.federation.resident import Resident


class FederationExchange:
    """Reaches secondaries over a resident participant that has joined."""

    def __init__(self, resident: Resident, secondaries: tuple[str, ...]) -> None:
        self.secondaries = secondaries
        self._resident = resident

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        me = self._resident
        for name, order in orders.items():
            at = max(me.now, order.iteration * order.step_size)
            me.publish(orders_for(name), encode(order), at, at_once=False)
        complete = False
        while not complete:
            for message in me.next():
                ack = decode_ack(message.payload)
                # Whoever sent it, not whoever it says it is from.
                complete = take(ack) if ack.sender == message.sender else complete

    def wait(self, seconds: float) -> None:
        self._resident.serve_for(seconds)
