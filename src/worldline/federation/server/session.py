"""A session: one connection of a host, and what is known of whoever is at its other end."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from worldline.lock import Join
from worldline.lock.member import Member
from worldline.wire.frames import Frames
from worldline.wire.handshake import HELLO_MAX, Challenge

# What is known of whoever is at the other end of a session, for an operator who asks what it is doing.


class OtherEnd(NamedTuple):
    """Its process, if that is on this machine and has been found; since when it has computed; what keeps it from it.

    `since` is when it last said something or was last answered, by the server's clock: whoever computes has computed
    since then. `behind` is who of its process runs in its place.
    """

    process: int | None = None
    since: float | None = None
    remark: str = ""
    behind: str = ""


class SessionOwner(Protocol):
    """Whoever has the other end of a session: a socket, or a participant in the same thread."""

    def write(self) -> None:
        """Pass on what the session has put out, and see whether it is to be closed or not to be read."""

    def carry(self) -> SessionCarrier | None:
        """Return the trunk that the session is to be from now on; None: it can't be one."""

    def other_end(self) -> OtherEnd:
        """Say what is known of whoever is at the other end."""


class SessionCarrier(Protocol):
    """A trunk: it carries the sessions of several participants. `Trunk` says what each of these does.

    An operator's desk is one, too, that carries none.
    """

    def turn(self) -> bool: ...
    def fill(self) -> None: ...
    def keep_time(self) -> None: ...
    def remark(self) -> str | None: ...
    def give_up(self) -> list[Session]: ...


class Session:
    """One connection, and the participant that it speaks for once that is known."""

    __slots__ = (
        "bodies",
        "busy",
        "challenge",
        "claims",
        "closing",
        "code",
        "events",
        "frames",
        "heard",
        "is_foreign",
        "joining",
        "member",
        "name",
        "opened",
        "out",
        "owner",
        "paused",
        "returning",
        "said",
        "sent",
        "spoke",
        "stopped",
        "throttled",
        "trunk",
    )

    owner: SessionOwner  # Set by whoever has opened it.

    def __init__(self, challenge: Challenge, now: float) -> None:
        self.challenge = challenge
        self.frames = Frames(HELLO_MAX)
        self.out = bytearray()  # What is still to be sent.
        self.name = ""
        self.claims = ""  # The name that it has given, true or not.
        self.code = ""  # A hash of its code, if it has said that.
        self.member: Member | None = None  # Once it has joined.
        self.joining: Join | None = None  # A guest's, kept until it is invited.
        self.returning: Any = None  # A `Returning`, of a participant that was lost and has come back.
        self.is_foreign = False  # Its process is another user's.
        self.opened = now
        self.heard = now  # When something last came in,
        self.spoke = now  # and when that was last more than a heartbeat.
        self.sent = now  # When something last went out.
        self.stopped: bool | None = None  # Whether its process is, if it says nothing; None: that isn't known.
        self.closing = False  # It is to be closed when all is sent.
        self.paused = False  # It isn't to be read at present.
        self.bodies: list[bytes] = []  # The body that was cut off last, until it is heard.
        self.events: list[msgspec.Raw] = []  # What is left of a long frame, the next one last.
        self.busy = False  # There may be something left of that, or to be cut off (H5).
        self.said = 0  # How many frames it has sent since the last tick.
        self.throttled = False  # It has sent too many frames, and isn't read before the next tick.
        self.trunk: SessionCarrier | None = None  # What it carries, if it isn't a participant's.
