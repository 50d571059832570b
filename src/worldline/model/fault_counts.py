"""How many faults of which kind are asked for, in any room."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.model.errors import ConfigurationError, shown
from worldline.model.nearest import nearest

_COUNT_MAX = 10_000


def parse_counts(text: str, counts: Mapping[str, int], shares: Mapping[str, float], advice: str) -> dict[str, float]:
    """Read ``"crash=3,partition,loss=0.1"``: how many of each kind, or which share of the messages.

    `counts` and `shares` are the kinds that there are, each with what is meant if nobody says how many.
    """
    kinds: dict[str, float] = {}
    usual = {**counts, **shares}
    for word in filter(None, (part.strip() for part in text.split(","))):
        kind, equals, value = (part.strip() for part in word.partition("="))
        refused = f"{shown(word)} can't be drawn"
        if kind not in usual:
            raise ConfigurationError(
                f"{refused}: there is no kind {shown(kind)}", advice=nearest(kind, usual) or advice
            )
        if kind in kinds:
            raise ConfigurationError(f"{refused}: {kind} is there twice", advice=advice)
        try:
            number = float(value) if equals else usual[kind]
        except ValueError:
            number = -1.0
        if not 0 <= number <= (1 if kind in shares else _COUNT_MAX):  # Nothing is compared with NaN.
            wanted = "a share from 0 to 1" if kind in shares else f"a number from 0 to {_COUNT_MAX:,}"
            raise ConfigurationError(f"{refused}: {shown(value)} isn't {wanted}", advice=advice)
        if kind in counts and number != int(number):
            raise ConfigurationError(f"{refused}: {shown(value)} isn't a whole number", advice=advice)
        kinds[kind] = number
    return kinds
