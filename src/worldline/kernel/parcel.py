"""What a message carries, and its fingerprint.

A receiver must never see what its sender does to an object after sending it: inline it would, in a worker it
wouldn't. So whatever can change is copied when it is sent, by pickling, which also shows that it can go to another
process; plain values travel as they are. The fingerprint goes into the sender's chain. It is a function of the value
alone, whatever hash seed, identity or process.
"""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

from msgspec import Struct, msgpack, structs

from worldline.model.errors import ModelError, shown

# A prime just below 2**60: the encoding as one large number modulo this is a fingerprint in two fast operations.
_PRIME = 2**60 - 93
_SHORT = 64  # Up to so many bytes that is faster than any hash.
_SIMPLE = frozenset((bool, float, str, bytes, type(None)))
_PLAIN = _SIMPLE | {int}

_encode = msgpack.Encoder().encode


class Parcel:
    """A copy of something that can change, packed until it is delivered."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def open(self) -> Any:
        return pickle.loads(self.packed)

    def __reduce__(self) -> tuple[Any, ...]:
        return Parcel, (self.packed,)


def fingerprint(encoded: bytes) -> int:
    """Return 60 bits that stand for some bytes. The byte in front keeps those apart that only start with more zeros."""
    if len(encoded) > _SHORT:
        encoded = blake2b(encoded, digest_size=8).digest()
    return int.from_bytes(b"\x01" + encoded, "big") % _PRIME


def seal(payload: Any) -> tuple[int, Any]:
    """Return a payload's fingerprint, and what to carry: itself, or a parcel if it can change."""
    if type(payload) is tuple and _PLAIN.issuperset(map(type, payload)):  # What most models send: without detours.
        try:
            return fingerprint(_encode(payload)), payload
        except (OverflowError, UnicodeEncodeError):
            pass  # Larger numbers have a form of their own; what can't be said at all is refused below.
    encoded = _encoded(payload)
    try:
        if type(payload) in _PLAIN or _is_constant(payload):
            return fingerprint(encoded), payload
        return fingerprint(encoded), Parcel(pickle.dumps(payload, protocol=5))
    except Exception as error:  # Pickling runs the payload's own code, which may raise anything.
        raise _refusal(payload, str(error)) from error


def _encoded(payload: Any) -> bytes:
    """Return the one encoding that a value has."""
    try:
        return _encode(payload if type(payload) in _SIMPLE else _ordered(payload))
    except OverflowError:
        return _encode(_ordered(payload))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(payload, str(error)) from error


def _ordered(value: Any) -> Any:
    """Return what has one encoding, whatever the order of sets and dicts: lists, sorted by how parts are encoded."""
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, int) and not isinstance(value, Enum):
        return value if -(2**63) <= value < 2**64 else hex(value)
    if isinstance(value, list | tuple):
        return [_ordered(part) for part in value]
    if isinstance(value, dict):
        pairs = [[_encode(_ordered(key)), _ordered(part)] for key, part in value.items()]
        return sorted(pairs, key=lambda pair: pair[0])
    if isinstance(value, set | frozenset):
        return sorted(_encode(_ordered(part)) for part in value)
    if isinstance(value, Struct):
        return [_ordered(part) for part in structs.astuple(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [_ordered(getattr(value, field.name)) for field in fields(value)]
    return value


def size_of(carried: Any) -> int:
    """Return how many bytes a message takes on a link with limited bandwidth: those of its payload, encoded."""
    return len(_encoded(carried.open() if isinstance(carried, Parcel) else carried))


def _is_constant(payload: Any) -> bool:
    return type(payload) is tuple and all(type(part) in _PLAIN or _is_constant(part) for part in payload)


def _refusal(payload: Any, reason: str) -> ModelError:
    return ModelError(
        f"a message can't carry {shown(payload)}: {reason}",
        advice="send numbers, text, bytes, and tuples, lists, dicts, dataclasses or msgspec Structs of these",
    )
