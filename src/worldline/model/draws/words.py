"""What a draw means, in words: which message gets lost, comes twice, or takes how long; whose clock is wrong."""

from __future__ import annotations

from typing import NamedTuple

from worldline.model.draws.distributions import DrawnValue, format_rate
from worldline.model.draws.names import (
    BOOT,
    CLOCK_DRIFT,
    CLOCK_OFFSET,
    CLOCK_WALK,
    CORRUPTION,
    CORRUPTION_OF_COPY,
    DUPLICATION,
    LATENCY,
    LATENCY_OF_COPY,
    LOSS,
    LOSS_AT_SENDER,
    names_in,
)
from worldline.model.time import format_time


class MessageFate(NamedTuple):
    """What becomes of a message, the sender's one of this number on a topic, counted from 0."""

    sender: str
    topic: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"message {self.number + 1} of {self.sender} on {self.topic} {self.text}"


def fate_of(name: str, value: DrawnValue) -> MessageFate | None:
    """Return what a draw makes of a message; None if it isn't about one, or nothing is out of the ordinary."""
    purpose, *parts = names_in(name) or ("",)
    if purpose == LOSS_AT_SENDER and value is True:
        topic, sender, number = parts
        return MessageFate(sender, topic, int(number), "reaches nobody")
    takes = "" if isinstance(value, bool | float) else f"takes {format_time(value)}"
    text = {
        (LOSS, True): "doesn't reach",
        (DUPLICATION, True): "comes twice to",
        (LATENCY, value): f"{takes} to",
        (LATENCY_OF_COPY, value): f"comes twice, and the copy {takes} to",
    }.get((purpose, value))
    if text is None:
        return None
    topic, sender, receiver, number = parts
    return MessageFate(sender, topic, int(number), f"{text} {receiver}")


def draw_in_words(name: str, value: DrawnValue) -> str:
    """Say what comes of a draw; an empty text if its name says it all."""
    purpose, *parts = names_in(name) or ("",)
    if isinstance(value, bool | float):
        if purpose in (CORRUPTION, CORRUPTION_OF_COPY) and value is True:
            _, sender, receiver, number = parts
            what = "message" if purpose == CORRUPTION else "the copy of message"
            return f"{what} {int(number) + 1} of all that {sender} sends is corrupted for {receiver}"
        return str(fate_of(name, value) or "")
    off = f"{format_time(abs(value))} {'slow' if value < 0 else 'fast'}"
    said = {
        BOOT: f"{parts[0]} takes {format_time(value)} to boot",
        CLOCK_OFFSET: f"the clock of {parts[0]} is {off} at first",
        CLOCK_DRIFT: f"the clock of {parts[0]} {'loses' if value < 0 else 'gains'} {format_rate(abs(value))}",
        CLOCK_WALK: f"the rate of the clock of {parts[0]} changes by {format_rate(value)}",
    }.get(purpose)
    return said or str(fate_of(name, value) or "")


def drawn_text(name: str, value: DrawnValue) -> str:
    """Write the value of a draw, as what its name says that it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value)
    return format_rate(value) if name.partition("/")[0] in (CLOCK_DRIFT, CLOCK_WALK) else format_time(value)
