"""The router: who gets which message, and when.

It keeps the subscriptions, opens the paths and puts each published message into the inboxes that it is for. It also
**retains** messages for those who subscribe late. A subscription at time t covers arrivals from t on, also of
messages that were published before the arbiter heard of it; so a message is kept until its last possible arrival lies
before the earliest time at which a participant can still act, and not a moment of wall-clock time decides.

What is kept
------------
R1. A message is kept, and counted for its sender (`Member.outstanding`), as long as one may have to be given it:
    one who listens and hasn't been granted its arrival, or one who may still subscribe by then.
R2. Usually that is judged in a hurry: the message's *expiry*, after which it can't arrive on any link of the network,
    lies before the least base of all. For a link of ``exponential(1ms, 500ms)`` the expiry is 22 s after the send,
    though hardly a message takes two. So when a sender's messages get too many, they are judged one by one (`relieve`):
    if none can come any more (none controls, and none is invited), all possible receivers are known, and what
    the path to each draws for a message can be worked out in advance. A message is forgotten when its last arrival
    at any of them lies before the earliest time at which one of them may act. That isn't the least base of all:
    none receives what it sends itself, so it doesn't matter how far behind the sender is. Why it is the least base of
    the others, or what the sender can wake one of them by: the one of the others that acts first acts by itself, at its
    base, or is woken; not by another of them, since that one would have acted before it; so by the sender, which
    takes the sender's next send and the least latency to a sleeper.
R3. A topic on which nothing is under way any more is forgotten but for the number of messages that there were, which
    draws go by. What paths remember (FIFO, bandwidth) lies before every later send by then, and so has no effect on it.
    It is looked for whenever a sender's topics have doubled, which costs each topic a constant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar

from worldline.history.observer import DOWN, Observer
from worldline.lock import tuning
from worldline.lock.bounds import Bounds, Clock
from worldline.lock.events import Subscription
from worldline.lock.member import Member
from worldline.model.draws.table import DrawTable
from worldline.model.faults import dropouts_of
from worldline.model.message import Message, check_name
from worldline.model.path import Path, Paths
from worldline.model.plan import Plan, network_of
from worldline.model.time import FOREVER

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

# Who can reach whom, and how fast at the least: the edges of the bound calculus, kept as topics come and go.
#
# An edge has the least latency of all *ways* from its sender to its receiver: every topic that the one may publish on
# and the other listens to is a way, and so is the control link. A pair keeps how many of its ways have which latency.
# So a subscription costs what its topic's publishers cost, and not what all subscriptions before it cost together; and
# taking one back, too.

Topic = TypeVar("Topic", str, str | None)

_Ways = dict[str, dict[int, int]]  # Sender → latency → how many ways have it.


class Edges:
    """All edges between those who have started."""

    def __init__(self, paths: Paths, control_latency: int) -> None:
        self._paths = paths
        self.control_latency = control_latency
        self._members: dict[str, Member] = {}
        self._publishers: dict[str | None, dict[str, Member]] = {}  # By topic; None: those who may publish on any.
        self._listeners: dict[str, dict[str, Member]] = {}  # By topic.
        self._ways: dict[str, _Ways] = {}  # By receiver.
        self.controllers: dict[str, Member] = {}
        self._invites = False  # Whether one may, or might have before it left, invite others.

    def admit(self, member: Member) -> None:
        """Take in a participant that listens to nothing yet."""
        for topic in (None,) if member.publishes is None else member.publishes:
            self._publishers.setdefault(topic, {})[member.name] = member
        for topic in self._listeners if member.publishes is None else member.publishes:
            for listener in self._listeners.get(topic, {}).values():
                self._add(member, listener, self._latency(topic, member, listener))
        self._ways[member.name] = {}
        for controller in self.controllers.values():
            self._add(controller, member, self.control_latency)
        if member.controls:
            for other in self._members.values():
                self._add(member, other, self.control_latency)
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
        """Return all who can reach the receiver, each with the least latency of its ways."""
        ways = self._ways.get(receiver.name, {})
        return [(self._members[name], min(counts)) for name, counts in ways.items()]

    def controls_into(self, receiver: Member) -> list[tuple[Clock, int]]:
        """Return the edges of the control link alone: all that concerns a newcomer before its start."""
        return [(sender, self.control_latency) for sender in self.controllers.values() if sender is not receiver]

    def least(self, sender: Member, receiver: Member) -> int:
        """Return the edge's latency; FOREVER if there is no way."""
        return min(self._ways.get(receiver.name, {}).get(sender.name, ()), default=FOREVER)

    def named(self, sender: Member, receiver: Member) -> tuple[int, str | None]:
        """Return the edge's latency, and the topic that has it; None is the control link."""
        latency, through = FOREVER, None
        if sender.controls:
            latency = self.control_latency
        for topic, buffer in receiver.subscriptions.items():
            if buffer.limit != 0 and sender.may_publish(topic):
                least = self._latency(topic, sender, receiver)
                if least < latency:
                    latency, through = least, topic
        return latency, through

    def reach(self, receiver: Member) -> int:
        """Return the least time in which any sender could ever reach a receiver that starts; FOREVER if none can.

        It depends on the plan and on what was declared at joining, never on who has come or gone by now. If one may
        invite others, nothing is known of those but what the rules say. Otherwise all start together, and all
        that can reach it are there.
        """
        if not self._invites:
            return min([latency for _, latency in self.into(receiver)], default=FOREVER)
        topics = [topic for topic, buffer in receiver.subscriptions.items() if buffer.limit != 0]
        fastest = [self._paths.least_into(topic, receiver.name) for topic in topics]
        return min(self.control_latency, min(fastest, default=FOREVER))

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


_MESSAGE_COST = 256  # Bytes that a message takes besides its payload, here and in inboxes; about.
_NO_MESSAGE = Message(0, 0, "", 0, 0, "", b"")
if not cython.compiled:  # Otherwise `router.pxd` imports one in C.
    _message = tuple.__new__  # A third of the price of Message(...), in the busiest loop of all.


# A message under way on a path: arrival, send time, sequence number, copy, payload, and the reason if it gets lost.
_Flight = tuple[int, int, int, int, bytes, str | None]


class _Target:
    """One receiver of a publication."""

    __slots__ = ("backlog", "constant", "down_from", "down_until", "inbox", "listens_from", "member", "path")

    def __init__(self, member: Member, path: Path) -> None:
        self.member = member
        self.inbox = member.inbox
        self.path = path
        self.constant = path.constant
        self.listens_from = FOREVER  # The time of its subscription.
        self.down_from = self.down_until = 0  # What arrives in between is lost, as the receiver itself sees to.
        # A path that queues can't be computed anew for a late subscriber, so it keeps what is under way on it.
        self.backlog: deque[_Flight] | None = deque() if path.queues else None


class _Publication:
    """What one sender publishes on one topic."""

    __slots__ = (
        "_forgotten",
        "_retained",
        "judged",
        "lasting",
        "lifetime",
        "probes",
        "published",
        "sender",
        "targets",
        "topic",
    )

    def __init__(self, sender: Member, topic: str, paths: Paths, published: int = 0) -> None:
        self.sender = sender
        self.topic = topic
        # Draws go by a message's number on its topic, not by the sender's sequence number, which counts all topics: so
        # the fates of messages on one topic don't change when their sender takes up another.
        self.published = published
        self.targets: dict[str, _Target] = {}
        self.lifetime = paths.lifetime(topic, sender.name, sender.latency_least)
        self.lasting = self.lifetime.constant
        # Kept for late subscribers: the last so many, in the order of publishing, each as if it arrived at its expiry.
        self._retained: list[Any] = []
        self._forgotten = 0  # How many places at its beginning are empty. They are cut off when they are half of it.
        # A heap of those of before, of which it is known when they arrive last: that time, its number, the message.
        self.judged: list[tuple[int, int, Message]] = []
        self.probes: dict[str, Path] | None = None  # The paths that tell, by receiver.

    def kept(self) -> list[tuple[int, Message]]:
        """Return what is kept for late subscribers, each with its number, in that order."""
        judged = sorted([(number, message) for _, number, message in self.judged])
        return [*judged, *self.unjudged()]

    def retain(self, message: Message) -> None:
        """Keep the message that was published last."""
        self._retained.append(message)

    def count(self) -> int:
        """Return how many are kept."""
        return len(self._retained) - self._forgotten + len(self.judged)

    def unjudged(self) -> list[tuple[int, Message]]:
        """Return those of the kept of which it isn't known yet when they arrive last, each with its number."""
        retained: list[Message] = self._retained[self._forgotten :]
        return list(enumerate(retained, self.published - len(retained)))

    def judge(self, lasts: list[tuple[int, int, Message]]) -> None:
        """Take it that all of these arrive last then: (when, number, message)."""
        for each in lasts:
            heappush(self.judged, each)
        self._retained, self._forgotten = [], 0

    def forget(self, floor: int) -> None:
        """Drop what arrives nowhere at the floor or later."""
        freed = 0
        retained, judged = self._retained, self.judged
        place, count = self._forgotten, len(retained)
        while place < count:
            message = retained[place]
            arrival = message.arrival
            if arrival >= floor:
                break
            freed += len(message.payload) + _MESSAGE_COST
            retained[place] = None
            place += 1
        if 2 * place >= count:  # What is moved is less than what goes.
            del retained[:place]
            place = 0
        self._forgotten = place
        while judged and judged[0][0] < floor:
            message = heappop(judged)[2]
            freed += len(message.payload) + _MESSAGE_COST
        self.sender.outstanding -= freed

    def last(self) -> int:
        """Return when all that was published has arrived, wherever it goes; -1 if it has."""
        backlogs = [target.backlog for target in self.targets.values() if target.backlog]
        arrivals = [flight[0] for backlog in backlogs for flight in backlog]
        arrivals += [message.arrival for message in self._retained[self._forgotten :]]
        return max([*arrivals, *[last for last, _, _ in self.judged]], default=-1)

    def floor(self, acts: int) -> int:
        """Return the time from which on arrivals count, if none that isn't given it subscribes before `acts`."""
        for target in self.targets.values():
            if target.listens_from < FOREVER and target.member.granted < acts:
                acts = target.member.granted  # It has been put into an inbox, and is there still.
        return acts


class Router:
    """The subscriptions, publications and retained messages of a run. `newcomers` are those invited, by name."""

    def __init__(
        self, plan: Plan, bounds: Bounds, observer: Observer | None = None, newcomers: dict[str, Member] | None = None
    ) -> None:
        self._bounds = bounds
        self._observer = observer
        self.draws = DrawTable(plan.seed, plan.draws) if plan.draws else None
        self._paths = Paths(network_of(plan), plan.seed, dropouts=dropouts_of(plan.faults), draws=self.draws)
        self.latest = 0  # When the last of all messages so far may arrive.
        links = (plan.network.default, *[rule.link for rule in plan.network.rules])
        self._queues = True in [link.bandwidth is not None for link in links]
        self._members: dict[str, Member] = {}
        self._newcomers = {} if newcomers is None else newcomers
        self._publications: dict[tuple[str, str], _Publication] = {}
        self._by_topic: dict[str, dict[str, _Publication]] = {}  # Topic → sender → what it publishes.
        self._subscribers: dict[str, dict[str, tuple[Member, int]]] = {}  # Topic → name → who, and since when.
        self._departed: list[tuple[int, int, _Publication]] = []  # A heap of what those who have left had under way.
        self._serial = 0
        self.edges = Edges(self._paths, plan.network.control_latency)
        self._forget_every = tuning.FORGET_EVERY

    # --- Who is there ---

    def admit(self, member: Member) -> None:
        """Take in a participant that starts."""
        self._clear_away()
        self._members[member.name] = member
        self.edges.admit(member)
        if self._queues:
            for publication in self._publications.values():
                self._shadow(publication, member)
        for topic in member.subscriptions:
            self._listen(member, topic, member.start)

    # --- Messages ---

    def publish(self, sender: Member, topic: str, payload: bytes, sent: int) -> list[Member]:
        """Put a message into every inbox that it is for; return who expects one and has none that arrives before it."""
        publication = sender.publications.get(topic) or self._publication(sender, topic)
        sequence = sender.sequence
        sender.sequence = sequence + 1
        number = publication.published
        publication.published = number + 1
        size = len(payload)
        lasting = publication.lasting
        expiry = sent + lasting if lasting else publication.lifetime.expiry(sent, size)
        if expiry > self.latest:
            self.latest = expiry
        observer = self._observer
        name = sender.name
        if observer is not None:
            observer.sent(name, sequence, topic, sent, payload, expiry)
        roused: list[Member] = []
        message: Message = _NO_MESSAGE
        shared = -1
        for target in publication.targets.values():
            if not target.constant:
                self._carry(publication, target, number, sent, sequence, payload, roused)
                continue
            arrival = sent + target.constant
            if arrival < target.listens_from:
                continue
            if arrival != shared:  # Receivers at the same distance share one message.
                message = _message(Message, (arrival, sent, name, sequence, 0, topic, payload))
                shared = arrival
            if observer is not None:
                is_down = target.down_from <= arrival < target.down_until
                observer.arrives(name, sequence, target.member.name, arrival, 0, DOWN if is_down else None)
            inbox = target.inbox
            if arrival < inbox.first and target.member.expects:
                roused.append(target.member)
            inbox.add(message, arrival, sent, name)
        if expiry != shared:
            message = _message(Message, (expiry, sent, name, sequence, 0, topic, payload))
        publication.retain(message)
        sender.outstanding += size + _MESSAGE_COST
        if number % self._forget_every == 0:
            self._forget(publication)
        return roused

    def subscribe(self, member: Member, subscription: Subscription, since: int) -> None:
        member.subscriptions[subscription.topic] = subscription.buffer
        self._listen(member, subscription.topic, since)

    def unsubscribe(self, member: Member, topic: str, until: int) -> None:
        member.inbox.close((topic,), until)
        self._ignore(member, topic, until)

    def bring_down(self, member: Member, lost: dict[str, int], until: int) -> None:
        """Let it be known that what reaches a participant before `until` is lost, on each topic from its time on.

        The participant knows, and is given it all the same: only it can tell how much that is. One such span at a time
        is enough. One that is down again knows all that arrives before; nothing is sent any more that does.
        """
        for topic, since in lost.items():
            member.downtimes[topic] = (since, until)
            for publication in self._by_topic.get(topic, {}).values():
                target = publication.targets.get(member.name)
                if target is not None:
                    target.down_from, target.down_until = since, until
                    if self._observer is not None and target.listens_from < FOREVER:
                        self._retell(publication, target)

    def _retell(self, publication: _Publication, target: _Target) -> None:
        """Tell the observer what is lost since its receiver is down, of that which is under way."""
        assert self._observer is not None
        flights = list(target.backlog or ())
        if target.backlog is None:
            path = self._open(publication, target.member).path  # As for one who subscribes only now: see R1.
            for number, message in publication.kept():
                arrivals, lost = path.carry(message.sent, number, len(message.payload))
                flights += [
                    (arrival, message.sent, message.sequence, copy, b"", lost) for copy, arrival in enumerate(arrivals)
                ]
        for arrival, _, sequence, copy, _, lost in flights:
            if lost is None and max(target.listens_from, target.down_from) <= arrival < target.down_until:
                sender, receiver = publication.sender.name, target.member.name
                self._observer.arrives(sender, sequence, receiver, arrival, copy, DOWN)

    def dismiss(self, member: Member, until: int) -> None:
        """Let a participant go: nothing that arrives at `until` or later is for it, and nothing more comes from it."""
        member.inbox.close(member.subscriptions, until)
        for topic in list(member.subscriptions):
            self._ignore(member, topic, until)
        self.edges.dismiss(member)
        del self._members[member.name]
        if self._queues:
            for publication in self._publications.values():
                publication.targets.pop(member.name, None)
        for publication in member.publications.values():
            self._serial += 1
            heappush(self._departed, (publication.last(), self._serial, publication))
        member.publications.clear()
        member.spent.clear()
        self._clear_away()

    def _clear_away(self) -> None:
        """Forget the publications of those who have left, once none can subscribe to the last of them in time."""
        floor = self._bounds.floor()
        while self._departed and self._departed[0][0] < floor:
            _, serial, publication = heappop(self._departed)
            last = publication.last()  # One may have come to whom it is longer under way.
            if last < floor:
                self._strike(publication)
            else:
                heappush(self._departed, (last, serial, publication))

    def _strike(self, publication: _Publication) -> None:
        del self._publications[publication.sender.name, publication.topic]
        publishers = self._by_topic[publication.topic]
        del publishers[publication.sender.name]
        if not publishers:
            del self._by_topic[publication.topic]

    def _sweep(self, sender: Member) -> None:
        """Forget the topics on which nothing is under way any more, but for their number of messages (R3)."""
        floor = self._bounds.floor()
        for topic, publication in list(sender.publications.items()):
            self._forget(publication)
            if not publication.count() and publication.last() < floor:
                sender.spent[topic] = publication.published
                del sender.publications[topic]
                self._strike(publication)
        sender.sweep_at = max(tuning.TOPICS_KEPT, 2 * len(sender.publications))

    def relieve(self, sender: Member) -> int:
        """Forget all of a sender's that none can be given any more (R2); return about how many bytes are left."""
        acts = self._acts(sender)
        known = not (self.edges.controllers or self._newcomers)
        for publication in sender.publications.values():
            if known:
                self._judge(publication)
            publication.forget(publication.floor(acts))
        return sender.outstanding

    def _acts(self, sender: Member) -> int:
        """Return a time before which none but the sender acts (R2), nor any that it may invite."""
        earliest, nearest = FOREVER, self.edges.control_latency if sender.controls else FOREVER
        for member in (*self._members.values(), *self._newcomers.values()):
            if member is not sender:
                earliest = min(earliest, member.base)
                if member.sleeping:
                    nearest = min(nearest, self.edges.least(sender, member))
        return min(earliest, sender.value + nearest)

    def _judge(self, publication: _Publication) -> None:
        """Find out when what is kept arrives last, at those who are there: no other can come."""
        probes = publication.probes
        if probes is None:
            probes = publication.probes = {}
            for member in self._members.values():
                target = publication.targets.get(member.name)
                # A path that queues has seen every message and keeps what is under way on it itself.
                if member is not publication.sender and (target is None or target.backlog is None):
                    probes[member.name] = self._open(publication, member).path
        for name in [name for name in probes if name not in self._members]:
            del probes[name]
        lasts = []
        for number, message in publication.unjudged():
            last, sent, size = -1, message.sent, len(message.payload)
            for path in probes.values():
                arrival = sent + path.constant if path.constant else max(path.carry(sent, number, size)[0])
                last = max(last, arrival)
            lasts.append((last, number, message))
        publication.judge(lasts)

    def retained(self) -> int:
        """Return how many messages are kept for late subscribers."""
        return sum([each.count() for each in self._publications.values()])

    def _publication(self, sender: Member, topic: str) -> _Publication:
        check_name(topic, "a topic")
        if len(sender.publications) >= sender.sweep_at:
            self._sweep(sender)
        self._clear_away()
        publication = _Publication(sender, topic, self._paths, sender.spent.pop(topic, 0))
        self._publications[sender.name, topic] = sender.publications[topic] = publication
        self._by_topic.setdefault(topic, {})[sender.name] = publication
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
            return  # It keeps nothing, so it needn't be sent anything, and none holds it up.
        self.edges.listen(member, topic)
        self._subscribers.setdefault(topic, {})[member.name] = (member, since)
        for publication in self._by_topic.get(topic, {}).values():
            if member is publication.sender:
                continue
            target = self._aim(publication, member, since)
            if target.backlog is not None:
                for flight in target.backlog:
                    self._deliver(publication, target, flight, [])
            else:
                self._carry_again(publication, target)

    def _ignore(self, member: Member, topic: str, until: int) -> None:
        """Take back that a participant is a target of a topic."""
        del member.subscriptions[topic]
        member.downtimes.pop(topic, None)
        self.edges.ignore(member, topic)
        subscribers = self._subscribers.get(topic, {})
        subscribers.pop(member.name, None)
        if not subscribers:
            self._subscribers.pop(topic, None)
        if self._observer is not None:
            self._observer.closed(member.name, topic, until)
        for publication in self._by_topic.get(topic, {}).values():
            target = publication.targets.get(member.name)
            if target is not None:
                target.listens_from = FOREVER
                if target.backlog is None:
                    del publication.targets[member.name]

    def _aim(self, publication: _Publication, member: Member, since: int) -> _Target:
        """Return the member as a target of a publication that listens from then on."""
        target = publication.targets.get(member.name) or self._open(publication, member)
        target.listens_from = since
        target.down_from, target.down_until = member.downtimes.get(publication.topic, (0, 0))
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
        self._carry_again(publication, target)

    def _open(self, publication: _Publication, member: Member) -> _Target:
        sender = publication.sender
        path = self._paths.open(
            publication.topic, sender.name, member.name, latency_least=sender.latency_least, opened=member.start
        )
        return _Target(member, path)

    def _carry_again(self, publication: _Publication, target: _Target) -> None:
        """Let a new path see what was published before, as far as that may matter."""
        for number, message in publication.kept():
            if target.backlog is not None or message.arrival >= target.listens_from:  # It is kept with its expiry.
                self._carry(publication, target, number, message.sent, message.sequence, message.payload, [])

    def _carry(
        self,
        publication: _Publication,
        target: _Target,
        number: int,
        sent: int,
        sequence: int,
        payload: bytes,
        roused: list[Member],
    ) -> None:
        arrivals, lost = target.path.carry(sent, number, len(payload))
        for copy, arrival in enumerate(arrivals):
            flight = (arrival, sent, sequence, copy, payload, lost)
            if target.backlog is not None:
                target.backlog.append(flight)
                if self._observer is not None:
                    self._observer.lasts(publication.sender.name, sequence, arrival)
            self._deliver(publication, target, flight, roused)

    def _deliver(self, publication: _Publication, target: _Target, flight: _Flight, roused: list[Member]) -> None:
        """Put what is under way into the target's inbox if it listens by then."""
        arrival, sent, sequence, copy, payload, lost = flight
        if arrival < target.listens_from:
            return
        member, topic = target.member, publication.topic
        if self._observer is not None:
            becomes = DOWN if lost is None and target.down_from <= arrival < target.down_until else lost
            self._observer.arrives(publication.sender.name, sequence, member.name, arrival, copy, becomes)
        if lost is not None:
            member.inbox.put_ghost(arrival, topic, lost, member.now)
            return
        if arrival < member.inbox.first and member.expects:
            roused.append(member)
        sender = publication.sender.name
        member.inbox.add(Message(arrival, sent, sender, sequence, copy, topic, payload), arrival, sent, sender)

    def _forget(self, publication: _Publication) -> None:
        """Drop what none can subscribe to in time any more."""
        floor = self._bounds.floor()
        publication.forget(publication.floor(floor))
        for target in publication.targets.values():
            backlog = target.backlog
            while backlog and backlog[0][0] < floor:
                backlog.popleft()
