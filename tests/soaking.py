"""What only `make soak` runs, of tests whose rule some of their cases show as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def later(values: Iterable[Any]) -> list[Any]:
    """Return values of a parameter, or tuples of them, for `make soak` alone."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.soak) for value in values
    ]
