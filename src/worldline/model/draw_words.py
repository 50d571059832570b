"""What a draw of a link means, in words: which message gets lost, comes twice, or takes how long."""

from __future__ import annotations

from worldline.model.distributions import DrawnValue
from worldline.model.draw_names import BOOT, DUPLICATION, LATENCY, LATENCY_OF_COPY, LOSS, LOSS_AT_SENDER, names_in
from worldline.model.time import format_time


def draw_in_words(name: str, value: DrawnValue) -> str:
    """Say what comes of a draw; an empty text if its name says it all."""
    purpose, *parts = names_in(name) or ("",)
    takes = "" if isinstance(value, bool | float) else f"takes {format_time(value)}"
    if purpose == BOOT and takes:
        return f"{parts[0]} {takes} to boot"
    if purpose == LOSS_AT_SENDER and value is True:
        return f"{_message(*parts)} reaches nobody"
    said = {
        (LOSS, True): "doesn't reach",
        (DUPLICATION, True): "comes twice to",
        (LATENCY, value): f"{takes} to",
        (LATENCY_OF_COPY, value): f"comes twice, and the copy {takes} to",
    }.get((purpose, value))
    if said is None:
        return ""
    topic, sender, receiver, number = parts
    return f"{_message(topic, sender, number)} {said} {receiver}"


def _message(topic: str, sender: str, number: str) -> str:
    return f"message {int(number) + 1} of {sender} on {topic}"
