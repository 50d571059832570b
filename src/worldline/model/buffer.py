"""Buffers: which of the messages that arrive between two sequence points a subscriber gets to see.

A buffer looks at the ordered arrivals of its topic, never at the moment they reached a socket, so what it drops is the
same in every run. `discard` keeps nothing: nothing is sent to such a subscriber or counted, and nobody holds it up.
"""

from __future__ import annotations

import re

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.message import Message


class Buffer(Struct, frozen=True):
    """Keep at most `limit` messages (None: all), the newest or the oldest ones."""

    limit: int | None = None
    oldest: bool = False

    def __str__(self) -> str:
        if self.limit is None:
            return "unbounded"
        if self.limit == 0:
            return "discard"
        if self.limit == 1 and not self.oldest:
            return "mailbox"
        return f"{'oldest' if self.oldest else 'newest'}({self.limit})"


UNBOUNDED = Buffer()
DISCARD = Buffer(0)
MAILBOX = Buffer(1)


def newest(size: int) -> Buffer:
    return _sized(size, oldest=False)


def oldest(size: int) -> Buffer:
    return _sized(size, oldest=True)


def _sized(size: int, *, oldest: bool) -> Buffer:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ConfigurationError(
            f"a buffer of {shown(size)} messages isn't possible", advice="use at least 1, or discard"
        )
    return Buffer(size, oldest)


_NAMED = {"unbounded": UNBOUNDED, "discard": DISCARD, "mailbox": MAILBOX}
_SIZED = re.compile(r"(newest|oldest)\(([0-9]{1,9})\)")


def as_buffer(buffer: Buffer | str) -> Buffer:
    """Take a buffer or its text: ``discard``, ``mailbox``, ``newest(3)``, ``oldest(3)`` or ``unbounded``."""
    if isinstance(buffer, Buffer):
        if type(buffer.oldest) is not bool or not (
            buffer.limit is None or (type(buffer.limit) is int and buffer.limit >= 0)
        ):
            raise ConfigurationError(
                f"a buffer of {shown(buffer.limit)} messages isn't possible", advice="use at least 1, or discard"
            )
        return buffer
    text = buffer.strip() if isinstance(buffer, str) else ""
    if text in _NAMED:
        return _NAMED[text]
    if match := _SIZED.fullmatch(text):
        return _sized(int(match[2]), oldest=match[1] == "oldest")
    raise ConfigurationError(
        f"{shown(buffer)} isn't a buffer", advice="use discard, mailbox, newest(n), oldest(n) or unbounded"
    )


def sift(arrivals: list[Message], buffers: dict[str, Buffer]) -> list[Message]:
    """Return those of the ordered arrivals that their topics' buffers keep, in the same order."""
    kept: dict[str, int] = {}
    keep = [False] * len(arrivals)
    # Newest-keeping buffers count from the end, oldest-keeping ones from the start; one pass each way serves both.
    for forward in (True, False):
        order = range(len(arrivals)) if forward else range(len(arrivals) - 1, -1, -1)
        for place in order:
            topic = arrivals[place].topic
            buffer = buffers[topic]
            if buffer.oldest is not forward:
                continue
            taken = kept.get(topic, 0)
            if buffer.limit is None or taken < buffer.limit:
                keep[place] = True
                kept[topic] = taken + 1
    return [message for message, wanted in zip(arrivals, keep, strict=True) if wanted]
