"""How many faults of which kind are asked for, in any room."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.model.errors import ConfigurationError, shown

_COUNT_MAX = 10_000


def parse_counts(text: str, counts: Mapping[str, int], shares: Mapping[str, float], advice: str) -> dict[str, float]:
    """Read ``"crash=3,partition,loss=0.1"``: how many of each kind, or which share of the messages.

    `counts` and `shares` are the kinds that there are, each with what is meant if nobody says how many.
    """
    kinds: dict[str, float] = {}
    usual = {**counts, **shares}
    for word in filter(None, (part.strip() for part in text.split(","))):
        kind, equals, value = word.partition("=")
        try:
            number = float(value) if equals else usual.get(kind, 0)
        except ValueError:
            number = -1.0
        is_possible = 0 <= number <= (1 if kind in shares else _COUNT_MAX)  # Nothing is compared with NaN.
        if kind not in usual or not is_possible or not (kind in shares or number == int(number)):
            raise ConfigurationError(f"{shown(word)} can't be drawn", advice=advice)
        kinds[kind] = number
    return kinds
