"""Paths: the arrivals that a link gives each message, drawn from the run's seed.

A path is (topic, sender, receiver). What happens to a message on it is a function of the seed, the path and the
sender's messages so far on this topic, in the order in which it published them; never of who else listens or when they
subscribed.

A path that queues (limited bandwidth) or keeps order (FIFO) remembers earlier messages. For FIFO the arbiter may
build it anew from the messages it still keeps: one that it has dropped arrived before any subscription that can still
be made, so holding a later message back to that time changes nothing a subscriber can see. With limited bandwidth
that argument fails, since one large message can delay the next beyond its own arrival; so such a path must see every
message (`Path.queues` says so to the arbiter).
"""

from __future__ import annotations

from typing import Final

from worldline.model.draws.distributions import Chance, Distribution
from worldline.model.draws.names import DUPLICATION, LATENCY, LATENCY_OF_COPY, LOSS, LOSS_AT_SENDER
from worldline.model.draws.table import DrawSource, DrawTable
from worldline.model.faults import Dropout
from worldline.model.latency import Fixed
from worldline.model.links import ESTOP_TOPIC, Link, Network, Outage, Rule
from worldline.model.randomness import draw_bits, key_of, unit
from worldline.model.time import FOREVER, SECOND

LOST_AT_SENDER: Final = "lost at the sender"
LOST_AT_RECEIVER: Final = "lost at the receiver"
CUT_OFF: Final = "sent into a partition or an endless hold"
DROPPED_OUT: Final = "lost in a dropout of its sender"

# Draw numbers of one message on one path. They are part of the recorded history: never renumber them.
_LATENCY, _LATENCY_OF_COPY, _DUPLICATION, _LOSS = range(4)
_PURPOSES = (LATENCY, LATENCY_OF_COPY, DUPLICATION, LOSS)


class Path:
    """The way from one sender to one receiver for one topic."""

    __slots__ = (
        "_busy_until",
        "_draws",
        "_dropouts",
        "_key",
        "_key_at_sender",
        "_last",
        "_latency_least",
        "_link",
        "_names",
        "_opened",
        "_outages",
        "constant",
        "latency_min",
        "queues",
    )

    def __init__(
        self,
        link: Link,
        seed: int,
        names: tuple[str, str, str],
        *,
        outages: tuple[Outage, ...] = (),
        dropouts: tuple[Dropout, ...] = (),
        latency_least: int = 0,
        opened: int = 0,
        draws: DrawTable | None = None,
    ) -> None:
        self._link = link
        self._draws = draws
        self._names = names
        self._outages = outages
        self._dropouts = dropouts
        self._latency_least = latency_least
        self._opened = opened
        self._busy_until = 0
        self._last = 0
        # Loss at the sender is one draw for all receivers: a datagram that never left its sender reached none.
        self._key_at_sender = key_of(seed, "loss at sender", *names[:2])
        self._key = key_of(seed, "link", *names)
        self.latency_min = max(link.latency.minimum, latency_least)
        self.queues = link.bandwidth is not None
        # What most links are, a fixed latency and nothing else, needs no draw: its latency, or 0 if this isn't one.
        plain = (
            isinstance(link.latency, Fixed)
            and not (link.loss_at_sender or link.loss_at_receiver or link.duplication)
            and not (link.fifo or self.queues or outages or dropouts)
        )
        self.constant = self.latency_min if plain else 0

    def carry(self, sent: int, number: int, size: int) -> tuple[tuple[int, ...], str | None]:
        """Return the arrivals of a message, of its copy too if there is one, and the reason if it gets lost.

        `number` counts the sender's messages on this topic.

        A lost message has an arrival as well, the one that it would have had: whether its loss concerns a subscriber
        must not depend on when the arbiter learned of the subscription, so it is judged like any other message.
        """
        link = self._link
        drops_out = self._drops_out(sent)
        departure = FOREVER if drops_out else self._departure(sent)
        stays = departure == FOREVER
        lost = None
        if link.loss_at_sender and self._is_lost_at_sender(sent, number):
            lost = LOST_AT_SENDER
        elif stays:
            lost = DROPPED_OUT if drops_out else CUT_OFF
        elif link.bandwidth is not None:
            departure = self._queue(sent, departure, _transmission(size, link.bandwidth))
        if stays:
            departure = sent
        if lost is None and link.loss_at_receiver and self._happens(link.loss_at_receiver, sent, number, _LOSS):
            lost = LOST_AT_RECEIVER
        drawn = self._latency(sent, number, _LATENCY)
        if lost is not None:
            return (self._in_range(sent, departure + drawn),), lost
        arrival = self._arrive(sent, departure + drawn)
        if link.duplication and self._happens(link.duplication, sent, number, _DUPLICATION):
            drawn = self._latency(sent, number, _LATENCY_OF_COPY)
            return (arrival, self._arrive(sent, departure + drawn)), None
        return (arrival,), None

    def is_idle(self, now: int) -> bool:
        """Whether nothing that was sent so far matters to what is sent from now on: a new path would do the same."""
        return self._busy_until <= now and self._last <= now

    def _is_lost_at_sender(self, sent: int, number: int) -> bool:
        probability = self._link.loss_at_sender
        if self._draws is None:
            return unit(draw_bits(self._key_at_sender, number)) < probability
        names = self._names[:2]
        name = (LOSS_AT_SENDER, *names, str(number))
        source = DrawSource(name, Chance(probability), ("loss at sender", *names), number)
        return bool(self._draws.draw(source, sent))

    def _happens(self, probability: float, sent: int, number: int, which: int) -> bool:
        if self._draws is None:
            return unit(draw_bits(self._key, number, which)) < probability
        return bool(self._draws.draw(self._source(Chance(probability), number, which), sent))

    def _latency(self, sent: int, number: int, which: int) -> int:
        latency = self._link.latency
        if self._draws is None or isinstance(latency, Fixed):  # What is fixed isn't drawn, and can't be replaced.
            return latency.draw(draw_bits(self._key, number, which))
        return int(self._draws.draw(self._source(latency, number, which), sent))

    def _source(self, distribution: Distribution, number: int, which: int) -> DrawSource:
        name = (_PURPOSES[which], *self._names, str(number))
        return DrawSource(name, distribution, ("link", *self._names), number, which)

    def _departure(self, sent: int) -> int:
        """Return when the message leaves; FOREVER if it doesn't: it is lost, or held and never released."""
        departure = sent
        for outage in self._outages:  # Sorted by start: leaving one hold may mean entering the next.
            if outage.verb == "partition":
                if outage.start <= sent < outage.end:
                    return FOREVER
            elif outage.start <= departure < outage.end:
                departure = outage.end
        return departure

    def _drops_out(self, sent: int) -> bool:
        """Whether it never leaves its sender, whatever the network would do to it."""
        for dropout in self._dropouts:  # noqa: SIM110 - As a generator it wouldn't be C.
            if dropout.start <= sent < dropout.end:
                return True
        return False

    def _queue(self, sent: int, departure: int, transmission: int) -> int:
        """Return when the last byte has left, behind what is still being sent on this path."""
        if sent < self._opened:  # From before the receiver was there: under way, but not in the way of anything.
            return departure + transmission
        self._busy_until = min(max(departure, self._busy_until) + transmission, FOREVER)
        return self._busy_until

    def _arrive(self, sent: int, earliest: int) -> int:
        arrival = self._in_range(sent, earliest)
        if self._link.fifo:
            arrival = self._last = max(arrival, self._last)
        return arrival

    def _in_range(self, sent: int, earliest: int) -> int:
        """Apply the sender's own least latency; keep what queues beyond all times out of the way of 64-bit integers."""
        return min(max(earliest, sent + self._latency_least), FOREVER)


class Paths:
    """Finds the link of every path of a run: an index of the network's rules."""

    def __init__(
        self, network: Network, seed: int, *, dropouts: tuple[Dropout, ...] = (), draws: DrawTable | None = None
    ) -> None:
        self._seed = seed
        self._draws = draws
        self._default = network.default
        self._links = {(rule.topic, rule.sender, rule.receiver): rule.link for rule in network.rules}
        self._outages = tuple(sorted(network.outages, key=lambda outage: (outage.start, outage.end, str(outage))))
        self._dropouts = dropouts
        self._estop = None if network.estop is None else Link(latency=Fixed(network.estop))
        self._rules_by_sender: dict[str | None, list[Rule]] = {}
        for rule in network.rules:
            self._rules_by_sender.setdefault(rule.sender, []).append(rule)

    def link(self, topic: str, sender: str, receiver: str) -> Link:
        """Return the link of the most specific rule."""
        if topic == ESTOP_TOPIC and self._estop is not None:
            return self._estop
        links = self._links
        if links:
            for selection in (
                (topic, sender, receiver),
                (None, sender, receiver),
                (topic, sender, None),
                (topic, None, receiver),
                (None, sender, None),
                (None, None, receiver),
                (topic, None, None),
            ):
                found = links.get(selection)
                if found is not None:
                    return found
        return self._default

    def least_into(self, topic: str, receiver: str) -> int:
        """Return the least latency with which any sender may reach a receiver on a topic."""
        if topic == ESTOP_TOPIC and self._estop is not None:
            return self._estop.latency.minimum
        links = [
            link for (about, _, to), link in self._links.items() if about in (None, topic) and to in (None, receiver)
        ]
        return min([link.latency.minimum for link in (self._default, *links)])

    def open(self, topic: str, sender: str, receiver: str, *, latency_least: int = 0, opened: int = 0) -> Path:
        """Make the path; `latency_least` is what the sender promised for all of its sends."""
        return Path(
            self.link(topic, sender, receiver),
            self._seed,
            (topic, sender, receiver),
            outages=self.outages(topic, sender, receiver),
            dropouts=self._dropouts_of(topic, sender),
            latency_least=latency_least,
            opened=opened,
            draws=self._draws,
        )

    def outages(self, topic: str, sender: str, receiver: str) -> tuple[Outage, ...]:
        if topic == ESTOP_TOPIC and self._estop is not None:
            return ()
        return tuple([outage for outage in self._outages if outage.matches(topic, sender, receiver)])

    def _dropouts_of(self, topic: str, sender: str) -> tuple[Dropout, ...]:
        if topic == ESTOP_TOPIC and self._estop is not None:
            return ()
        return tuple([each for each in self._dropouts if each.sender == sender and each.topic in (None, topic)])

    def lifetime(self, topic: str, sender: str, latency_least: int) -> Lifetime:
        """Return by when a sender's messages on a topic have arrived at all receivers that there are or may be."""
        if topic == ESTOP_TOPIC and self._estop is not None:
            return Lifetime(max(latency_least, self._estop.latency.maximum), (), None, in_order=False)
        rules = self._rules_by_sender.get(sender, []) + self._rules_by_sender.get(None, [])
        links = [rule.link for rule in rules if rule.topic in (None, topic)] + [self._default]
        holds = tuple(
            [
                outage
                for outage in self._outages
                if outage.verb == "hold" and outage.end < FOREVER and outage.matches(topic, sender, None)
            ]
        )
        latency_max = max(latency_least, *[link.latency.maximum for link in links])
        bandwidth_min = min([link.bandwidth for link in links if link.bandwidth is not None], default=None)
        in_order = True in [link.fifo for link in links]
        return Lifetime(latency_max, holds, bandwidth_min, in_order=in_order)


class Lifetime:
    """How long the messages of one sender on one topic may be under way, at the most.

    It leaves queueing behind others out: paths with limited bandwidth see every message from their start on and keep
    what they need themselves. `queues` says whether there may be any.
    """

    __slots__ = ("_bandwidth_min", "_holds", "_last", "_latency_max", "constant", "queues")

    def __init__(
        self, latency_max: int, holds: tuple[Outage, ...], bandwidth_min: int | None, *, in_order: bool
    ) -> None:
        self.queues = bandwidth_min is not None
        # What most messages last, if nothing holds them back: the greatest latency; 0 if it has to be worked out.
        self.constant = 0 if holds or in_order or self.queues else latency_max
        self._bandwidth_min = bandwidth_min
        self._latency_max = latency_max
        self._holds = holds
        self._last = 0

    def expiry(self, sent: int, size: int) -> int:
        """Return a time that the message's arrival isn't later than, at any receiver where it doesn't queue."""
        departure = sent
        for hold in self._holds:
            if hold.start <= departure < hold.end:
                departure = hold.end
        if self._bandwidth_min is not None:
            departure += _transmission(size, self._bandwidth_min)
        # Never earlier than the one before: a FIFO link may hold this message back that long.
        self._last = max(self._last, departure + self._latency_max)
        return self._last


def _transmission(size: int, bandwidth: int) -> int:
    """Return how long it takes to send so many bytes, rounded up to whole nanoseconds; at most for ever."""
    return min(-(-size * SECOND // bandwidth), FOREVER)
