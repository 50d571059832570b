"""Says how many there are of something."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 event, 2,000 events."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
