"""Links: what the network does to a message, as plain data that can be checked before a run.

A rule names a topic, a sender, a receiver, or several of these; the rule that names most wins as a whole, and between
two that name equally many the sender counts before the receiver and the receiver before the topic. Two rules that
name the same are refused, so a message's link never depends on the order of a file. A topic ``udp/*`` stands for that
of every participant, ``udp/NAME``: a rule that names one of those itself wins.

Outages are scheduled in simulated time and judged by a message's *send* time: what is sent into a partition is lost,
what is sent into a hold leaves when the hold is released, or when the next one is if that has begun by then. A
partition wins over a hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.errors import ConfigurationError, shown
from worldline.model.latency import Fixed, Latency, as_distribution, check_latency
from worldline.model.message import Message, check_name
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, MS, TimeLike, format_time, is_time

# Buffers: which of the messages that arrive between two sequence points a subscriber gets to see.
#
# A buffer looks at the ordered arrivals of its topic, never at the moment they reached a socket, so what it drops is
# the same in every run. `discard` keeps nothing: nothing is sent to such a subscriber or counted, and no sender holds
# it up.


class Buffer(Struct, frozen=True):
    """Keep at most `limit` messages (None: all), the newest or the oldest ones."""

    limit: int | None = None
    oldest: bool = False

    def __str__(self) -> str:
        if self.limit is None:
            return "unbounded"
        if self.limit == 0:
            return "discard"
        if self.limit == 1 and not self.oldest:
            return "mailbox"
        return f"{'oldest' if self.oldest else 'newest'}({self.limit})"


UNBOUNDED = Buffer()
DISCARD = Buffer(0)
MAILBOX = Buffer(1)


def newest(size: int) -> Buffer:
    return _sized(size, oldest=False)


def oldest(size: int) -> Buffer:
    return _sized(size, oldest=True)


def _sized(size: int, *, oldest: bool) -> Buffer:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ConfigurationError(
            f"a buffer of {shown(size)} messages isn't possible", advice="use at least 1, or discard"
        )
    return Buffer(size, oldest)


_NAMED = {"unbounded": UNBOUNDED, "discard": DISCARD, "mailbox": MAILBOX}
_SIZED = re.compile(r"(newest|oldest)\(([0-9]{1,9})\)")


def as_buffer(buffer: Buffer | str) -> Buffer:
    """Take a buffer or its text: ``discard``, ``mailbox``, ``newest(3)``, ``oldest(3)`` or ``unbounded``."""
    if isinstance(buffer, Buffer):
        if type(buffer.oldest) is not bool or not (
            buffer.limit is None or (type(buffer.limit) is int and buffer.limit >= 0)
        ):
            raise ConfigurationError(
                f"a buffer of {shown(buffer.limit)} messages isn't possible", advice="use at least 1, or discard"
            )
        return buffer
    text = buffer.strip() if isinstance(buffer, str) else ""
    if text in _NAMED:
        return _NAMED[text]
    if match := _SIZED.fullmatch(text):
        return _sized(int(match[2]), oldest=match[1] == "oldest")
    raise ConfigurationError(
        f"{shown(buffer)} isn't a buffer", advice="use discard, mailbox, newest(n), oldest(n) or unbounded"
    )


def sift(arrivals: list[Message], buffers: dict[str, Buffer]) -> list[Message]:
    """Return those of the ordered arrivals that their topics' buffers keep, in the same order."""
    kept: dict[str, int] = {}
    keep = [False] * len(arrivals)
    # Newest-keeping buffers count from the end, oldest-keeping ones from the start; one pass each way serves both.
    for forward in (True, False):
        order = range(len(arrivals)) if forward else range(len(arrivals) - 1, -1, -1)
        for place in order:
            topic = arrivals[place].topic
            buffer = buffers[topic]
            if buffer.oldest is not forward:
                continue
            taken = kept.get(topic, 0)
            if buffer.limit is None or taken < buffer.limit:
                keep[place] = True
                kept[topic] = taken + 1
    return [message for message, wanted in zip(arrivals, keep, strict=True) if wanted]


ESTOP_TOPIC = "worldline/estop"
"""The topic on which all participants are told of an emergency stop; no rule and no outage applies to it."""


class Link(Struct, frozen=True, kw_only=True):
    """What happens to messages from one sender to one receiver. Bandwidth is in bytes per second; None is unlimited.

    `corruption` is the share of messages that arrive with one bit flipped.
    """

    latency: Latency
    loss_at_sender: float = 0.0
    loss_at_receiver: float = 0.0
    duplication: float = 0.0
    fifo: bool = False
    bandwidth: int | None = None
    corruption: float = 0.0


class Rule(Struct, frozen=True, kw_only=True):
    """A link, and the messages it applies to; None matches every name."""

    link: Link
    topic: str | None = None
    sender: str | None = None
    receiver: str | None = None

    def __str__(self) -> str:
        return _select_text(self.topic, self.sender, self.receiver)


class Outage(Struct, frozen=True, kw_only=True):
    """A time span [start, end) in which matching messages are lost (partition) or held back (hold)."""

    verb: Literal["partition", "hold"]
    start: int
    end: int = FOREVER
    topic: str | None = None
    sender: str | None = None
    receiver: str | None = None

    def __str__(self) -> str:
        select = _select_text(self.topic, self.sender, self.receiver)
        return f"{self.verb} of {select} from {format_time(self.start)} to {format_time(self.end)}"

    def matches(self, topic: str, sender: str, receiver: str | None) -> bool:
        """Whether it holds for these names; a receiver of None asks whether it holds for any receiver."""
        return (
            self.topic in (None, topic)
            and self.sender in (None, sender)
            and (receiver is None or self.receiver in (None, receiver))
        )


class Network(Struct, frozen=True, kw_only=True):
    """All links of a run. `control_latency` is the minimum time between an invite or a stop and its effect.

    `estop` is the time in which all participants are told of an emergency stop; None: there is none.
    """

    default: Link = Link(latency=Fixed(MS))
    rules: tuple[Rule, ...] = ()
    outages: tuple[Outage, ...] = ()
    control_latency: int = MS
    estop: int | None = None


def link(
    latency: Latency | TimeLike,
    *,
    loss: float = 0.0,
    loss_at_sender: float = 0.0,
    duplication: float = 0.0,
    fifo: bool = False,
    bandwidth: int | None = None,
    corruption: float = 0.0,
) -> Link:
    """Describe a link; ``link("5ms", loss=0.1)`` has a fixed latency, and loses messages at the receiver.

    A latency can also be text: ``link("uniform(4ms, 9ms)")`` is ``link(uniform("4ms", "9ms"))``.
    """
    made = Link(
        latency=as_distribution(latency),
        loss_at_sender=loss_at_sender,
        loss_at_receiver=loss,
        duplication=duplication,
        fifo=fifo,
        bandwidth=bandwidth,
        corruption=corruption,
    )
    check_link(made, "the link")
    return made


def check_estop_latency(name: str, latency_least: int, estop: int) -> None:
    """Refuse a participant whose sends take longer than an emergency stop may."""
    if latency_least > estop:
        raise ConfigurationError(
            f"{name} needs at least {format_time(latency_least)} for what it sends, and an emergency stop has to be "
            f"everywhere within {format_time(estop)}",
            advice=f"lower its latency_least, or give emergency stops {format_time(latency_least)}",
        )


def with_estop_latency(network: Network, latency: TimeLike) -> Network:
    """Return a network over which all participants are told of an emergency stop within a time."""
    return replace(network, estop=as_time(latency, "the latency of an emergency stop"))


def partition(
    left: Iterable[str], right: Iterable[str], start: TimeLike, repair: TimeLike | None = None
) -> tuple[Outage, ...]:
    """Cut two groups of participants off from each other, in both directions, until the repair."""
    return _between("partition", left, right, start, repair)


def hold(
    left: Iterable[str], right: Iterable[str], start: TimeLike, release: TimeLike | None = None
) -> tuple[Outage, ...]:
    """Hold back what two groups of participants send each other, in both directions, until the release."""
    return _between("hold", left, right, start, release)


def _between(
    verb: Literal["partition", "hold"],
    left: Iterable[str],
    right: Iterable[str],
    start: TimeLike,
    end: TimeLike | None,
) -> tuple[Outage, ...]:
    if isinstance(left, str) or isinstance(right, str):
        raise ConfigurationError(f"a {verb} is between two lists of names", advice="give lists, also for one name")
    begins, ends = as_time(start), FOREVER if end is None else as_time(end)
    others = tuple(right)
    pairs = [pair for a in left for b in others for pair in ((a, b), (b, a))]
    return tuple(Outage(verb=verb, start=begins, end=ends, sender=a, receiver=b) for a, b in pairs)


def check_network(network: Network, roster: Sequence[str]) -> None:
    """Refuse a network that can't be run with these participants; the error names the rule."""
    check_kinds(network)
    known = frozenset(roster)
    check_link(network.default, "the default link")
    if not is_time(network.control_latency) or network.control_latency < 1:
        raise ConfigurationError(
            f"the control link: a latency of {shown(network.control_latency)} isn't possible", advice="use at least 1ns"
        )
    if network.estop is not None and (not is_time(network.estop) or network.estop < 1):
        raise ConfigurationError(
            f"an emergency stop can't be told within {shown(network.estop)}", advice="use at least 1ns"
        )
    seen = set[tuple[str | None, str | None, str | None]]()
    for rule in network.rules:
        check_link(rule.link, str(rule))
        _check_selection(str(rule), rule.topic, (rule.sender, rule.receiver), known)
        selection = (rule.topic, rule.sender, rule.receiver)
        if selection in seen:
            raise ConfigurationError(f"{rule}: two rules name the same", advice="merge them into one")
        if selection == (None, None, None):
            raise ConfigurationError(
                "a rule names no topic, sender or receiver", advice="change the default link instead"
            )
        seen.add(selection)
    for outage in network.outages:
        _check_outage(outage, known)


_EACH = "/*"


def with_each_topic(network: Network, names: Sequence[str]) -> Network:
    """Return the network with a rule for each participant's topic where one names them all, as ``udp/*``."""
    rules = network.rules if isinstance(network, Network) and isinstance(network.rules, tuple) else ()
    if not any(isinstance(rule, Rule) and (rule.topic or "").endswith(_EACH) for rule in rules):
        return network
    own = [rule for rule in rules if not (rule.topic or "").endswith(_EACH)]
    named = {(rule.topic, rule.sender, rule.receiver) for rule in own}
    made = [
        replace(rule, topic=f"{(rule.topic or '')[:-1]}{name}")
        for rule in rules
        if (rule.topic or "").endswith(_EACH)
        for name in names
    ]
    return replace(
        network, rules=(*own, *(rule for rule in made if (rule.topic, rule.sender, rule.receiver) not in named))
    )


def check_kinds(network: Network) -> None:
    """Refuse what isn't a network at all: a forgotten star or link() is easily written."""
    if not isinstance(network, Network):
        raise ConfigurationError(f"{shown(network)} isn't a network", advice="write Network(default=link(...))")
    for part, kind, example in (
        ((network.default,), Link, 'default=link("1ms")'),
        (network.rules, Rule, 'rules=(Rule(topic="image", link=link("5ms")),)'),
        (network.outages, Outage, "outages=(*partition(...),)"),
    ):
        if not isinstance(part, tuple | list):
            raise ConfigurationError(f"{shown(part)} isn't a tuple", advice=f"write {example}")
        for thing in part:
            if not isinstance(thing, kind):
                raise ConfigurationError(f"{shown(thing)} isn't a {kind.__name__}", advice=f"write {example}")
            if isinstance(thing, Rule) and not isinstance(thing.link, Link):
                raise ConfigurationError(f"{thing}: {shown(thing.link)} isn't a link", advice=f"write {example}")


def _check_outage(outage: Outage, roster: frozenset[str]) -> None:
    name = f"outage of {_select_text(outage.topic, outage.sender, outage.receiver)}"
    if outage.verb not in ("partition", "hold"):
        raise ConfigurationError(f"{name}: {shown(outage.verb)} is neither partition nor hold")
    if not is_time(outage.start) or not (outage.end == FOREVER or is_time(outage.end)):
        raise ConfigurationError(f"{name}: from {shown(outage.start)} to {shown(outage.end)} isn't a span of time")
    if outage.end <= outage.start:
        raise ConfigurationError(f"{outage}: it ends before it starts")
    _check_selection(str(outage), outage.topic, (outage.sender, outage.receiver), roster)


def check_link(checked: Link, name: str) -> None:
    """Refuse a link that can't be; the error starts with its name."""
    check_latency(checked.latency, name)
    for what, probability in (
        ("loss at the sender", checked.loss_at_sender),
        ("loss at the receiver", checked.loss_at_receiver),
        ("duplication", checked.duplication),
        ("corruption", checked.corruption),
    ):
        # Written so that a NaN, which compares false to everything, is refused too.
        if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise ConfigurationError(f"{name}: {what} of {shown(probability)} isn't a probability", advice="use 0 to 1")
    if not isinstance(checked.fifo, bool):
        raise ConfigurationError(f"{name}: fifo is true or false, not {shown(checked.fifo)}")
    bandwidth = checked.bandwidth
    if bandwidth is not None and (isinstance(bandwidth, bool) or not isinstance(bandwidth, int) or bandwidth < 1):
        raise ConfigurationError(
            f"{name}: a bandwidth of {shown(bandwidth)} isn't possible", advice="use whole bytes per second"
        )


def _check_selection(
    what: str, topic: str | None, names: tuple[str | None, str | None], roster: frozenset[str]
) -> None:
    if topic is not None:
        check_name(topic, "a topic")
        if topic == "*":
            raise ConfigurationError(
                f"{what}: {shown(topic)} is no topic",
                advice="name a sender or receiver alone, or change the default link, which is for all messages",
            )
    for name in names:
        if name is not None and name not in roster:
            raise ConfigurationError(
                f"{what}: there is no participant {shown(name)}", advice=f"the roster is {', '.join(sorted(roster))}"
            )


def _select_text(topic: str | None, sender: str | None, receiver: str | None) -> str:
    return f"link {sender or '*'} → {receiver or '*'} on {topic or '*'}"
