"""A participant as the arbiter sees it."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain
from typing import Any

from worldline.lock import tuning
from worldline.lock.bounds import Clock
from worldline.lock.events import Join
from worldline.lock.heap import Heap
from worldline.lock.states import RETIRED, ROWS, State, StateRow
from worldline.model.links import Buffer
from worldline.model.message import Message
from worldline.model.time import FOREVER

# A receiver's messages that the arbiter hasn't handed over yet, and the count of those that it never will.
#
# Messages are handed over in order. Usually they come in like that, and then a grant takes them from the front of a
# plain list. If they don't, they are put aside by their moments, of which there are few where participants go in step;
# there, they usually are in order. So a message costs an append or two, and at the most its part of one small sort.


class Inbox:
    """Arrivals at one participant, and the ghosts of those that got lost on the way."""

    __slots__ = (
        "_fresh",
        "_ghosts",
        "_ghosts_kept",
        "_ghosts_max",
        "_in_order",
        "_last",
        "_last_sender",
        "_last_sent",
        "_later",
        "_moments",
        "dropped",
        "first",
    )

    def __init__(self) -> None:
        self.first = FOREVER  # The earliest arrival of all that is here.
        self._fresh: list[Message] = []
        self._in_order = True  # Whether these are, as they stand there.
        self._last = -1  # The arrival, the send time and the sender of the last of them.
        self._last_sent = -1
        self._last_sender = ""
        self._later: dict[int, list[Message]] = {}  # By arrival: what has been put aside.
        self._moments = Heap()  # Of these arrivals.
        # (arrival, topic, reason) of messages that were lost. Like a message, a loss counts only if the participant
        # is still subscribed when it would have arrived, which isn't known yet when it is drawn.
        self._ghosts: list[tuple[int, str, str]] = []
        self._ghosts_kept = self._ghosts_max = tuning.GHOSTS_KEPT
        self.dropped: dict[tuple[str, str], int] = {}  # (topic, reason) → how many.

    def put(self, message: Message) -> None:
        self.add(message, message.arrival, message.sent, message.sender)

    def add(self, message: Message, arrival: int, sent: int, sender: str) -> None:
        """Take in a message, for those who have at hand what it says about its order."""
        if arrival <= self._last and (
            arrival < self._last
            or sent < self._last_sent
            # Of one sender and one time, only the messages themselves tell.
            or (sent == self._last_sent and sender <= self._last_sender and message < self._fresh[-1])
        ):
            self._in_order = False
        self._fresh.append(message)
        self._last, self._last_sent, self._last_sender = arrival, sent, sender
        if arrival < self.first:
            self.first = arrival

    def put_ghost(self, arrival: int, topic: str, reason: str, now: int) -> None:
        """Note a loss. Those that lie before the participant's time are final and are counted from time to time."""
        self._ghosts.append((arrival, topic, reason))
        if len(self._ghosts) > self._ghosts_max:
            self.count(now)
            self._ghosts_max = max(self._ghosts_kept, 2 * len(self._ghosts))

    def take(self, horizon: int) -> list[Message]:
        """Remove and return what arrives before the horizon, in order."""
        if self.first >= horizon:
            return []
        moments = self._moments
        if self._in_order and not moments.size:
            return self._cut_off(horizon)
        self._put_aside()
        taken: list[Message] = []
        while moments.size and moments.time() < horizon:
            of_moment = self._later.pop(moments.time())
            if not _is_sorted(of_moment):
                of_moment.sort()
            taken += of_moment
            moments.pop()
        self.first = moments.time() if moments.size else FOREVER
        return taken

    def _cut_off(self, horizon: int) -> list[Message]:
        """Take from the front of what came in, all of which is in order."""
        fresh = self._fresh
        if self._last < horizon:
            self._clear()
            self.first = FOREVER
            return fresh
        count = 0
        for message in fresh:
            self.first = message.arrival
            if self.first >= horizon:
                break
            count += 1
        taken = fresh[:count]
        del fresh[:count]
        return taken

    def _put_aside(self) -> None:
        later = self._later
        for message in self._fresh:
            others = later.get(message.arrival)
            if others is not None:
                others.append(message)
            else:
                later[message.arrival] = [message]
                self._moments.push(message.arrival, 0)
        self._clear()

    def _clear(self) -> None:
        self._fresh = []
        self._in_order = True
        self._last = -1

    def close(self, topics: Container[str], until: int) -> None:
        """Forget topics from `until` on."""
        here = [*self._fresh, *chain(*self._later.values())]
        if here:
            self._clear()
            self._later, self._moments, self.first = {}, Heap(), FOREVER
            for message in here:
                if message.topic not in topics:
                    self.put(message)
        if self._ghosts:
            self.count(until, topics)
            self._ghosts = [ghost for ghost in self._ghosts if ghost[1] not in topics]

    def count(self, before: int, topics: Container[str] | None = None) -> None:
        """Count the losses that would have arrived before a time, of some topics or of all."""
        kept = []
        for ghost in self._ghosts:
            if ghost[0] < before and (topics is None or ghost[1] in topics):
                self.dropped[ghost[1:]] = self.dropped.get(ghost[1:], 0) + 1
            else:
                kept.append(ghost)
        self._ghosts = kept

    def __len__(self) -> int:
        return len(self._fresh) + sum(map(len, self._later.values()))


def _is_sorted(messages: list[Message]) -> bool:
    """Whether messages of one arrival are in order. Sorting would find that out, too, at several times the price."""
    for place in range(1, len(messages)):
        before, message = messages[place - 1], messages[place]
        sent_before, sent = before.sent, message.sent
        # Of one sender and one time, only the messages themselves tell.
        if sent < sent_before or (sent == sent_before and message.sender <= before.sender and message < before):
            return False
    return True


class Member(Clock):
    """One participant: its clock in the calculus, its place in the table of states, and what it has declared."""

    __slots__ = (
        "_moves",
        "awaits",
        "controls",
        "declared",
        "declared_reach",
        "digest",
        "downtimes",
        "expects",
        "granted",
        "held",
        "inbox",
        "latency_least",
        "legal",
        "logged",
        "logged_at",
        "now",
        "outstanding",
        "publications",
        "publishes",
        "reach",
        "sequence",
        "since",
        "spent",
        "start",
        "state",
        "subscriptions",
        "sweep_at",
        "undeclared",
    )

    def __init__(self, name: str, start: int) -> None:
        super().__init__(name, start)
        self.begin_at(start)
        self.reach = 0  # How far it may peek; see `StartRun`.
        self.declared_reach = 0  # That, as long as it hears nothing but what it has declared at joining,
        self.declared: dict[str, None] = {}  # which is this;
        self.undeclared: dict[str, None] = {}  # and what it hears besides.
        self.expects = False  # Whether it waits to know its next message, whatever it does then.
        self.held = FOREVER  # The first arrival that it holds itself from an earlier grant, while it expects one.
        self.since = 0  # The number of the event with which its waiting began.
        self.sequence = 0
        self.outstanding = 0  # Bytes of what it has sent that another may still have to be given; about.
        self.logged = 0  # Bytes that it has logged at one time of its own,
        self.logged_at = 0  # and when.
        self.digest = b""
        self.inbox = Inbox()
        self.publications: dict[str, Any] = {}  # By topic; the router's.
        self.spent: dict[str, int] = {}  # Topics that it has published on and that are out of use: how many messages.
        self.sweep_at = 0  # How many publications there must be before the router looks for spent ones.
        self.publishes: dict[str, None] | None = {}
        self.subscriptions: dict[str, Buffer] = {}
        self.downtimes: dict[str, tuple[int, int]] = {}  # Topic → from when to when what arrives is lost, last time.
        self.latency_least = 0
        self.controls = False
        self._enter(ROWS[State.EXPECTED])

    def begin_at(self, start: int) -> None:
        self.start = start
        self.now = start
        self.awaits = start  # The time that it has asked for.
        self.granted = start  # Up to where it has been told everything.

    def _enter(self, row: StateRow) -> None:
        self._moves = row.moves
        self.state = row.state
        self.legal = row.legal

    def move(self, kind: type) -> None:
        """Go where the table says that this event or action leads."""
        row = self._moves[kind]
        self._moves = row.moves
        self.state = row.state
        self.legal = row.legal

    def retire(self) -> None:
        """It has been told that the run has ended for it."""
        self._enter(RETIRED)

    @property
    def is_done(self) -> bool:
        """Whether it acts no more: it has left, or has been told that the run has ended for it."""
        return self.state is State.LEFT or self.legal is RETIRED.legal

    def introduce(self, join: Join) -> None:
        self.publishes = None if join.publishes is None else dict.fromkeys(join.publishes)
        self.subscriptions = {subscription.topic: subscription.buffer for subscription in join.subscribes}
        self.declared = {topic: None for topic, buffer in self.subscriptions.items() if buffer.limit != 0}
        self.latency_least = join.latency_least
        self.controls = join.controls

    def may_publish(self, topic: str) -> bool:
        return self.publishes is None or topic in self.publishes

    def hears(self, topic: str, is_heard: bool) -> None:
        """Change how far it may peek: another topic may reach it sooner than those that it has joined with."""
        if is_heard and topic not in self.declared:
            self.undeclared[topic] = None
        else:
            self.undeclared.pop(topic, None)
        self.reach = 0 if self.undeclared else self.declared_reach

    @property
    def topics(self) -> int:
        """How many topics the arbiter keeps something of on this participant's behalf."""
        return max(len(self.publications) + len(self.spent), len(self.publishes or ())) + len(self.subscriptions)
