"""Advice for whoever has misspelled a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from worldline.model.errors import shown

_AMONG_MAX = 10_000  # To compare a name with more takes too long.
_LENGTH_MAX = 1_000  # So does comparing a longer one: nobody has misspelled that, it isn't a name.


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the question whether the known name was meant that is nearest; None if none is near."""
    names: Collection[str] = known if isinstance(known, Collection) else list(known)
    if not isinstance(name, str) or len(name) > _LENGTH_MAX or len(names) > _AMONG_MAX:
        return None
    near = get_close_matches(name, names, n=1)
    return f"did you mean {shown(near[0])}?" if near else None
