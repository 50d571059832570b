"""Messages, and the one order in which they arrive.

A message's first five fields are its order key, so a message *is* its key: sorting messages, keeping them in a heap
and comparing two of them all give the one total order of arrivals without a key function that someone could forget to
pass. The sender's name stands where a rank would: ranks are places in the roster sorted by name, so both give the
same order, and a name doesn't change when a newcomer joins.

No two messages at one receiver share a key: a sender never uses a sequence number twice, and `copy` tells the
duplicates that a link makes from their original. So topic and payload are never compared.
"""

from __future__ import annotations

import re
from hashlib import blake2b
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


# The names of those who are made during a run: their maker's name stands before their own.
#
# So each member numbers only those that it has made, and names are the same on every executor. A whole lineage
# would make a long name, though, and generations are without end. Where the name would be longer than names may be, and
# from there on in all later generations, a hash stands for the maker's: ``place/~hash/own``. The place is the ancestor
# from before the run, so a name still begins with where it belongs, and it ends with what its maker calls it. The hash
# is of the maker's name, which has its own maker's hash in it: each birth takes the same time, however many went
# before.
#
# Names are unique as far as hashes of 128 bits are: among 10¹² makers, two share one with a chance of 10⁻¹⁵. How such
# names sort says nothing, but depends on nothing but names.

SEPARATOR = "/"

_HASH_SIZE = 16
_SHORT = re.compile(rf"~[0-9a-f]{{{2 * _HASH_SIZE}}}")


def descendant(place: str, maker: str, own: str) -> str:
    """Return the name of a member that one at a place has made, and calls by a name of its own."""
    whole = f"{maker}{SEPARATOR}{own}"
    if len(whole) <= NAME_LENGTH_MAX and not is_short(maker[len(place) + 1 :].partition(SEPARATOR)[0]):
        return whole
    hashed = blake2b(maker.encode(), digest_size=_HASH_SIZE, person=b"worldline").hexdigest()
    return f"{place}{SEPARATOR}~{hashed}{SEPARATOR}{own}"


def is_short(part: str) -> bool:
    """Whether this part of a name stands for the name of a maker. No member can be given it as a name."""
    return _SHORT.fullmatch(part) is not None
