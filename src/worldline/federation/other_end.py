"""What is known of whoever is at the other end of a session, for an operator who asks what it is doing."""

from __future__ import annotations

from typing import NamedTuple


class OtherEnd(NamedTuple):
    """Its process, if that is on this machine and has been found; since when it has computed; what keeps it from it.

    `since` is when it last said something or was last answered, by the server's clock: whoever computes has computed
    since then. `behind` is who of its process runs in its place.
    """

    process: int | None = None
    since: float | None = None
    remark: str = ""
    behind: str = ""
