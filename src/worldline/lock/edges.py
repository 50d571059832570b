"""Who can reach whom, and how fast at the least: the edges of the bound calculus, kept as topics come and go.

An edge has the least latency of all *ways* from its sender to its receiver: every topic that the one may publish on and
the other listens to is a way, and so is the control link. A pair keeps how many of its ways have which latency. So a
subscription costs what its topic's publishers cost, and not what all subscriptions before it cost together; and taking
one back, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from worldline.lock.bounds import Clock
from worldline.lock.member import Member
from worldline.model.path import Paths
from worldline.model.time import FOREVER

Topic = TypeVar("Topic", str, str | None)

_Ways = dict[str, dict[int, int]]  # Sender → latency → how many ways have it.


class Edges:
    """All edges between those who have started."""

    def __init__(self, paths: Paths, control_latency: int) -> None:
        self._paths = paths
        self._control_latency = control_latency
        self._members: dict[str, Member] = {}
        self._publishers: dict[str | None, dict[str, Member]] = {}  # By topic; None: those who may publish on any.
        self._listeners: dict[str, dict[str, Member]] = {}  # By topic.
        self._ways: dict[str, _Ways] = {}  # By receiver.
        self.controllers: dict[str, Member] = {}
        self._invites = False  # Whether anybody may, or might have before it left, invite others.

    def admit(self, member: Member) -> None:
        """Take in a participant that listens to nothing yet."""
        for topic in (None,) if member.publishes is None else member.publishes:
            self._publishers.setdefault(topic, {})[member.name] = member
        for topic in self._listeners if member.publishes is None else member.publishes:
            for listener in self._listeners.get(topic, {}).values():
                self._add(member, listener, self._latency(topic, member, listener))
        self._ways[member.name] = {}
        for controller in self.controllers.values():
            self._add(controller, member, self._control_latency)
        if member.controls:
            for other in self._members.values():
                self._add(member, other, self._control_latency)
            self.controllers[member.name] = member
            self._invites = True
        self._members[member.name] = member

    def dismiss(self, member: Member) -> None:
        """Let a participant go that listens to nothing any more."""
        for topic in (None,) if member.publishes is None else member.publishes:
            _drop(self._publishers, topic, member.name)
        self.controllers.pop(member.name, None)
        del self._members[member.name]
        del self._ways[member.name]
        for ways in self._ways.values():
            ways.pop(member.name, None)

    def listen(self, receiver: Member, topic: str) -> None:
        self._listeners.setdefault(topic, {})[receiver.name] = receiver
        for sender in self._publishers_of(topic):
            if sender is not receiver:
                self._add(sender, receiver, self._latency(topic, sender, receiver))

    def ignore(self, receiver: Member, topic: str) -> None:
        """Take back that it listens."""
        if receiver.name not in self._listeners.get(topic, ()):
            return
        _drop(self._listeners, topic, receiver.name)
        ways = self._ways[receiver.name]
        for sender in self._publishers_of(topic):
            if sender is not receiver:
                latency = self._latency(topic, sender, receiver)
                counts = ways[sender.name]
                counts[latency] -= 1
                if not counts[latency]:
                    del counts[latency]
                if not counts:
                    del ways[sender.name]

    def into(self, receiver: Member) -> list[tuple[Clock, int]]:
        """Return everybody who can reach the receiver, with the least latency of all its ways."""
        ways = self._ways.get(receiver.name, {})
        return [(self._members[name], min(counts)) for name, counts in ways.items()]

    def controls_into(self, receiver: Member) -> list[tuple[Clock, int]]:
        """Return the edges of the control link alone: all that concerns a newcomer before its start."""
        return [(sender, self._control_latency) for sender in self.controllers.values() if sender is not receiver]

    def least(self, sender: Member, receiver: Member) -> int:
        """Return the edge's latency; FOREVER if there is no way."""
        return min(self._ways.get(receiver.name, {}).get(sender.name, ()), default=FOREVER)

    def named(self, sender: Member, receiver: Member) -> tuple[int, str | None]:
        """Return the edge's latency, and the topic that has it; None is the control link."""
        latency, through = FOREVER, None
        if sender.controls:
            latency = self._control_latency
        for topic, buffer in receiver.subscriptions.items():
            if buffer.limit != 0 and sender.may_publish(topic):
                least = self._latency(topic, sender, receiver)
                if least < latency:
                    latency, through = least, topic
        return latency, through

    def reach(self, receiver: Member) -> int:
        """Return the least time in which anybody could ever reach a receiver that starts; FOREVER if nobody can.

        It depends on the plan and on what was declared at joining, never on who has come or gone by now. If somebody
        may invite others, nothing is known of those but what the rules say. Otherwise all start together, and whoever
        can reach it is there.
        """
        if not self._invites:
            return min((latency for _, latency in self.into(receiver)), default=FOREVER)
        topics = (topic for topic, buffer in receiver.subscriptions.items() if buffer.limit != 0)
        return min([self._control_latency, *(self._paths.least_into(topic, receiver.name) for topic in topics)])

    def _publishers_of(self, topic: str) -> Iterable[Member]:
        return (*self._publishers.get(topic, {}).values(), *self._publishers.get(None, {}).values())

    def _latency(self, topic: str, sender: Member, receiver: Member) -> int:
        return max(self._paths.link(topic, sender.name, receiver.name).latency.minimum, sender.latency_least)

    def _add(self, sender: Member, receiver: Member, latency: int) -> None:
        counts = self._ways[receiver.name].setdefault(sender.name, {})
        counts[latency] = counts.get(latency, 0) + 1


def _drop(index: dict[Topic, dict[str, Member]], topic: Topic, name: str) -> None:
    """Take a name out of an index, and the topic with the last one: topics come and go."""
    names = index[topic]
    del names[name]
    if not names:
        del index[topic]
