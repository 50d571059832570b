"""Copies for those who may change what they are given. Needs no NumPy: whoever plays a policy may have none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_NUMBERS = "biuf"


def own(value: Any) -> Any:
    """Return a value as whoever gets it may change it, and nobody else notices."""
    kind = getattr(getattr(value, "dtype", None), "kind", "O")
    return value.copy() if kind in _NUMBERS else deepcopy(value)  # `deepcopy` takes several times as long.
