"""How peers meet and how soon they are missed: the options of discovery."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from worldline.model.errors import ConfigurationError, shown

MEETING_POINT = "tcp/127.0.0.1:7449"
"""Where peers on one machine meet unless they are told otherwise."""

_ENDPOINT = re.compile(r"[a-z-]+/[^\s/]+")


@dataclass(frozen=True, kw_only=True)
class DiscoveryOptions:
    """All peers of a federation must be able to reach each other by them.

    - `meeting_point`: an endpoint on this machine. Whoever comes first listens there, and all others connect to it. If
      no other way to meet is given, there is a default one.
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
