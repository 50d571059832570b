"""Which peers of a federation are present on the network, and which are gone for good.

Theory of operation
-------------------
Pure: announcements, lost connections and ticks go in, each with the time at which it happens; departures come out. A
*peer* is one run of one process: one that starts again is another peer, with another instance id. A peer announces
itself again and again; these are its heartbeats. A heartbeat says everything that a join says, so it doesn't matter
which of them is heard first, or whether any is missed.

D1. A peer is present from the first time it is heard until it departs: it says that it leaves, its connection is lost,
    or it has been silent for `stale_s`.
D2. A departure is final: an instance that is gone never counts again, whatever it says. A process that was stopped and
    goes on, or a message that was late, changes nothing. To come back, a process starts anew.
D3. A leave counts even from a peer that was never heard: its earlier messages may still be on their way. A lost
    connection doesn't: it isn't the peer that speaks, and no peer was there to lose.
D4. Silence is measured in time that we *attended*. Between two looks at the clock, at most half of `stale_s` counts. So
    no peer departs because this process was stopped, and it takes at least two looks to find one silent: what arrived
    while we were away is read between them.
D5. After such a gap, for `stale_s`, lost connections don't count either: it may be our own end that gave them up. If
    the peer is really gone, its silence will tell.
D6. Peers are ordered by `since_ns`, when they started by their own clocks, then by instance. Of two peers of one name,
    and of two primaries, the first in this order is the *elder*, and the other one the intruder. All that hear both
    agree on which is which, whatever the order in which they heard them; if clocks differ, on the same mistake.
D7. A peer that others count as gone is told: they name the instances that are gone. It can't come back (D2), but it can
    give up, instead of waiting for those that wait for it no more.
D8. Other federations don't exist: their announcements change nothing at all.

A peer also says whose names it hears. No peer counts as present because of that, but it is known that one is still to
be heard.

Deliberately not handled: liars. Any process that connects to this network can claim any name. Announcements without a
connection of the peer that they are about don't get here: see `discovery`. What is remembered of the gone isn't bounded
either; of more than a thousand, only the last are named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from worldline.model.errors import ConfigurationError, shown

TEXT_LENGTH_MAX = 255
_LIST_LENGTH_MAX = 1024

_Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]


class PeerRole(StrEnum):
    PRIMARY = "primary"
    SECONDARY = "secondary"


class DepartedBy(StrEnum):
    """How it is known that a peer is gone."""

    ANNOUNCEMENT = "announcement"
    CONNECTION = "lost connection"
    SILENCE = "silence"


class Peer(Struct, frozen=True, kw_only=True):
    """One run of a primary or a secondary. `address` is where secondaries connect, and empty if it is one."""

    federation: _Text
    role: PeerRole
    name: _Text
    instance: _Text
    since_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    address: Annotated[str, Meta(max_length=TEXT_LENGTH_MAX)] = ""

    @property
    def age_key(self) -> tuple[int, str]:
        """What peers are ordered by (D6)."""
        return self.since_ns, self.instance

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


class Announcement(Struct, frozen=True, kw_only=True):
    """What a peer says. In its eyes, those named in `hears` are present, and the instances in `gone` are gone."""

    version: Literal[1] = 1
    kind: Literal["join", "alive", "leave"]
    peer: Peer
    hears: Annotated[tuple[_Text, ...], Meta(max_length=_LIST_LENGTH_MAX)] = ()
    gone: Annotated[tuple[_Text, ...], Meta(max_length=_LIST_LENGTH_MAX)] = ()


class PeerDeparted(Struct, frozen=True):
    peer: Peer
    how: DepartedBy


class PeerConflict(Struct, frozen=True):
    """Two peers of which a federation can have only one (D6). `what` is what both claim to be."""

    what: Literal["name", "primary"]
    elder: Peer
    intruder: Peer


NetworkEvent = tuple[Literal["found", "lost", "said"], str, bytes]
"""What happens on the network: an instance is connected and can hear us ("found"), or no longer ("lost"), or bytes were
said under its key, by any process that can write to the network."""


class PeerRoster:
    """The peers that are present or gone, as `me` sees it. Times are seconds of a clock that never goes back."""

    def __init__(self, me: Peer, *, stale_s: float, now_s: float) -> None:
        self.me = me
        self._stale_s = stale_s
        self._looked_s = now_s
        self._attended_s = 0.0
        self._doubt_until_s = 0.0
        self._present: dict[
            str, tuple[Peer, float, Announcement]
        ] = {}  # When it was heard, in attended time; the last.
        self._gone: dict[str, PeerDeparted] = {}

    # --- What happens ---

    def heard(self, announcement: Announcement, now_s: float) -> tuple[PeerDeparted, ...]:
        """A peer has spoken."""
        self._attend(now_s)
        peer = announcement.peer
        if peer.federation != self.me.federation or peer.instance == self.me.instance or peer.instance in self._gone:
            return ()
        known = self._present.get(peer.instance)
        if announcement.kind == "leave":
            departure = self._depart(known[0] if known else peer, DepartedBy.ANNOUNCEMENT)
            return (departure,) if known else ()
        # What a peer said of itself first holds: it can't be another one later.
        self._present[peer.instance] = (known[0] if known else peer, self._attended_s, announcement)
        return ()

    def lost(self, instance: str, now_s: float) -> tuple[PeerDeparted, ...]:
        """The connection to a peer has broken."""
        self._attend(now_s)
        known = self._present.get(instance)
        if known is None or self._attended_s < self._doubt_until_s:
            return ()
        return (self._depart(known[0], DepartedBy.CONNECTION),)

    def tick(self, now_s: float) -> tuple[PeerDeparted, ...]:
        """Time has passed. Call it several times in each `stale_s`."""
        self._attend(now_s)
        silent = [peer for peer, heard_s, _ in self._present.values() if self._attended_s - heard_s >= self._stale_s]
        return tuple(self._depart(peer, DepartedBy.SILENCE) for peer in _ordered(silent))

    def _attend(self, now_s: float) -> None:
        gap_s, gap_s_max = now_s - self._looked_s, self._stale_s / 2
        self._looked_s = now_s
        self._attended_s += min(gap_s, gap_s_max)
        if gap_s > gap_s_max:
            self._doubt_until_s = self._attended_s + self._stale_s

    def _depart(self, peer: Peer, how: DepartedBy) -> PeerDeparted:
        self._present.pop(peer.instance, None)
        departure = self._gone[peer.instance] = PeerDeparted(peer, how)
        return departure

    # --- What is known ---

    def announcement(self, kind: Literal["join", "alive", "leave"]) -> Announcement:
        """Return what to say now."""
        hears = sorted({peer.name for peer in self.present()})
        return Announcement(
            kind=kind, peer=self.me, hears=tuple(hears[:_LIST_LENGTH_MAX]), gone=tuple(self._gone)[-_LIST_LENGTH_MAX:]
        )

    def present(self) -> tuple[Peer, ...]:
        """Return all others that are there, the eldest first."""
        return _ordered(peer for peer, _, _ in self._present.values())

    def gone(self) -> tuple[PeerDeparted, ...]:
        """Return all that have departed, in the order in which they did."""
        return tuple(self._gone.values())

    def secondaries(self) -> tuple[Peer, ...]:
        """Return the secondaries among the others, by name; intruders aren't among them."""
        intruders = {conflict.intruder.instance for conflict in self.conflicts()}
        fine = [peer for peer in self.present() if peer.instance not in intruders]
        return tuple(sorted((peer for peer in fine if peer.role is PeerRole.SECONDARY), key=lambda peer: peer.name))

    def conflicts(self) -> tuple[PeerConflict, ...]:
        """Return which peers claim what another has, among all that are there and ourselves."""
        elders: dict[tuple[Literal["name", "primary"], str], Peer] = {}
        found = []
        for peer in _ordered([self.me, *self.present()]):
            claims: list[tuple[Literal["name", "primary"], str]] = [("name", peer.name)]
            if peer.role is PeerRole.PRIMARY:
                claims.append(("primary", ""))
            for claim in claims:
                elder = elders.setdefault(claim, peer)
                if elder is not peer:
                    found.append(PeerConflict(claim[0], elder, peer))
        return tuple(found)

    def counted_out_by(self) -> tuple[Peer, ...]:
        """Return those that count us as gone (D7)."""
        return _ordered(peer for peer, _, said in self._present.values() if self.me.instance in said.gone)

    def hearsay(self) -> tuple[str, ...]:
        """Return the names that others hear, but that we have never heard."""
        known = {self.me.name, *(peer.name for peer in self.present()), *(each.peer.name for each in self.gone())}
        return tuple(sorted({name for _, _, said in self._present.values() for name in said.hears} - known))


def _ordered(peers: Iterable[Peer]) -> tuple[Peer, ...]:
    return tuple(sorted(peers, key=lambda peer: peer.age_key))


# How peers meet and how soon they are missed: the options of discovery.

MEETING_POINT = "tcp/127.0.0.1:7449"
"""Where peers on one machine meet unless they are told otherwise."""

_ENDPOINT = re.compile(r"[a-z-]+/[^\s/]+")


@dataclass(frozen=True, kw_only=True)
class DiscoveryOptions:
    """All peers of a federation must be able to reach each other by them.

    - `meeting_point`: an endpoint on this machine. The first peer listens there, and all others connect to it. If no
      other way to meet is given, there is a default one.
    - `listen`, `connect`: endpoints in Zenoh's form, such as ``tcp/192.168.1.5:7449``.
    - `interface`: the network interface to use. On all but `lo`, peers find each other by multicast.
    - `multicast`: whether to use it, if not as `interface` says.
    - `heartbeat_s`: how often a peer says that it is there.
    - `stale_s`: for how long it may be silent.
    """

    meeting_point: str = ""
    listen: Sequence[str] = ()
    connect: Sequence[str] = ()
    interface: str = ""
    multicast: bool | None = None
    heartbeat_s: float = 0.1
    stale_s: float = 2.0

    def __post_init__(self) -> None:
        for what in ("listen", "connect"):
            if isinstance(getattr(self, what), str):
                raise ConfigurationError(f"{what} is a list of endpoints, not one", advice=f"{what}=[...]")
        for endpoint in (*self.listen, *self.connect, *([self.meeting_point] if self.meeting_point else [])):
            if not isinstance(endpoint, str) or not _ENDPOINT.fullmatch(endpoint):
                raise ConfigurationError(
                    f"{shown(endpoint)} isn't an endpoint", advice=f"write one like {MEETING_POINT}"
                )
        for what in ("heartbeat_s", "stale_s"):
            if not (math.isfinite(getattr(self, what)) and getattr(self, what) > 0):
                raise ConfigurationError(f"{what} is {shown(getattr(self, what))}", advice="give seconds, more than 0")
        if self.stale_s < 3 * self.heartbeat_s:
            raise ConfigurationError(
                f"a peer would be missed after {self.stale_s:g} s, though it speaks only every {self.heartbeat_s:g} s",
                advice="stale_s must be at least three times heartbeat_s",
            )

    @property
    def uses_multicast(self) -> bool:
        return self.interface not in ("", "lo") if self.multicast is None else self.multicast

    @property
    def meets_at(self) -> str:
        """The meeting point, or nothing if there is none."""
        if self.meeting_point or self.listen or self.connect or self.uses_multicast:
            return self.meeting_point
        return MEETING_POINT

    @property
    def listens_at(self) -> tuple[str, ...]:
        """Where to listen besides the meeting point: other peers connect there once they have heard of us."""
        if self.listen:
            return tuple(self.listen)
        return (f"tcp/0.0.0.0:0#iface={self.interface}" if self.interface not in ("", "lo") else "tcp/127.0.0.1:0",)

    def __str__(self) -> str:
        """Say where peers meet, for a message."""
        ways = [
            f"at {endpoint}" for endpoint in dict.fromkeys((self.meets_at, *self.connect, *self.listen)) if endpoint
        ]
        if self.uses_multicast:
            ways.append(f"by multicast on {self.interface or 'any interface'}")
        return " and ".join(ways)
