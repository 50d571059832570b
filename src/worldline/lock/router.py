"""The router: who gets which message, and when.

It keeps the subscriptions, opens the paths and puts each published message into the inboxes that it is for. It also
**retains** messages for those who subscribe late. A subscription at time t covers arrivals from t on, also of
messages that were published before the arbiter heard of it; so a message is kept until its last possible arrival lies
before the earliest time at which anybody can still act, and not a moment of wall-clock time decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from worldline.lock.bounds import Bounds, Clock
from worldline.lock.events import Subscription
from worldline.lock.member import Member
from worldline.lock.states import State
from worldline.lock.witness import Witness
from worldline.model.message import Message, check_name
from worldline.model.path import Path, Paths
from worldline.model.plan import Plan
from worldline.model.time import FOREVER

_FORGET_EVERY = 64  # Messages of a publication after which those that have arrived everywhere are forgotten.
_MESSAGE_COST = 256  # Bytes that a message takes besides its payload, here and in inboxes; about.
_NO_MESSAGE = Message(0, 0, "", 0, 0, "", b"")
_message = tuple.__new__  # A third of the price of Message(...), in the busiest loop of all.


# A message that is kept for late subscribers: its expiry, its number on its topic, send time, sequence number, payload.
_Retained = tuple[int, int, int, int, bytes]

# A message under way on a path: arrival, send time, sequence number, copy, payload, and the reason if it gets lost.
_Flight = tuple[int, int, int, int, bytes, str | None]


class _Target:
    """One receiver of a publication."""

    __slots__ = ("backlog", "constant", "inbox", "listens_from", "member", "path")

    def __init__(self, member: Member, path: Path) -> None:
        self.member = member
        self.inbox = member.inbox
        self.path = path
        self.constant = path.constant
        self.listens_from = FOREVER  # The time of its subscription.
        # A path that queues can't be computed anew for a late subscriber, so it keeps what is under way on it.
        self.backlog: deque[_Flight] | None = deque() if path.queues else None


class _Publication:
    """What one sender publishes on one topic."""

    __slots__ = ("lasting", "lifetime", "published", "retained", "sender", "targets", "topic")

    def __init__(self, sender: Member, topic: str, paths: Paths) -> None:
        self.sender = sender
        self.topic = topic
        # Draws go by a message's number on its topic, not by the sender's sequence number, which counts all topics: so
        # the fates of messages on one topic don't change when their sender takes up another.
        self.published = 0
        self.targets: dict[str, _Target] = {}
        self.lifetime = paths.lifetime(topic, sender.name, sender.latency_least)
        self.lasting = self.lifetime.constant
        self.retained: deque[_Retained] = deque()

    def is_spent(self, floor: int) -> bool:
        """Whether all that was published has arrived before the floor, wherever it goes."""
        if self.retained and self.retained[-1][0] >= floor:
            return False
        backlogs = (target.backlog for target in self.targets.values() if target.backlog is not None)
        return all(flight[0] < floor for backlog in backlogs for flight in backlog)


class Router:
    """The subscriptions, publications and retained messages of a run."""

    def __init__(self, plan: Plan, bounds: Bounds, witness: Witness | None = None) -> None:
        self._bounds = bounds
        self._witness = witness
        self._paths = Paths(plan.network, plan.seed)
        self._control_latency = plan.network.control_latency
        links = (plan.network.default, *(rule.link for rule in plan.network.rules))
        self._queues = any(link.bandwidth is not None for link in links)
        self._members: dict[str, Member] = {}
        self._publications: dict[tuple[str, str], _Publication] = {}
        self._by_topic: dict[str, list[_Publication]] = {}
        self._subscribers: dict[str, dict[str, tuple[Member, int]]] = {}  # Topic → name → who, and since when.
        self._publishers: dict[str | None, list[Member]] = {}  # By topic; None: those who may publish on any.
        self._controllers: list[Member] = []

    # --- Who is there ---

    def admit(self, member: Member) -> None:
        """Take in a participant that starts."""
        self._clear_away()
        self._members[member.name] = member
        for topic in (None,) if member.publishes is None else member.publishes:
            self._publishers.setdefault(topic, []).append(member)
        if member.controls:
            self._controllers.append(member)
        for publication in self._publications.values():
            self._shadow(publication, member)
        for topic in member.subscriptions:
            self._listen(member, topic, member.start)

    def edges_into(self, receiver: Member) -> list[tuple[Clock, int]]:
        """Return everybody who can reach the receiver, with the least latency over all that they can reach it by."""
        least: dict[str, int] = {}
        for topic, buffer in receiver.subscriptions.items():
            if buffer.limit == 0:
                continue  # What is discarded on arrival can't be waited for.
            for sender in self._publishers_of(topic):
                if sender is not receiver:
                    latency = self._latency_min(topic, sender, receiver)
                    least[sender.name] = min(latency, least.get(sender.name, FOREVER))
        for controller, latency in self.controls_into(receiver):
            least[controller.name] = min(latency, least.get(controller.name, FOREVER))
        return [(self._members[name], latency) for name, latency in least.items()]

    def controls_into(self, receiver: Member) -> list[tuple[Clock, int]]:
        """Return the edges of the control link alone: all that concerns a newcomer before its start."""
        return [(sender, self._control_latency) for sender in self._controllers if sender is not receiver]

    def edge(self, sender: Member, receiver: Member) -> tuple[int, str | None]:
        """Return the least latency of all ways from one to the other, FOREVER if there is none, and its topic."""
        latency, through = FOREVER, None
        if sender.controls:
            latency = self._control_latency
        for topic, buffer in receiver.subscriptions.items():
            if buffer.limit != 0 and sender.may_publish(topic):
                least = self._latency_min(topic, sender, receiver)
                if least < latency:
                    latency, through = least, topic
        return latency, through

    def _publishers_of(self, topic: str) -> Iterable[Member]:
        return (*self._publishers.get(topic, ()), *self._publishers.get(None, ()))

    def _latency_min(self, topic: str, sender: Member, receiver: Member) -> int:
        return max(self._paths.link(topic, sender.name, receiver.name).latency.minimum, sender.latency_least)

    # --- Messages ---

    def publish(self, sender: Member, topic: str, payload: bytes, sent: int) -> list[Member]:
        """Put a message into every inbox that it is for; return the sleepers whose first arrival it has become."""
        publication = sender.publications.get(topic) or self._publication(sender, topic)
        sequence = sender.sequence
        sender.sequence = sequence + 1
        number = publication.published
        publication.published = number + 1
        size = len(payload)
        lasting = publication.lasting
        expiry = sent + lasting if lasting else publication.lifetime.expiry(sent, size)
        witness = self._witness
        if witness is not None:
            witness.published(sender.name, sequence, topic, sent, payload, expiry)
        roused: list[Member] = []
        message: Message = _NO_MESSAGE
        shared = -1
        for target in publication.targets.values():
            if not target.constant:
                self._carry(publication, target, (number, sent, sequence, payload), roused)
                continue
            arrival = sent + target.constant
            if arrival < target.listens_from:
                continue
            if arrival != shared:  # Receivers at the same distance share one message.
                message = _message(Message, (arrival, sent, sender.name, sequence, 0, topic, payload))
                shared = arrival
            if witness is not None:
                witness.arrives(sender.name, sequence, target.member.name, arrival, 0, None)
            inbox = target.inbox
            inbox.fresh.append(message)
            if arrival < inbox.first:
                inbox.first = arrival
                if target.member.sleeping:
                    roused.append(target.member)
        publication.retained.append((expiry, number, sent, sequence, payload))
        sender.outstanding += size + _MESSAGE_COST
        if number % _FORGET_EVERY == 0:
            self._forget(publication)
        return roused

    def subscribe(self, member: Member, subscription: Subscription, since: int) -> None:
        member.subscriptions[subscription.topic] = subscription.buffer
        self._listen(member, subscription.topic, since)

    def unsubscribe(self, member: Member, topic: str, until: int) -> None:
        del member.subscriptions[topic]
        self._subscribers.get(topic, {}).pop(member.name, None)
        member.inbox.close(topic, until)
        if self._witness is not None:
            self._witness.closed(member.name, topic, until)
        for publication in self._by_topic.get(topic, ()):
            target = publication.targets.get(member.name)
            if target is not None:
                target.listens_from = FOREVER
                if target.backlog is None:
                    del publication.targets[member.name]

    def dismiss(self, member: Member, until: int) -> None:
        """Let a participant go: nothing that arrives at `until` or later is for it, and nothing more comes from it."""
        for topic in list(member.subscriptions):
            self.unsubscribe(member, topic, until)
        for published in (None,) if member.publishes is None else member.publishes:
            self._publishers[published].remove(member)
        if member.controls:
            self._controllers.remove(member)
        del self._members[member.name]
        if self._queues:
            for publication in self._publications.values():
                publication.targets.pop(member.name, None)

    def _clear_away(self) -> None:
        """Forget the publications of those who have left, once nobody can subscribe to the last of them in time."""
        floor = self._bounds.floor()
        for key, publication in list(self._publications.items()):
            if publication.sender.state is State.LEFT and publication.is_spent(floor):
                del self._publications[key]
                self._by_topic[publication.topic].remove(publication)

    def outstanding(self, sender: Member) -> int:
        """Return about how many bytes are kept of what a participant has sent, after forgetting what can be."""
        for publication in sender.publications.values():
            self._forget(publication)
        return sender.outstanding

    def retained(self) -> int:
        """Return how many messages are kept for late subscribers."""
        return sum(len(publication.retained) for publication in self._publications.values())

    def _publication(self, sender: Member, topic: str) -> _Publication:
        publication = _Publication(sender, check_name(topic, "a topic"), self._paths)
        self._publications[sender.name, topic] = sender.publications[topic] = publication
        self._by_topic.setdefault(topic, []).append(publication)
        for member, since in self._subscribers.get(topic, {}).values():
            if member is not sender:
                self._aim(publication, member, since)
        if publication.lifetime.queues:
            for member in self._members.values():
                self._shadow(publication, member)
        return publication

    def _listen(self, member: Member, topic: str, since: int) -> None:
        """Make a participant a target of a topic, with all that is under way to it."""
        if member.subscriptions[topic].limit == 0:
            return  # It keeps nothing, so it needn't be sent anything, and nobody holds it up.
        self._subscribers.setdefault(topic, {})[member.name] = (member, since)
        for publication in self._by_topic.get(topic, ()):
            if member is publication.sender:
                continue
            target = self._aim(publication, member, since)
            if target.backlog is not None:
                for flight in target.backlog:
                    self._deliver(publication, target, flight, [])
            else:
                for kept in publication.retained:
                    self._carry(publication, target, kept[1:], [])

    def _aim(self, publication: _Publication, member: Member, since: int) -> _Target:
        """Return the member as a target of a publication that listens from then on."""
        target = publication.targets.get(member.name) or self._open(publication, member)
        target.listens_from = since
        publication.targets[member.name] = target
        return target

    def _shadow(self, publication: _Publication, member: Member) -> None:
        """If the path to a member queues, let it see every message from the start, listening or not."""
        if not publication.lifetime.queues or member is publication.sender or member.name in publication.targets:
            return
        link = self._paths.link(publication.topic, publication.sender.name, member.name)
        if link.bandwidth is None:
            return
        target = publication.targets[member.name] = self._open(publication, member)
        for kept in publication.retained:
            self._carry(publication, target, kept[1:], [])

    def _open(self, publication: _Publication, member: Member) -> _Target:
        sender = publication.sender
        path = self._paths.open(
            publication.topic, sender.name, member.name, latency_least=sender.latency_least, opened=member.start
        )
        return _Target(member, path)

    def _carry(
        self, publication: _Publication, target: _Target, sending: tuple[int, int, int, bytes], roused: list[Member]
    ) -> None:
        number, sent, sequence, payload = sending
        arrivals, lost = target.path.carry(sent, number, len(payload))
        for copy, arrival in enumerate(arrivals):
            flight = (arrival, sent, sequence, copy, payload, lost)
            if target.backlog is not None:
                target.backlog.append(flight)
                if self._witness is not None:
                    self._witness.lasts(publication.sender.name, sequence, arrival)
            self._deliver(publication, target, flight, roused)

    def _deliver(self, publication: _Publication, target: _Target, flight: _Flight, roused: list[Member]) -> None:
        """Put what is under way into the target's inbox if it listens by then."""
        arrival, sent, sequence, copy, payload, lost = flight
        if arrival < target.listens_from:
            return
        member, topic = target.member, publication.topic
        if self._witness is not None:
            self._witness.arrives(publication.sender.name, sequence, member.name, arrival, copy, lost)
        if lost is not None:
            member.inbox.put_ghost(arrival, topic, lost, member.now)
            return
        if arrival < member.inbox.first and member.sleeping:
            roused.append(member)
        member.inbox.put(Message(arrival, sent, publication.sender.name, sequence, copy, topic, payload))

    def _forget(self, publication: _Publication) -> None:
        """Drop what nobody can subscribe to in time any more."""
        floor = self._bounds.floor()
        retained = publication.retained
        freed = 0
        while retained and retained[0][0] < floor:
            freed += len(retained.popleft()[4]) + _MESSAGE_COST
        publication.sender.outstanding -= freed
        for target in publication.targets.values():
            backlog = target.backlog
            while backlog and backlog[0][0] < floor:
                backlog.popleft()
