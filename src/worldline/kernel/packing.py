"""What a message carries, and its fingerprint.

A receiver must never see what its sender does to an object after sending it: inline it would, in a worker it
wouldn't. So whatever can change is copied when it is sent, by pickling, which also shows that it can go to another
process; plain values travel as they are. The fingerprint goes into the sender's chain. It is a function of the value
alone, whatever hash seed, identity or process; a Struct, dataclass or named tuple is told from another by its name.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

from msgspec import Struct, msgpack, structs

from worldline.model.errors import ModelError, WorldlineError, shown

# A prime just below 2**60: the encoding as one large number modulo this is a fingerprint in two fast operations.
_PRIME = 2**60 - 93
_SHORT = 64  # Up to so many bytes that is faster than any hash.
_SIMPLE = frozenset((bool, float, str, bytes, type(None)))
_PLAIN = _SIMPLE | {int}

_encode = msgpack.Encoder().encode

_takers: dict[type, Callable[[Any], Any]] = {}  # What takes apart the values of a class.
_forms: dict[type, Callable[[Any], Any]] = {}  # As plain values; those that `teach` was told.
_CHANGES: Any = object()


class PackedCopy:
    """A copy of something that can change, packed until it is delivered."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def open(self) -> Any:
        return pickle.loads(self.packed)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedCopy, (self.packed,)


def fingerprint(encoded: bytes) -> int:
    """Return 60 bits that stand for some bytes. The byte in front keeps those apart that only start with more zeros."""
    if len(encoded) > _SHORT:
        encoded = blake2b(encoded, digest_size=8).digest()
    return int.from_bytes(b"\x01" + encoded, "big") % _PRIME


def teach(kind: type, form: Callable[[Any], Any], *, constant: bool) -> None:
    """Let messages carry values of a class: `form` returns the plain values that stand for one in fingerprints.

    It may raise a `WorldlineError` instead, if there is more to say than that they can't be carried.

    What is constant travels as it is; everything else is pickled.
    """
    _forms[kind] = form
    _takers[kind] = form if constant else _as_changing


def seal(payload: Any) -> tuple[int, Any]:
    """Return a payload's fingerprint, and what to carry: itself, or a packed copy if it can change."""
    try:
        form = _constant_form(payload)
        if form is not _CHANGES:
            return fingerprint(_encode(form)), payload
    except OverflowError:  # Larger numbers have a form of their own.
        return fingerprint(_encoded(payload)), payload
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(payload, str(error)) from error
    encoded = _encoded(payload)
    try:
        return fingerprint(encoded), PackedCopy(pickle.dumps(payload, protocol=5))
    except WorldlineError:  # A part of it knows better why it can't be sent.
        raise
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
        name = [type(value).__qualname__] if hasattr(value, "_fields") else []
        return name + [_ordered(part) for part in value]
    if isinstance(value, dict):
        pairs = [[_encode(_ordered(key)), _ordered(part)] for key, part in value.items()]
        return sorted(pairs, key=lambda pair: pair[0])
    if isinstance(value, set | frozenset):
        return sorted(_encode(_ordered(part)) for part in value)
    if isinstance(value, Struct):
        return [type(value).__qualname__, *(_ordered(part) for part in structs.astuple(value))]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__qualname__, *(_ordered(getattr(value, field.name)) for field in fields(value))]
    for kind in type(value).__mro__:
        if kind in _forms:
            return _ordered(_forms[kind](value))
    return value


def size_of(carried: Any) -> int:
    """Return how many bytes a message takes on a link with limited bandwidth: those of its payload, encoded."""
    return len(_encoded(carried.open() if isinstance(carried, PackedCopy) else carried))


def _constant_form(value: Any) -> Any:
    """Return a value that can't be changed as `_ordered` has it, but faster; `_CHANGES` if it can be.

    Sets and dicts count as changing: it takes a while to find out what is in them.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    parts = value if kind is tuple else _parts(value, kind)
    if parts is _CHANGES or type(parts) in _PLAIN or _PLAIN.issuperset(map(type, parts)):
        return parts
    forms = list(map(_constant_form, parts))
    return _CHANGES if any(form is _CHANGES for form in forms) else forms


def _parts(value: Any, kind: type) -> Any:
    """Return what a value consists of whose own attributes can't be changed; `_CHANGES` if they can."""
    take = _takers.get(kind)
    if take is None:
        take = _takers[kind] = _taker(kind)
    return take(value)


def _taker(kind: type) -> Callable[[Any], Any]:
    """Return what takes apart values of a class, if they can't be changed and other processes can find the class."""
    try:
        pickle.dumps(kind)
    except Exception:  # A class of classes may have code of its own.
        return _as_changing
    name = kind.__qualname__
    if issubclass(kind, Struct) and kind.__struct_config__.frozen and kind.__dictoffset__ == 0:
        return lambda value: (name, *structs.astuple(value))
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and kind.__dictoffset__ == 0:
        return lambda value: (name, *value)
    if issubclass(kind, Enum):
        return lambda member: _constant_form(member.value)
    if is_dataclass(kind) and all(_is_frozen_dataclass(each) for each in kind.__mro__[:-1]):
        names = [field.name for field in fields(kind)]
        return lambda value: [name, *(getattr(value, each) for each in names)]
    return _as_changing


def _is_frozen_dataclass(kind: type) -> bool:
    """Whether a class says so itself: one that is only derived from such a class lets its attributes be changed."""
    parameters = vars(kind).get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def _as_changing(_: Any) -> Any:
    return _CHANGES


def _refusal(payload: Any, reason: str) -> ModelError:
    return ModelError(
        f"a message can't carry {shown(payload)}: {reason}",
        advice="send numbers, text, bytes, and tuples, lists, dicts, dataclasses or msgspec Structs of these",
    )
