"""The one type of message that Drake's diagrams and the MuJoCo arm exchange: a vector, as Drake's own LCM type."""

from __future__ import annotations

from collections.abc import Iterable

from drake import lcmt_drake_signal


def signal_of(values: Iterable[float], seconds: float) -> lcmt_drake_signal:
    """Make a message of a vector at a time."""
    message = lcmt_drake_signal()
    message.timestamp = round(seconds * 1000)  # In milliseconds, as the type has it.
    message.val = [float(value) for value in values]
    message.dim = len(message.val)
    message.coord = [""] * message.dim
    return message
