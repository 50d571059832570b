"""The public LCM: everything that the server of a run receives and delivers, for whoever looks on.

It is an observer of the run. A multicast group or a broker is shown everything as it becomes settled, in the order of
simulated time (`timeline`, `feed`); a log is written for later (`log`). To look on changes nothing in the run. It may
lose messages, except in a log, and says how many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self

from worldline.history.observer import Observer
from worldline.metasim.public.broker import TcpqBroker
from worldline.metasim.public.feed import LINGER_S, QUEUE_BYTES_MAX, Feed
from worldline.metasim.public.log import PublicLog
from worldline.metasim.public.names import check_participant, check_public_names
from worldline.metasim.public.outlets import LcmOutlet, open_outlet
from worldline.metasim.public.timeline import Timeline
from worldline.model.errors import ConfigurationError, UsageError, shown

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
        self._clock = clock
        self._shows_at = clock() + _SHOW_EVERY_S

    def open(self) -> Self:
        """Open all that it mirrors to."""
        try:
            for path in self._paths:
                self._logs.append(PublicLog(path))
            for url in self._urls:
                outlet = open_outlet(url)
                # Multicast is paced, and never blocks: all of it gets out.
                linger_s = None if isinstance(outlet, LcmOutlet) else self._linger_s
                self._feeds.append(self._feed(outlet, linger_s=linger_s))
            if self._broker is not None:
                self._feeds.append(self._feed(self._broker.open()))
        except BaseException:
            self.close()
            raise
        return self

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
        if self._feeds:
            self._timeline.sent(who, number, topic, at, payload, until)
        for log in self._logs:
            log.pending.sent(who, number, topic, at, payload, until)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        if self._feeds:
            self._timeline.arrives(sender, number, receiver, at, copy, lost)
        for log in self._logs:
            log.pending.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        if self._feeds:
            self._timeline.lasts(sender, number, until)
        for log in self._logs:
            log.pending.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        if self._feeds:
            self._timeline.closed(receiver, topic, at)
        for log in self._logs:
            log.pending.closed(receiver, topic, at)

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
        """Wait until somebody at the broker has subscribed to each channel; return those that nobody has.

        For whoever wants a logger to see everything from the start.
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
