"""Federations whose programs take time, for tests of how long they wait."""

from __future__ import annotations

from tests.lock.why.theater import Actor, Play, Role
from worldline.model import MS, Network, Plan, link, plan


def camera(me: Actor) -> Play:
    """Takes a picture every 33 ms, which takes 20 ms."""
    while True:
        yield me.spend(20)
        me.publish("images")
        yield me.advance(me.now + 33 * MS)


def planner(me: Actor) -> Play:
    """Decides every 10 ms."""
    while True:
        yield me.advance(me.now + 10 * MS)
        yield me.spend(4)
        me.publish("commands")


def arm(me: Actor) -> Play:
    """Reacts to each command."""
    while (yield me.next()):
        yield me.spend(3)
        me.publish("pose")


def logger(me: Actor) -> Play:
    """Looks at everything, and sends a summary every 100 ms."""
    until = 100 * MS
    while True:
        yield me.next(until)
        yield me.spend(1)
        if me.now >= until:
            until += 100 * MS
            me.publish("log")


def watchdog(me: Actor) -> Play:
    """Barks if it hears nothing for 12 ms."""
    while True:
        heard = yield me.next(me.now + 12 * MS)
        yield me.spend(0.2)
        if not heard:
            me.publish("alarm")


CELL = {
    "camera": Role(camera, ("images",), ("pose",)),
    "planner": Role(planner, ("commands",), ("images",)),
    "arm": Role(arm, ("pose",), ("commands",)),
    "logger": Role(logger, ("log",), ("pose", "images")),
}
GUARDED = {**CELL, "watchdog": Role(watchdog, ("alarm",), ("pose",))}


def cell(roles: dict[str, Role] | None = None, latency: str = "5ms", until: str = "1s") -> Plan:
    return plan(list(roles or CELL), network=Network(default=link(latency)), until=until)
