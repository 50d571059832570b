"""Federations that are small, and together use every part of a network, of clocks and of faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worldline import EmergencyStop, Federation, Network, Participant, Program, Rule, clock, hold, link, partition
from worldline.model import MS
from worldline.model.latency import exponential, normal, table, uniform

NAMES = ("ann", "bob", "cleo")
UNTIL = "400ms"


def talk(me: Participant) -> None:
    """Publish at times of its own, and answer one message in three."""
    count = me.stable.get("count", 0)
    me.next(within=int(me.random.exponential("10ms")))
    while not me.ended:
        me.publish("word", f"{me.name} {count}".encode())
        for message in me.advance(by=5 * MS + me.random.randrange(10 * MS)):
            count += 1
            me.stable["count"] = count
            if message.topic == "word" and count % 3 == 0:
                me.publish("answer", message.payload + b"!")


def by_the_clock(me: Participant) -> None:
    """Publish what its clock shows, every 10 ms of it."""
    while not me.ended:
        me.publish("word", str(me.clock.now).encode())
        me.advance(by="10ms", clock="local")


def until_stopped(me: Participant) -> None:
    """Talk until an emergency stop, which cleo calls."""
    try:
        if me.name == "cleo":
            me.advance(by="150ms")
            me.estop("enough")
        talk(me)
    except EmergencyStop as stop:
        me.estop_done(f"heard of it {me.now - stop.at} ns later")


def with_a_guest(me: Participant) -> None:
    """Talk; ann invites dan in the middle of it."""
    if me.name == "ann":
        me.invite("dan", at="200ms")
    talk(me)


def _talking(
    *,
    program: Callable[[Participant], object] = talk,
    default: Any = "10ms",
    rules: tuple[Rule, ...] = (),
    outages: tuple[Any, ...] = (),
    guests: tuple[str, ...] = (),
    buffer: str = "unbounded",
    faults: tuple[str, ...] = (),
    estop: str | None = None,
    clocks: Callable[[str], Any] = lambda _: None,
    **declared: Any,
) -> Federation:
    def made(name: str) -> Program:
        own = clocks(name)
        given = declared if own is None else {**declared, "clock": own}
        return Program(program, subscribes={"word": buffer, "answer": buffer}, guest=name in guests, **given)

    network = Network(default=link(default) if isinstance(default, str) else default, rules=rules, outages=outages)
    return Federation(
        {name: made(name) for name in (*NAMES, *guests)},
        network=network,
        until=UNTIL,
        faults=faults,
        estop=estop,
        seed=7,
    )


latency_fixed = _talking()
latency_uniform = _talking(default=link(uniform("2ms", "30ms")))
latency_normal = _talking(default=link(normal("12ms", "4ms", "1ms")))
latency_exponential = _talking(default=link(exponential("1ms", "15ms")))
latency_table = _talking(default=link(table(["3ms", "5ms", "40ms"])))
in_order = _talking(default=link(uniform("2ms", "30ms"), fifo=True))
loss = _talking(default=link("8ms", loss=0.3))
duplication = _talking(default=link(uniform("2ms", "30ms"), duplication=0.3))
corruption = _talking(default=link("8ms", corruption=0.3))
bandwidth = _talking(default=link("1ms", bandwidth=500))
outage_partition = _talking(outages=partition(["ann"], ["bob", "cleo"], "100ms", "200ms"))
outage_hold = _talking(outages=hold(["ann"], ["bob", "cleo"], "100ms", "200ms"))
rules = _talking(rules=(Rule(link=link("50ms"), sender="ann"), Rule(link=link("1ms", loss=0.5), topic="answer")))
mailboxes = _talking(buffer="mailbox", default=link(uniform("2ms", "30ms")))
faults_crash = _talking(faults=("100ms crash ann 50ms", "bob sends word 9: crash bob 20ms"))
faults_hang = _talking(faults=("100ms hang ann 50ms", "cleo receives word 5: hang cleo 30ms"))
faults_slow = _talking(faults=("50ms slow bob 7ms 200ms", "120ms dropout cleo 60ms"))
boot_late = _talking(boot="uniform(0ms, 80ms)")
clock_drift = _talking(program=by_the_clock, clocks=lambda name: clock(drift=f"{10 * len(name)}%", offset="3ms"))
clock_drawn = _talking(
    program=by_the_clock, clocks=lambda _: clock(drift="uniform(-5%, 5%)", offset="uniform(0ms, 9ms)")
)
clock_wander = _talking(program=by_the_clock, clocks=lambda _: clock(wander="walk(1%, every=20ms, within=10%)"))
emergency_stop = _talking(program=until_stopped, estop="5ms")
guest = _talking(program=with_a_guest, guests=("dan",), controls=True)
