"""The network of discovery over Zenoh: bytes to all peers of a federation, what they say, and which are cut off.

Every peer publishes under ``worldline/discovery/<federation>/<instance>`` and holds a liveliness token of the same key.
Zenoh takes the token away as soon as the connection to its holder closes, which the kernel does for a killed process.
A peer that leaves in order takes a second token before, ``.../leaves``: tokens come in order, but what is published
comes by another channel, so that the end of a connection might be read before the leave.

Silence is none of Zenoh's business: the lease of a link is much longer than the time after which a silent peer counts
as gone, so that there is one judge of it (`peers`), which knows when it was this process that slept.

*Meeting.* All connect to the meeting point, and by gossip to each other, each at a port of its own. One must listen at
the meeting point: the one that gets its port does, with a session that does nothing else, and all others try again
every now and then. So if the one that listens goes, the others still have each other, and one of them takes its place.
It takes a session of its own because the one that talks can't begin to listen later; if it went on trying, it couldn't
be closed in time, and would connect to itself (seen with Zenoh 1.10).

*Waiting.* Threads read from channels. Callbacks would do without, but Python then hangs at exit if it isn't closed.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import zenoh

from worldline.model.errors import ConfigurationError, LossError, shortened
from worldline.world.peers import DiscoveryOptions, NetworkEvent

_LEAVES = "leaves"
_BACKLOG = 1024
_RETRY_MS = {"period_init_ms": 100, "period_max_ms": 400, "period_increase_factor": 2}
_RELAY_S = 0.5
_HANDSHAKE_MS = 1000
"""For how long to wait for the other end of a new connection; closing may have to wait for that, too."""


class ZenohNetwork:
    """A session of Zenoh for one peer. Use it from one thread at a time."""

    def __init__(self, federation: str, instance: str, options: DiscoveryOptions) -> None:
        zenoh.init_log_from_env_or("off")  # Retries would be logged as errors.
        self._instance = instance
        self._common = common = f"worldline/discovery/{quote(federation, safe='')}"
        self._key = f"{common}/{instance}"
        self._leaving: set[str] = set()
        self._events: SimpleQueue[NetworkEvent | None] = SimpleQueue()
        self._meeting_point = _MeetingPoint(options) if options.meets_at else None
        try:
            self._session = _open(options)
        except ConfigurationError:
            self._close_meeting_point()
            raise
        said = self._session.declare_subscriber(f"{common}/*", zenoh.handlers.FifoChannel(_BACKLOG))
        tokens = self._session.liveliness().declare_subscriber(
            f"{common}/**", zenoh.handlers.FifoChannel(_BACKLOG), history=True
        )
        self._subscribers = (said, tokens)
        # Last: a peer that sees the token may speak at once, and is heard.
        self._tokens = [self._session.liveliness().declare_token(self._key)]
        self._readers = [
            Thread(target=_read, args=(said.handler, self._on_said), name="discovery-said", daemon=True),
            Thread(target=_read, args=(tokens.handler, self._on_token), name="discovery-tokens", daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send(self, payload: bytes) -> None:
        """Say something to all; it is dropped where it would have to wait for a slow peer."""
        self._put(payload, zenoh.CongestionControl.DROP)

    def leave(self, payload: bytes) -> None:
        """Say the last thing to all. When the connection closes then, it isn't lost."""
        self._tokens.append(self._session.liveliness().declare_token(f"{self._key}/{_LEAVES}"))
        self._put(payload, zenoh.CongestionControl.BLOCK)

    def _put(self, payload: bytes, control: zenoh.CongestionControl) -> None:
        try:
            self._session.put(self._key, payload, congestion_control=control, express=True)
        except zenoh.ZError as error:
            raise LossError(f"Zenoh can't send: {_reason(error)}") from error

    def receive(self, within_s: float) -> NetworkEvent | None:
        """Return what happens next, or None if nothing does."""
        try:
            return self._events.get(timeout=max(0.0, within_s))
        except Empty:
            return None

    def wake(self) -> None:
        """Let `receive` return at once, from any thread."""
        self._events.put(None)

    def close(self) -> None:
        """Close the session: what was sent before is sent out first."""
        with suppress(zenoh.ZError):  # There is nothing to be done about it, and nothing left to lose.
            for token in self._tokens:
                token.undeclare()
            for subscriber in self._subscribers:
                subscriber.undeclare()
            self._session.close()
        for reader in self._readers:
            reader.join()
        self._close_meeting_point()

    def _close_meeting_point(self) -> None:
        if self._meeting_point is not None:
            self._meeting_point.close()

    def _on_said(self, sample: zenoh.Sample) -> None:
        instance = str(sample.key_expr).removeprefix(f"{self._common}/")
        if sample.kind == zenoh.SampleKind.PUT and instance != self._instance:
            self._events.put(("said", instance, sample.payload.to_bytes()))

    def _on_token(self, sample: zenoh.Sample) -> None:
        instance, _, word = str(sample.key_expr).removeprefix(f"{self._common}/").partition("/")
        if instance == self._instance:
            return
        if sample.kind == zenoh.SampleKind.PUT:
            if word:
                self._leaving.add(instance)
            else:
                self._events.put(("found", instance, b""))
        elif not word and instance not in self._leaving:
            self._events.put(("lost", instance, b""))


def _read(channel: zenoh.handlers.Handler[zenoh.Sample], take: Any) -> None:
    """Hand on what comes until the channel is closed, which is an error to Zenoh."""
    with suppress(zenoh.ZError):
        while True:
            take(channel.recv())


class _MeetingPoint:
    """Sees to it that a peer listens at the meeting point: this one, unless another does."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._config = _config(options, [options.meets_at], [])
        self._session: zenoh.Session | None = None
        self._closing = Event()
        self._thread = Thread(target=self._try_again, name="discovery-meeting", daemon=True)
        if not self._listen():
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._session is not None:
            with suppress(zenoh.ZError):
                self._session.close()

    def _listen(self) -> bool:
        with suppress(zenoh.ZError):  # It is taken.
            self._session = zenoh.open(self._config)
        return self._session is not None

    def _try_again(self) -> None:
        while not self._closing.wait(_RELAY_S) and not self._listen():
            pass


def _open(options: DiscoveryOptions) -> zenoh.Session:
    meeting = [options.meets_at] if options.meets_at else []
    try:
        return zenoh.open(_config(options, list(options.listens_at), [*meeting, *options.connect]))
    except zenoh.ZError as error:
        raise ConfigurationError(
            f"Zenoh can't be opened: {_reason(error)}",
            advice="are the endpoints and the interface those of this machine?",
        ) from error


def _config(options: DiscoveryOptions, listen: list[str], connect: list[str]) -> zenoh.Config:
    multicast: dict[str, Any] = {"enabled": options.uses_multicast}
    if options.uses_multicast and options.interface:
        multicast["interface"] = options.interface
    settings = {
        "mode": "peer",
        "listen": {"endpoints": listen, "timeout_ms": 0, "exit_on_failure": True},
        # Without an end, in the background: those that are to be met may start later.
        "connect": {"endpoints": connect, "timeout_ms": -1, "exit_on_failure": False, "retry": _RETRY_MS},
        # Don't wait for any peer: those that come are noticed.
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        "scouting": {"multicast": multicast, "gossip": {"enabled": True}},
        "transport": {
            "unicast": {"open_timeout": _HANDSHAKE_MS},
            "link": {"tx": {"lease": int(max(10.0, 5 * options.stale_s) * 1000)}},
        },
    }
    return zenoh.Config.from_json5(json.dumps(settings))


def _reason(error: zenoh.ZError) -> str:
    """Return what went wrong, without the places in Zenoh's source."""
    return shortened(re.sub(r" at /[^]\s]+", "", str(error)))
