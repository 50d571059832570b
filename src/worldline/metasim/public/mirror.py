"""The public LCM: everything that the server of a run receives and delivers, for programs that look on.

It is an observer of the run. A multicast group or a broker is shown everything as it becomes settled, in the order of
simulated time (`timeline`, `feed`); a log is written for later (`log`). To look on changes nothing in the run. It may
lose messages, except in a log, and says how many.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from heapq import heappop, heappush
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self

from worldline.files.saving import destination, refusal, write_all
from worldline.history.observer import Observer
from worldline.metasim.public.broker import TcpqBroker
from worldline.metasim.public.tcpq import (
    CHANNEL_BYTES_MAX,
    TIME_CHANNEL,
    LcmLibraryPort,
    PublicName,
    TcpqPort,
    check_participant,
    check_public_names,
    open_port,
)
from worldline.model.errors import ConfigurationError, LossError, PeerError, UsageError, shortened, shown
from worldline.model.time import FOREVER
from worldline.recording.pending import Pending, Publication

# The message that says when the messages behind it were sent: LCM's own carry no time on their way. Pure.
#
# It is an LCM message itself, of this type, so that lcm-spy and every language's generated code can read it.

TIME_DEFINITION = """\
package worldline;

struct time_t
{
    int64_t sent_ns;
    int64_t at_ns;
}
"""
_FINGERPRINT = 0x848C6A102A722C11  # What lcm-gen makes of the definition.
_LAYOUT = struct.Struct(">Qqq")


def encode_time(sent: int, at: int) -> bytes:
    """Return the message for what was sent then, and happens `at` (for a delivery, its arrival)."""
    return _LAYOUT.pack(_FINGERPRINT, sent, at)


def decode_time(data: bytes) -> tuple[int, int]:
    """Return when the messages that follow were sent, and when they happen."""
    if len(data) != _LAYOUT.size or _LAYOUT.unpack(data)[0] != _FINGERPRINT:
        raise PeerError("that isn't a message of type worldline.time_t")
    _, sent, at = _LAYOUT.unpack(data)
    return sent, at


# Puts the sends and deliveries of a run into the order in which they happen. Pure.
#
# An observer is told of arrivals when a message is sent, and in an order that luck decides (`history.observer`). Taken
# from here, they are ordered by their times; at the same time deliveries come first, since what is sent then may be the
# answer to them, and then names and numbers decide. So the sequence of all that is ever taken is the same in every run.
#
# Unlike a recorder, which writes all that becomes of a message in one place, this needn't wait for the last arrival of
# a message: what happens before the time that has passed is settled (H3). So messages that are under way for long, or
# held back by an outage, hold up no program that looks on.

# When it happens; 0 for a delivery, 1 for a send; sender, number, receiver, copy.
_Key = tuple[int, int, str, int, str, int]


class PublicEvent(NamedTuple):
    """A send or a delivery: its name on the public LCM, when it happens, and when the message was sent."""

    name: str
    payload: bytes
    sent: int
    at: int


_Message = tuple[str, int, bytes]
"""Topic, when it was sent, payload."""


class Timeline:
    """What has been told of a run, and hasn't been taken."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int], _Message] = {}
        self._lasting: dict[tuple[str, int], int] = {}  # Until when something may become of them.
        self._expiries: list[tuple[int, str, int]] = []
        # A heap. What is said anew has the same key, so a number of its own keeps messages from being compared.
        self._ahead: list[tuple[_Key, int, _Message]] = []
        self._said = 0
        self._due: dict[tuple[str, str], dict[_Key, object]] = {}  # Receiver and topic → the arrivals that hold.
        self._names: dict[tuple[str, str, str], str] = {}

    def __len__(self) -> int:
        """How many messages are kept."""
        return len(self._messages)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int) -> None:
        message = self._messages[who, number] = topic, at, payload
        self._lasting[who, number] = until
        heappush(self._expiries, (until, who, number))
        heappush(self._ahead, ((at, 1, who, number, "", 0), 0, message))

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        message = self._messages[sender, number]
        key = (at, 0, sender, number, receiver, copy)
        due = self._due.setdefault((receiver, message[0]), {})
        if lost is not None:
            due.pop(key, None)
        elif key not in due:
            due[key] = None
            self._said += 1
            heappush(self._ahead, (key, self._said, message))

    def lasts(self, sender: str, number: int, until: int) -> None:
        before = self._lasting.get((sender, number))
        if before is not None and until != before:
            until = until if before == FOREVER else max(until, before)
            self._lasting[sender, number] = until
            heappush(self._expiries, (until, sender, number))

    def closed(self, receiver: str, topic: str, at: int) -> None:
        due = self._due.get((receiver, topic), {})
        for key in [key for key in due if key[0] >= at]:
            del due[key]

    def take(self, passed: int) -> list[PublicEvent]:
        """Remove and return, in order, all that happens before a time that has passed."""
        taken: list[PublicEvent] = []
        ahead, dues, names = self._ahead, self._due, self._names
        while ahead and ahead[0][0][0] < passed:
            key, _, (topic, sent, payload) = heappop(ahead)
            at, is_send, sender, _, receiver, _ = key
            if is_send or dues[receiver, topic].pop(key, _ABSENT) is not _ABSENT:
                name = names.get((topic, sender, receiver))
                if name is None:
                    name = names[topic, sender, receiver] = str(PublicName(topic, sender, receiver or None))
                taken.append(PublicEvent(name, payload, sent, at))
        expiries, lasting = self._expiries, self._lasting
        while expiries and expiries[0][0] < passed:
            until, sender, number = heappop(expiries)
            if lasting.get((sender, number), FOREVER) <= until:
                del lasting[sender, number], self._messages[sender, number]
        return taken


_ABSENT = object()


# Feeds an outlet from a thread of its own, so that a slow one never holds up the run.
#
# What isn't out yet is kept up to a limit. Beyond that, messages are left out, the newest first, and counted.

QUEUE_BYTES_MAX = 2**25
_EVENT_COST = 200  # Bytes that an event takes besides its payload; about.
LINGER_S = 2.0


class Feed:
    """Passes events on to an outlet. `count` are out, `lost` never will be; `nameless` have too long a name for LCM."""

    def __init__(
        self,
        outlet: TcpqBroker | TcpqPort | LcmLibraryPort,
        *,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        linger_s: float | None = LINGER_S,
    ) -> None:
        self.outlet = outlet
        self.count = 0
        self.lost = 0
        self.nameless = 0
        self.trouble = ""
        self._queue_bytes_max = queue_bytes_max
        self._linger_s = linger_s
        self._events: list[PublicEvent] = []
        self._size = 0  # With what is just being passed on.
        self._told: tuple[int, int] | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"worldline to {outlet.url}", daemon=True)
        self._thread.start()

    def put(self, events: Iterable[PublicEvent]) -> None:
        """Take in events, as far as there is room; never waits."""
        with self._changed:
            for event in events:
                name = event.name
                size = len(event.payload) + _EVENT_COST
                if len(name) > CHANNEL_BYTES_MAX or (not name.isascii() and len(name.encode()) > CHANNEL_BYTES_MAX):
                    self.nameless += 1
                elif self._size and self._size + size > self._queue_bytes_max:
                    self.lost += 1
                else:
                    self._events.append(event)
                    self._size += size
            self._changed.notify_all()

    def drain(self, timeout_s: float | None) -> bool:
        """Wait until all is out, but not for longer than that; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._size, timeout_s)

    def close(self) -> None:
        """End it, when all is out or can't be helped."""
        self.drain(self._linger_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self.outlet.close()
        self._thread.join()

    def _work(self) -> None:
        while (events := self._next()) is not None:
            for event in events:
                self._pass_on(event)
            with self._changed:
                self._size -= sum(len(event.payload) + _EVENT_COST for event in events)
                if not self._size:
                    self._changed.notify_all()

    def _pass_on(self, event: PublicEvent) -> None:
        if self._closing:
            self._lose("")
            return
        try:
            if (event.sent, event.at) != self._told:
                self.outlet.publish(TIME_CHANNEL, encode_time(event.sent, event.at))
                self._told = (event.sent, event.at)
            self.outlet.publish(event.name, event.payload)
            self.count += 1
        except LossError as error:
            self._lose(error.problem)
        except Exception as error:  # A thread has no caller to tell, and what follows is to be passed on, too.
            self._lose(shortened(f"{error!r}"))

    def _lose(self, reason: str) -> None:
        with self._changed:  # `put` counts, too.
            self.lost += 1
            self.trouble = self.trouble or reason

    def _next(self) -> list[PublicEvent] | None:
        """Return what there is to pass on, all that has come in since the last time; None, if that was all."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._closing)
            events, self._events = self._events, []
            return events or None


_FILE = "file://"
_SHOW_EVERY_S = 1.0  # How old what a log doesn't have yet may be.
_FORMS = "write udpm://GROUP:PORT, tcpq://HOST:PORT or the path of a log file"


class PublicLcm(Observer):
    """Mirrors a run. `to` is where: ``udpm://239.255.76.67:7667?ttl=0``, ``tcpq://HOST:PORT`` or the path of a log.

    With `serve`, ``127.0.0.1:0`` for instance, it is a broker itself, for those who can't use multicast: `url` is what
    they need. Open it before the run: whatever can't be opened is an error then. Close it after the run, which waits up
    to `linger_s` for those who are slow; `report` then says what came of it.
    """

    def __init__(
        self,
        to: str | Iterable[str] = (),
        *,
        serve: str | None = None,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        linger_s: float = LINGER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths: list[str] = []
        self._urls: list[str] = []
        for target in [to] if isinstance(to, str) else to:
            path = _log_path(target)
            if path is None:
                self._urls.append(target)
            else:
                self._paths.append(path)
        self._broker = None if serve is None else TcpqBroker(serve)
        self._feed = partial(Feed, queue_bytes_max=queue_bytes_max, linger_s=linger_s)
        self._linger_s = linger_s
        self._timeline = Timeline()
        self._feeds: list[Feed] = []
        self._logs: list[PublicLog] = []
        self._told: list[Timeline | Pending] = []  # What feeds and logs are made of.
        self._clock = clock
        self._shows_at = clock() + _SHOW_EVERY_S

    def open(self) -> Self:
        """Open all that it mirrors to."""
        try:
            for path in self._paths:
                self._logs.append(PublicLog(path))
            for url in self._urls:
                outlet = open_port(url)
                # Multicast is paced, and never blocks: all of it gets out.
                linger_s = None if isinstance(outlet, LcmLibraryPort) else self._linger_s
                self._feeds.append(self._feed(outlet, linger_s=linger_s))
            if self._broker is not None:
                self._feeds.append(self._feed(self._broker.open()))
        except BaseException:
            self.close()
            raise
        self._told = [*([self._timeline] if self._feeds else []), *(log.pending for log in self._logs)]
        return self

    def __repr__(self) -> str:
        places = [*self._paths, *self._urls, *([] if self._broker is None else [self._broker.url])]
        return f"<PublicLcm to {', '.join(places) or 'nothing'}>"

    @property
    def url(self) -> str | None:
        """Where LCM programs connect, ``tcpq://127.0.0.1:41234``, if it is a broker."""
        return None if self._broker is None else self._broker.url

    @property
    def lost(self) -> int:
        """How many messages didn't get out, over all places that they should have got to."""
        ends: list[Feed | PublicLog] = [*self._feeds, *self._logs]
        unread = 0 if self._broker is None else self._broker.lost
        return unread + sum(each.lost + each.nameless for each in ends)

    @property
    def trouble(self) -> str:
        """Why a log isn't whole; empty, if all are."""
        return next((log.trouble for log in self._logs if log.trouble), "")

    def report(self) -> list[str]:
        """Say how many messages went where, and how many were lost: a line for each."""
        lines = [_line(feed.outlet.url, feed) for feed in self._feeds] + [_line(log.url, log) for log in self._logs]
        broker = self._broker
        if broker is not None and broker.lost:
            lines.append(f"public LCM {broker.url}: {broker.lost:,} lost, because subscribers didn't read them in time")
        if broker is not None and broker.trouble:
            lines.append(f"public LCM {broker.url}: the broker failed: {broker.trouble}")
        if broker is not None and broker.dismissed:
            reasons = "; ".join(dict.fromkeys(broker.dismissed))
            lines.append(f"public LCM {broker.url}: {len(broker.dismissed)} connections closed: {reasons}")
        return lines

    # --- What an observer is told ---

    def began(self, who: str, at: int) -> None:
        try:
            check_participant(who)
        except ConfigurationError as error:
            raise error.concerning(who, at) from None

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        for each in self._told:
            each.sent(who, number, topic, at, payload, until)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        for each in self._told:
            each.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        for each in self._told:
            each.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        for each in self._told:
            each.closed(receiver, topic, at)

    def passed(self, time: int) -> None:
        if self._feeds and (events := self._timeline.take(time)):
            for feed in self._feeds:
                feed.put(events)
        if self._logs:
            shows = (now := self._clock()) >= self._shows_at
            for log in self._logs:
                final = log.pending.advance(time)
                log.write(final + log.pending.take() if shows else final)
            if shows:
                self._shows_at = now + _SHOW_EVERY_S

    # --- What its owner does ---

    def check(self, publishes: Mapping[str, Iterable[str]], subscribes: Mapping[str, Iterable[str]]) -> None:
        """Refuse names that LCM can't carry: of participants, each with the channels that it declares."""
        check_public_names(publishes, subscribes)

    def wait_for_subscribers(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        """Wait until each channel has a subscriber at the broker; return those that have none.

        So a logger can see everything from the start.
        """
        if self._broker is None:
            raise UsageError("only a broker knows its subscribers", advice='give serve="127.0.0.1:0"')
        return self._broker.wait_for_subscribers(channels, timeout_s)

    def drain(self, timeout_s: float = LINGER_S) -> bool:
        """Wait until what has passed is out, but not for longer than that; return whether it is.

        If there is a log, nothing may be told of the run meanwhile: call it in the thread that tells, or after the run.
        """
        for log in self._logs:
            log.write(log.pending.take())
        drained = [feed.drain(timeout_s) for feed in self._feeds]
        return all(drained)

    def close(self, end: int | None = None) -> None:
        """Let out what is settled, and end it. With an `end`, all that was told is settled: the run was over then."""
        if end is not None:
            self.passed(end)
        for log in self._logs:
            log.write(log.pending.take() if end is None else log.pending.finish(end))
            log.close()
        for feed in self._feeds:
            feed.close()
        if self._broker is not None:
            self._broker.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(url: str, of: Feed | PublicLog) -> str:
    text = f"public LCM {url}: {of.count:,} messages"
    if of.lost:
        text += f", {of.lost:,} lost{f': {of.trouble}' if of.trouble else ''}"
    if of.nameless:
        text += f", {of.nameless:,} left out, whose names LCM has no room for"
    return text


def _log_path(target: str) -> str | None:
    """Return the path of a log; None, if it is something else."""
    if not isinstance(target, str) or not target:
        raise UsageError(f"{shown(target)} is no place for a public LCM", advice=_FORMS)
    if target.startswith(_FILE):
        return target.removeprefix(_FILE)
    kind, separator, _ = target.partition("://")
    if separator and kind not in ("udpm", "tcpq"):
        raise UsageError(f"{shown(target)} is no place for a public LCM", advice=_FORMS)
    if separator:
        return None
    if "/" not in target and "." not in target:  # More likely a word that was meant otherwise.
        raise UsageError(f"{shown(target)} is no place for a public LCM", advice=f"{_FORMS}; {_FILE}{target} is a log")
    return target


# Log files as lcm-logger writes them, of a run: the same bytes in every run.
#
# Every event has a time in microseconds: that of the send, also for a delivery, as if the server had been a Drake
# program that passes on the time its Publish was given. Tools that play or search a log expect those times in order,
# so the deliveries of a message follow its send. When each arrived is in the recording of the run.
#
# Nothing is left out of a log: an incomplete one would be worth little. So it is written where the run tells of its
# messages, in the same thread, as a recording is; that waits for memory, not for the disk or for another program. If
# the disk is full, the log ends with the last whole event that fits, and the run goes on: what it lacks is counted.

_SYNC = 0xEDA1DA01
_HEAD = struct.Struct(">IqqII")  # Sync word, number, microseconds, lengths of name and data.
_NS_IN_US = 1000


class PublicLog:
    """A log of all sends and deliveries of a run. `count` are in it, `lost` aren't; `nameless` have too long a name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.url = str(path)
        self._file = _opened(Path(path))
        self._size = 0
        self._names: dict[tuple[str, str, str | None], bytes] = {}
        self.pending = Pending()
        self.count = 0
        self.lost = 0
        self.nameless = 0
        self.trouble = ""

    def write(self, publications: list[Publication]) -> None:
        """Write what has become final."""
        events: list[bytes] = []
        for each in publications:
            utime = each.sent // _NS_IN_US
            receivers = [None, *(receiver for _, receiver, _, lost in each.fates() if lost is None)]
            for receiver in receivers:
                name = self._name(each.topic, each.sender, receiver)
                if len(name) > CHANNEL_BYTES_MAX:
                    self.nameless += 1
                    continue
                head = _HEAD.pack(_SYNC, self.count + len(events), utime, len(name), len(each.payload))
                events.append(head + name + each.payload)
        if events:
            self._append(events)

    def close(self) -> None:
        self._file.close()

    def _name(self, topic: str, sender: str, receiver: str | None) -> bytes:
        name = self._names.get((topic, sender, receiver))
        if name is None:
            name = self._names[topic, sender, receiver] = str(PublicName(topic, sender, receiver)).encode()
        return name

    def _append(self, events: list[bytes]) -> None:
        if self.trouble:
            self.lost += len(events)
            return
        try:
            write_all(self._file.fileno(), b"".join(events))
        except OSError as error:
            self.trouble = error.strerror or str(error)
            room = os.fstat(self._file.fileno()).st_size - self._size
            fit = sum(end <= room for end in accumulate(map(len, events)))
            self.lost += len(events) - fit
            del events[fit:]
        self.count += len(events)
        self._size += sum(map(len, events))
        if self.trouble:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)  # So it ends with a whole event.


def _opened(path: Path) -> FileIO:
    """Open a new log; another log may be in its place, but nothing else."""
    to = destination(path)
    if to.is_stream:
        raise refusal(path, "it isn't a file")
    if not to.is_new and not _is_log(to.file):
        raise UsageError(f"{path} isn't an LCM log", advice="remove it, or choose another name")
    try:
        to.file.unlink(missing_ok=True)  # Not emptied: a program that still reads the old one keeps it.
        return to.file.open("xb", buffering=0)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error
    return start in (b"", struct.pack(">I", _SYNC))
