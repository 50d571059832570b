"""How a primary and its secondaries find each other on a network, and notice when one goes.

A thread of its own announces this peer, reads what the others say and keeps the roster, which `peers` is the theory of.
All else here looks at that roster, or waits for it to change.
"""

from __future__ import annotations

import atexit
import ipaddress
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Condition, Thread, current_thread
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import msgspec

from worldline.extras import installing
from worldline.federation.address import parse_address
from worldline.model.errors import ConfigurationError, LossError, UsageError, shown
from worldline.world.peers import (
    MEETING_POINT,
    TEXT_LENGTH_MAX,
    Announcement,
    DepartedBy,
    DiscoveryOptions,
    NetworkEvent,
    Peer,
    PeerConflict,
    PeerDeparted,
    PeerRole,
    PeerRoster,
)

if TYPE_CHECKING:
    from worldline.world.zenoh_network import ZenohNetwork

__all__ = [
    "MEETING_POINT",
    "DepartedBy",
    "Discovery",
    "DiscoveryOptions",
    "Peer",
    "PeerConflict",
    "PeerDeparted",
    "PeerRole",
]

T = TypeVar("T")

_LISTED_MAX = 20
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Announcement)

OnDeparture = Callable[[Peer, DepartedBy], None]


class Discovery:
    """A peer's presence on the network, from its making until `close`.

    `address` is for a primary: where its secondaries connect. `on_departure` is called for each peer that goes, in the
    thread of discovery, which does nothing else meanwhile; what it raises comes out of the next wait, or of `close`.
    """

    def __init__(
        self,
        federation: str,
        role: PeerRole | str,
        name: str,
        *,
        address: str = "",
        options: DiscoveryOptions | None = None,
        on_departure: OnDeparture | None = None,
    ) -> None:
        self._options = options or DiscoveryOptions()
        me = _peer(federation, role, name, address)
        self._network = _open_network(me, self._options)
        self._on_departure = on_departure
        self._roster = PeerRoster(me, stale_s=self._options.stale_s, now_s=time.monotonic())
        self._changed = Condition()
        self._closing = False
        self._failure: Exception | None = None
        self._connected: set[str] = set()  # Instances that hold a token: what is said in another's name counts nothing.
        self._unreadable = 0
        self._thread = Thread(target=self._live, name="discovery", daemon=True)
        self._thread.start()
        # Zenoh aborts the process if Python ends while threads wait in it.
        atexit.register(self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:  # Two errors at once would only hide what happened first.
            with suppress(Exception):
                self.close()

    def close(self) -> None:
        """Tell the others that this peer leaves, and end."""
        self._end()
        atexit.unregister(self._end)
        with self._changed:
            self._raise_failure()

    def _end(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._network.wake()
        if current_thread() is not self._thread:  # `on_departure` may close it, too.
            self._thread.join()

    def __repr__(self) -> str:
        return f"<Discovery of federation {shown(self.me.federation)}: {self.me}, {len(self.present())} others>"

    # --- The peers ---

    @property
    def me(self) -> Peer:
        return self._roster.me

    def present(self) -> tuple[Peer, ...]:
        """Return all others that are there."""
        with self._changed:
            return self._roster.present()

    def gone(self) -> tuple[PeerDeparted, ...]:
        """Return all that have departed so far, and how."""
        with self._changed:
            return self._roster.gone()

    def conflicts(self) -> tuple[PeerConflict, ...]:
        """Return which peers claim a name, or to be the primary, that another has."""
        with self._changed:
            return self._roster.conflicts()

    def check(self) -> None:
        """Raise if this peer can't take part: another was first, or others think that it has gone."""
        with self._changed:
            self._raise_failure()
            self._refuse_if_unwanted()

    def find_primary(self, patience_s: float = 10.0) -> Peer:
        """Return the one primary of the federation, as soon as it is there."""

        def look() -> Peer | None:
            primaries = [peer for peer in self._roster.present() if peer.role is PeerRole.PRIMARY]
            if len(primaries) > 1:
                raise ConfigurationError(
                    f"federation {shown(self.me.federation)} has {len(primaries)} primaries: "
                    f"{_listed(f'{peer.name} ({peer.address})' for peer in primaries)}",
                    advice="end all but one, or give each a federation of its own",
                )
            return primaries[0] if primaries else None

        return self._await(look, patience_s, lambda: "no primary")

    def wait_for_secondaries(self, count: int, patience_s: float = 10.0) -> tuple[Peer, ...]:
        """Return the secondaries, by name, as soon as there are `count` or more.

        It also waits for peers that they hear and we don't yet: one may be another primary.
        """

        def look() -> tuple[Peer, ...] | None:
            secondaries = self._roster.secondaries()
            return secondaries if len(secondaries) >= count and not self._roster.hearsay() else None

        return self._await(look, patience_s, lambda: f"{len(self._roster.secondaries())} of {count} secondaries")

    def wait_for_departure(self, instance: str, patience_s: float = 10.0) -> PeerDeparted:
        """Return how a peer went, as soon as it has."""

        def look() -> PeerDeparted | None:
            return next((each for each in self._roster.gone() if each.peer.instance == instance), None)

        return self._await(look, patience_s, lambda: "no departure")

    def _await(self, look: Callable[[], T | None], patience_s: float, missing: Callable[[], str]) -> T:
        until_s = time.monotonic() + patience_s
        with self._changed:
            while True:
                self._raise_failure()
                if self._closing:
                    raise UsageError("discovery is closed")
                self._refuse_if_unwanted()
                if (found := look()) is not None:
                    return found
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise self._missing(missing(), patience_s)
                self._changed.wait(left_s)

    def _raise_failure(self) -> None:
        if (failure := self._failure) is not None:
            self._failure = None
            raise failure

    def _refuse_if_unwanted(self) -> None:
        if others := self._roster.counted_out_by():
            raise LossError(
                f"{_listed(map(str, others))} of federation {shown(self.me.federation)} counted this peer as gone",
                advice=f"it was cut off, or silent for {self._options.stale_s:g} s, as if stopped; start it again",
            )
        for conflict in self._roster.conflicts():
            if conflict.intruder is not self.me:
                continue
            federation = shown(self.me.federation)
            if conflict.what == "primary":
                raise ConfigurationError(
                    f"federation {federation} has a primary already: {conflict.elder.name} ({conflict.elder.address})",
                    advice="end it, or give each a federation of its own",
                )
            raise ConfigurationError(
                f"federation {federation} has a {conflict.elder.role} named {shown(self.me.name)} already",
                advice="give each peer a name of its own; one that was killed frees its name at once, "
                f"one that hangs after {self._options.stale_s:g} s",
            )

    def _missing(self, what: str, patience_s: float) -> LossError:
        intruders = {conflict.intruder.instance for conflict in self._roster.conflicts()}
        seen = [f"{'another ' * (peer.instance in intruders)}{peer}" for peer in self._roster.present()]
        facts = [f"{what} of federation {shown(self.me.federation)} after {patience_s:g} seconds"]
        facts.append(f"seen: {_listed(seen) or 'none'}")
        if gone := [f"{each.peer} ({each.how})" for each in self._roster.gone()]:
            facts.append(f"gone: {_listed(gone)}")
        if hearsay := self._roster.hearsay():
            facts.append(f"others see, but we don't: {_listed(hearsay)}")
        if self._unreadable:
            facts.append(f"announcements that can't be read, as those of another version: {self._unreadable}")
        return LossError(
            "; ".join(facts),
            advice=f"start what is missing; all must name the same federation and meet {self._options}",
        )

    # --- The thread ---

    def _live(self) -> None:
        network = self._network
        try:
            self._say("join")
            beat_s = time.monotonic() + self._options.heartbeat_s
            while not self._closing:
                event = network.receive(beat_s - time.monotonic())
                now_s = time.monotonic()
                self._note(event, now_s)
                # A peer that has just found us needn't wait for our next heartbeat.
                if (event is not None and event[0] == "found") or now_s >= beat_s:
                    self._say("alive")
                    beat_s = now_s + self._options.heartbeat_s
            self._say("leave")
        except Exception as error:
            self._fail(error)
        finally:
            network.close()
            with self._changed:
                self._closing = True
                self._changed.notify_all()

    def _note(self, event: NetworkEvent | None, now_s: float) -> None:
        with self._changed:
            departures = (*self._take(event, now_s), *self._roster.tick(now_s))
            self._changed.notify_all()
        if self._on_departure is None:
            return
        for departure in departures:
            try:
                self._on_departure(departure.peer, departure.how)
            except Exception as error:
                self._fail(error)

    def _take(self, event: NetworkEvent | None, now_s: float) -> tuple[PeerDeparted, ...]:
        match event:
            case ("found", instance, _):
                self._connected.add(instance)
            case ("lost", instance, _):
                self._connected.discard(instance)
                return self._roster.lost(instance, now_s)
            case ("said", instance, payload):
                announcement = _understood(payload)
                if announcement is None:
                    self._unreadable += 1
                elif announcement.peer.instance == instance and instance in self._connected:
                    return self._roster.heard(announcement, now_s)
        return ()

    def _say(self, kind: Literal["join", "alive", "leave"]) -> None:
        with self._changed:
            payload = _ENCODER.encode(self._roster.announcement(kind))
        if kind == "leave":
            self._network.leave(payload)
        else:
            self._network.send(payload)

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()


def _understood(payload: bytes) -> Announcement | None:
    """Return what an announcement says, if it is one: any process may have sent these bytes."""
    try:
        return _DECODER.decode(payload)
    except (ValueError, RecursionError):  # Not only msgspec's own: text that isn't UTF-8, lists in lists in lists.
        return None


def _peer(federation: str, role: PeerRole | str, name: str, address: str) -> Peer:
    """Return what this peer is, if that can be."""
    for what, text in (("federation", federation), ("name", name), ("address", address)):
        if not isinstance(text, str) or len(text) > TEXT_LENGTH_MAX or (not text and what != "address"):
            raise ConfigurationError(
                f"the {what} of a peer can't be {shown(text)}", advice=f"give 1 to {TEXT_LENGTH_MAX} characters"
            )
    try:
        role = PeerRole(role)
    except ValueError:
        raise ConfigurationError(f"there is no role {shown(role)}", advice="primary or secondary") from None
    if role is PeerRole.PRIMARY:
        _check_address(address)
    elif address:
        raise ConfigurationError("secondaries connect to the primary, and have no address themselves")
    return Peer(
        federation=federation,
        role=role,
        name=name,
        instance=secrets.token_hex(8),
        since_ns=time.time_ns(),
        address=address,
    )


def _check_address(text: str) -> None:
    """See to it that others can connect to an address: a server can listen on more general ones."""
    if not text:
        raise ConfigurationError("a primary must say where secondaries connect", advice="address='tcp://HOST:PORT'")
    address = parse_address(text)
    is_everywhere = False
    with suppress(ValueError):  # The name of a host.
        is_everywhere = ipaddress.ip_address(address.place).is_unspecified
    if is_everywhere or (address.kind != "unix" and not address.port):
        raise ConfigurationError(
            f"no peer can connect to {shown(text)}",
            advice="announce the host and the port at which the server is found",
        )


def _listed(texts: Iterable[str]) -> str:
    first, more = (every := list(texts))[:_LISTED_MAX], len(every) - _LISTED_MAX
    return ", ".join([*first, f"and {more} more"] if more > 0 else first)


def _open_network(me: Peer, options: DiscoveryOptions) -> ZenohNetwork:
    """Zenoh is loaded only if it is asked for: everything else does without."""
    try:
        from worldline.world.zenoh_network import ZenohNetwork
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "zenoh":
            raise
        raise UsageError("zenoh isn't installed", advice=installing("zenoh")) from error
    return ZenohNetwork(me.federation, me.instance, options)
