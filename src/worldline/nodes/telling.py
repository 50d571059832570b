"""What hosts tell whoever looks on, in the words of history; the record of the trace goes along with each.

A message has the kernel's number of its first copy; further copies have the next ones (`HostObserver` knows whose). One
that doesn't even set out has none: these count down from -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from worldline.history.observer import LOG, META, OUTSIDE, Observer
from worldline.history.plain import encoded, plain
from worldline.model.time import FOREVER
from worldline.nodes.trace import NodeRecord, said

if TYPE_CHECKING:
    from worldline.nodes.ends import LinkEnd
    from worldline.nodes.events import Meta
    from worldline.nodes.host import NodeHost

HELD = "the link is down, and keeps it"


class Incoming(NamedTuple):
    """A message that has reached a host: when it was sent, the kernel's number of it, and when it arrived.

    It may have been held there since, by a link that was down.
    """

    message: Any
    sent: int
    number: int
    arrived: int
    was_held: bool = False


def tell_sent(host: NodeHost, end: LinkEnd, message: Any, delays: tuple[int, ...], reason: str) -> None:
    """Tell of a message that was sent just now, and when it and its copies arrive, or why they don't."""
    if not delays:
        _count(host, end.name, message, reason)
    observer = host._wl_observer
    if observer is None:
        return
    at, data = host.now, plain(message)
    arrivals = tuple(at + delay for delay in delays)
    record = NodeRecord(
        at=at,
        kind="sent",
        node=host.id,
        peer=end.neighbor,
        link=end.link,
        text=said(message),
        what=type(message).__name__,
        arrivals=arrivals,
        reason=reason,
        data=data,
    )
    number = host._wl_number_sent - len(arrivals) + 1 if arrivals else host.number_unsent()
    observer.sent(host.name, number, record.what, at, encoded(data), max(arrivals, default=at + 1), record)
    for copy, arrival in enumerate(arrivals):
        observer.arrives(host.name, number, end.name, arrival, copy, None)
    if not arrivals:
        observer.arrives(host.name, number, end.name, at + 1, 0, reason)


def tell_received(host: NodeHost, end: LinkEnd, incoming: Incoming) -> None:
    """Tell that a node gets a message now. That it arrives was told when it was sent, unless it was held."""
    if incoming.was_held:
        _count(host, host.name, incoming.message, HELD, -1)
    observer = host._wl_observer
    if observer is None:
        return
    if incoming.was_held:
        observer.arrives(end.name, incoming.number, host.name, incoming.arrived, 0, None)
        observer.lasts(end.name, incoming.number, host.now)
    _tell_what_became(observer, host, end, incoming, "")


def tell_dropped(host: NodeHost, end: LinkEnd, incoming: Incoming, reason: str) -> None:
    """Tell that a message has arrived in vain."""
    _count(host, host.name, incoming.message, reason)
    if incoming.was_held:
        _count(host, host.name, incoming.message, HELD, -1)
    observer = host._wl_observer
    if observer is None:
        return
    observer.arrives(end.name, incoming.number, host.name, incoming.arrived, 0, reason)
    if incoming.was_held:
        observer.lasts(end.name, incoming.number, host.now)
    _tell_what_became(observer, host, end, incoming, reason)


def _count(host: NodeHost, receiver: str, message: Any, reason: str, number: int = 1) -> None:
    """Count a message that doesn't reach its node; for an outcome, whether anybody observes the run or not."""
    dropped, key = host._wl_roster.engine.dropped, (receiver, type(message).__name__, reason)
    dropped[key] = dropped.get(key, 0) + number
    if not dropped[key]:
        del dropped[key]


def tell_held(host: NodeHost, end: LinkEnd, incoming: Incoming) -> None:
    """Tell that a message waits where it has arrived, for nobody knows how long: until then, it is lost."""
    _count(host, host.name, incoming.message, HELD)
    observer = host._wl_observer
    if observer is not None:
        observer.lasts(end.name, incoming.number, FOREVER)
        observer.arrives(end.name, incoming.number, host.name, incoming.arrived, 0, HELD)


def _tell_what_became(observer: Observer, host: NodeHost, end: LinkEnd, incoming: Incoming, reason: str) -> None:
    record = NodeRecord(
        at=host.now,
        kind="dropped" if reason else "received",
        node=host.id,
        peer=end.neighbor,
        link=end.link,
        text=said(incoming.message),
        what=type(incoming.message).__name__,
        sent=incoming.sent,
        reason=reason,
    )
    observer.noted(host.name, record.what, record.at, None, record)


def tell_event(host: NodeHost, event: Meta) -> None:
    """Tell what the simulator does to a node that it can act on."""
    if host._wl_observer is not None:
        tell_done(host, str(event), type(event).__name__)


def tell_done(host: NodeHost, text: str, what: str) -> None:
    """Tell what is done to a node, whether it notices or not."""
    record = NodeRecord(at=host.now, kind="received", node=host.id, text=text, what=what)
    _tell_text(host, host.name, META, record)


def tell_happened(host: NodeHost, text: str) -> None:
    """Tell what happens to the network, to everybody at once; so one host does it, as if from outside."""
    if host.id == 0:
        record = NodeRecord(at=host.now, kind="happened", text=text, what=text.partition(" ")[0])
        _tell_text(host, OUTSIDE, META, record)


def tell_logged(host: NodeHost, text: object) -> None:
    """Tell of a line that a node writes."""
    if host._wl_observer is not None:
        _tell_text(host, host.name, LOG, NodeRecord(at=host.now, kind="logged", node=host.id, text=str(text)))


def _tell_text(host: NodeHost, who: str, topic: str, record: NodeRecord) -> None:
    if host._wl_observer is not None:
        host._wl_observer.noted(who, topic, record.at, encoded({"text": record.text}), record)
