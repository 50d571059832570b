"""A secondary: a client of the primary's federation that does what its orders say."""

from __future__ import annotations

from typing import Unpack

from worldline.federation.address import Address
from worldline.federation.call import Credentials
from worldline.federation.client import connect
from worldline.world.description import WorldDescription
from worldline.world.engine import PhysicsEngine
from worldline.world.hosting import Hosting
from worldline.world.orders import decode_order, encode

ACKS = "ack"
"""The topic on which all secondaries answer."""

PRIMARY = "primary"
"""The name of the participant that a primary is."""


def orders_for(secondary: str) -> str:
    """Return the topic of a secondary's orders: it gets no others."""
    return f"step/{secondary}"


def agreement(world: WorldDescription, engine: PhysicsEngine) -> dict[str, str]:
    """Return what a primary and its secondaries must have in common, or their bits would differ."""
    return {"world": world.source_hash, "physics": engine.fingerprint}


def run_secondary(
    address: str | Address, name: str, engine: PhysicsEngine, *, patience_s: float = 10.0, **given: Unpack[Credentials]
) -> int:
    """Take part in a run until it is over; return the iteration that was reached."""
    hosting = Hosting(name, engine)
    iteration = 0
    client = connect(
        address,
        name,
        patience_s=patience_s,
        publishes=[ACKS],
        subscribes=[orders_for(name)],
        agreement=agreement(engine.world, engine),
        **given,
    )
    with client as me:
        while messages := me.next():
            for message in messages:
                ack = hosting.carry_out(decode_order(message.payload))
                iteration = ack.iteration
                me.publish(ACKS, encode(ack), at_once=False)
    return iteration
