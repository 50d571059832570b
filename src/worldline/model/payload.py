"""Payloads: objects to bytes and back, the same bytes for equal objects.

A message carries bytes. These functions make them from plain values, dataclasses and msgspec structs; keys and sets
are sorted, because an encoding that follows a dict's history or a set's hash would make two equal histories differ.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from worldline.model.errors import ModelError, UsageError, shown

T = TypeVar("T")

PAYLOAD_MAX = 2**27
"""The largest payload of one message, in bytes, unless another limit is set."""

_json = msgspec.json.Encoder(order="deterministic")
_msgpack = msgspec.msgpack.Encoder(order="deterministic")


def to_json(value: object) -> bytes:
    """Encode a value as JSON."""
    return _encoded(_json, value)


def to_msgpack(value: object) -> bytes:
    """Encode a value as MessagePack."""
    return _encoded(_msgpack, value)


@overload
def from_json(payload: bytes) -> Any: ...
@overload
def from_json(payload: bytes, kind: type[T]) -> T: ...
def from_json(payload: bytes, kind: Any = Any) -> Any:
    """Decode JSON, as a value of the given type if one is given."""
    return _decoded(msgspec.json.decode, payload, kind)


@overload
def from_msgpack(payload: bytes) -> Any: ...
@overload
def from_msgpack(payload: bytes, kind: type[T]) -> T: ...
def from_msgpack(payload: bytes, kind: Any = Any) -> Any:
    """Decode MessagePack, as a value of the given type if one is given."""
    return _decoded(msgspec.msgpack.decode, payload, kind)


def _encoded(encoder: msgspec.json.Encoder | msgspec.msgpack.Encoder, value: object) -> bytes:
    try:
        return encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"{shown(value)} can't be a payload: {error}") from error


def _decoded(decode: Any, payload: bytes, kind: Any) -> Any:
    try:
        return decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"the payload {shown(payload)} isn't what was expected: {error}") from error
