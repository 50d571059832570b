"""A session: one connection of a host, and what is known of its other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from worldline.lock import Join
from worldline.lock.member import Member
from worldline.wire.codec import Frames
from worldline.wire.handshake import HELLO_MAX, Challenge

if TYPE_CHECKING:
    from worldline.federation.server.operating import OperatorDesk
    from worldline.federation.server.trunk import Trunk


class OtherEnd(NamedTuple):
    """What is known of the process at the other end of a session, for an operator who asks what it is doing.

    `process` is its number, if it is on this machine and has been found. `since` is when it last said something or was
    last answered, by the server's clock: if it computes, it has computed since then. `remark` says what keeps it from
    that, and `behind` names the participant that runs in its place, in the same process.
    """

    process: int | None = None
    since: float | None = None
    remark: str = ""
    behind: str = ""


class SessionOwner(Protocol):
    """The other end of a session: a socket, a circuit of a trunk, or a participant in the same thread."""

    def write(self) -> None:
        """Pass on what the session has put out, and see whether it is to be closed or not to be read."""

    def carry(self) -> Trunk | None:
        """Return the trunk that the session is to be from now on; None: it can't be one."""

    def other_end(self) -> OtherEnd:
        """Say what is known of the process at the other end."""


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

    owner: SessionOwner  # Set by that owner, when it has opened the session.

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
        self.trunk: Trunk | OperatorDesk | None = None  # What hears it instead, if it isn't a participant's.
