"""Numbers of things, as people write them."""

from __future__ import annotations


def counted(number: int, thing: str, things: str = "") -> str:
    """Return ``1 message``, ``2 messages``, ``1,000 messages``; unless there is a plural of its own."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
