"""Messages, and the one order in which they arrive.

A message's first five fields are its order key, so a message *is* its key: sorting messages, keeping them in a heap
and comparing two of them all give the one total order of arrivals without a key function that someone could forget to
pass. The sender's name stands where a rank would: ranks are places in the roster sorted by name, so both give the
same order, and a name doesn't change when a newcomer joins.

No two messages at one receiver share a key: a sender never uses a sequence number twice, and `copy` tells the
duplicates that a link makes from their original. So topic and payload are never compared.
"""

from __future__ import annotations

from typing import NamedTuple

from worldline.model.errors import ConfigurationError, shown
from worldline.model.time import Int64

NAME_LENGTH_MAX = 255


class Message(NamedTuple):
    """What one receiver gets: the datagram and the time at which it arrives there."""

    arrival: Int64
    sent: Int64
    sender: str
    sequence: Int64
    copy: Int64
    topic: str
    payload: bytes


def exact(name: str) -> str:
    """Return a name as nothing but text: it may be a member of an enumeration, for instance."""
    return str.__str__(name) if isinstance(name, str) else name


def check_name(name: object, what: str) -> str:
    """Return the name of a participant or topic if it can be one; that of an enumeration is its text."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{shown(name)} can't name {what}", advice="a name is text of at least one character")
    if len(name) > NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
        raise ConfigurationError(
            f"{shown(name)} can't name {what}",
            advice=f"a name has at most {NAME_LENGTH_MAX} printable characters and no blank at either end",
        )
    return str.__str__(name)
