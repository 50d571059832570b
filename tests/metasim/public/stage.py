"""A small federation with everything that a link can do to messages, and what a mirror should show of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.federation.transports import Strand
from worldline import Federation, Network, Participant, Program, Rule, Server, connect, link, run, uniform
from worldline.federation.outcome import FederationOutcome
from worldline.history.observer import Observer
from worldline.lock import Action, Arbiter
from worldline.lock.events import Event
from worldline.metasim.public.tcpq import PublicName

STEPS = 60


def plant(me: Participant) -> None:
    for step in range(STEPS):
        me.publish("STATE", b"%d" % step)
        me.advance(by="10ms")


def controller(me: Participant) -> None:
    for state in me.messages():
        me.publish("COMMAND", state.payload + b"!")


def viewer(me: Participant) -> None:
    """Look on now and then, with other subscriptions each time."""
    while not me.ended:
        me.subscribe("STATE")
        me.advance(by="95ms")
        if not me.ended:
            me.unsubscribe("STATE")
            me.advance(by="20ms")


def loop(latency: str = "3ms", loss: float = 0.1) -> Federation:
    """A plant, its controller and somebody who comes and goes; links lose, delay and duplicate messages."""
    network = Network(
        default=link(latency, loss=loss),
        rules=[Rule(receiver="viewer", link=link(uniform("1ms", "40ms"), duplication=0.2, loss=loss))],
    )
    programs = {
        "plant": Program(plant, subscribes=["COMMAND"]),
        "controller": Program(controller, subscribes=["STATE"]),
        "viewer": Program(viewer),
    }
    return Federation(programs, network=network, seed=5, until=f"{STEPS * 10}ms")


class Talkative(Arbiter):
    """An arbiter that tells how far it is after everything that happens."""

    def handle(self, who: str, *events: Event) -> tuple[Action, ...]:
        actions = super().handle(who, *events)
        self.tell_passed()
        return actions


def run_served(federation: Federation, observer: Observer) -> FederationOutcome:
    """Run a federation with a server and clients, over sockets."""

    def take_part(server: Server, name: str, program: Program) -> None:
        with connect(server.address, name, subscribes=program.subscribes) as me:
            program.run(me)

    with Server(federation.plan(), observer=observer) as server:
        strands = [
            Strand(partial(take_part, server, name, program), name) for name, program in federation.programs.items()
        ]
        for strand in strands:
            strand.result()
        return server.wait()


Seen = tuple[str, bytes, int, int]
"""A public name, the payload, when it was sent and when it happened."""


def seen_by_participants(federation: Federation) -> list[Seen]:
    """Return what participants themselves say they sent and received, in the order that a mirror shows."""
    sends: dict[tuple[str, int], tuple[str, bytes, int]] = {}
    keyed: list[tuple[tuple[Any, ...], Seen]] = []

    class Sends(Observer):
        def sent(
            self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None
        ) -> None:
            sends[who, number] = (topic, payload, at)

    def listening(program: Program, name: str) -> Program:
        """Return a program that reports whatever it is given."""

        def wrapped(me: Participant) -> None:
            for method in ("advance", "next"):
                setattr(me, method, reported(getattr(me, method)))
            program.run(me)

        def reported(method: Any) -> Any:
            def call(*arguments: Any, **named: Any) -> Any:
                messages = method(*arguments, **named)
                for each in messages:
                    key = (each.arrival, 0, each.sender, each.sequence, name, each.copy)
                    public = PublicName(each.topic, each.sender, name)
                    keyed.append((key, (str(public), each.payload, each.sent, each.arrival)))
                return messages

            return call

        return Program(wrapped, subscribes=program.subscribes)

    programs = {name: listening(program, name) for name, program in federation.programs.items()}
    run(
        Federation(programs, network=federation.network, seed=federation.seed, until=federation.until), observer=Sends()
    )
    for (sender, number), (topic, payload, at) in sends.items():
        keyed.append(((at, 1, sender, number, "", 0), (str(PublicName(topic, sender)), payload, at, at)))
    return [seen for _, seen in sorted(keyed)]
