"""What is known of whoever is at the other end of a session, for an operator who asks what it is doing."""

from __future__ import annotations

from typing import NamedTuple


class OtherEnd(NamedTuple):
    """Its process, if that is on this machine and has been found; since when it owes an answer; what keeps it from it.

    `answered` is when it was last told something, by the server's clock: whoever computes has computed since then.
    `behind` is who of its process runs in its place.
    """

    process: int | None = None
    answered: float | None = None
    remark: str = ""
    behind: str = ""
