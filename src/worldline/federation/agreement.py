"""What both ends of a connection must state alike before a participant is admitted: the world, versions, settings.

A run is reproducible only if everybody means the same by it. Where that can't be seen from what is sent, both ends
state it, as texts by keys, and whoever states something else is turned away at the door, before it can do any harm.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import msgpack

from worldline.model import ConfigurationError
from worldline.model.errors import shown
from worldline.model.text import printable
from worldline.wire.handshake import HELLO_MAX

AGREEMENT_MAX = HELLO_MAX // 2
"""How many bytes an agreement may have: it is part of a hello, with names that take up the rest."""

_VALUE_MAX = 120


def as_agreement(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return what somebody states, checked."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"an agreement is texts by keys, not {shown(given)}", advice='for example {"world": "ab12"}'
        )
    for key, value in given.items():
        if not (isinstance(key, str) and key and isinstance(value, str)):
            raise ConfigurationError(
                f"an agreement is texts by keys, not {shown(key)} = {shown(value)}", advice="write numbers as texts"
            )
    stated = dict(given)
    try:
        size = len(msgpack.encode(stated))
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"an agreement holds what isn't text: {shown(error.object)}") from error
    if size > AGREEMENT_MAX:
        raise ConfigurationError(
            f"an agreement of {size:,} bytes is too long",
            advice=f"at most {AGREEMENT_MAX:,} bytes; state a hash of what is long",
        )
    return stated


def difference(stated: Mapping[str, str], claimed: Mapping[str, str]) -> str | None:
    """Say where a participant's claim isn't what the server states, if it isn't."""
    for key, value in stated.items():
        if key not in claimed:
            return f"{_brief(key)} isn't stated, the server's is {_brief(value)}"
        if claimed[key] != value:
            return f"{_brief(key)} is {_brief(claimed[key])}, the server's is {_brief(value)}"
    for key, value in claimed.items():
        if key not in stated:
            return f"{_brief(key)} is {_brief(value)}, and the server states none"
    return None


def _brief(text: str) -> str:
    """Return a text that both texts of a reason have room beside."""
    return printable(text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 3]}...")
