"""Numbers of things, as people write them."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return ``1 message``, ``2 messages``, ``1,000 messages``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
