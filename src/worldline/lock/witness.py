"""Whoever hears everything that an arbiter is told, in that order: enough to let another arbiter hear it again."""

from __future__ import annotations

from typing import Any, Protocol


class Witness(Protocol):
    """Hears what the arbiter hears."""

    def hears(self, who: str, events: list[Any]) -> None:
        """Somebody, or the operator, says this at once. The list is the speaker's, and may change afterwards."""
