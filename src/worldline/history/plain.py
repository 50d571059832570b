"""Payloads of rooms whose messages are objects, as bytes that any tool can read.

They must be the same in every process: so nothing of them tells the hash seed, or where in memory an object is. And
what a receiver could tell apart must differ: so the order of a dict stays, which a model can see, and a float that JSON
has no number for becomes a text of its own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from math import inf, isfinite
from typing import Any

from msgspec import Struct, json, to_builtins

_encode = json.Encoder().encode
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_DEPTH_MAX = 300  # A limit of our own: how deep Python lets us go depends on who called.


def encoded(message: Any) -> bytes:
    """Return a message as JSON."""
    try:
        return _encode(plain(message))
    except (TypeError, ValueError, OverflowError, RecursionError):  # Numbers that aren't quite.
        return _encode(_as_text(message))


def plain(message: Any) -> Any:
    """Return a message as plain values that any tool can read; what can't be had otherwise, as text."""
    try:
        return _plain(message, 0)
    except RecursionError:
        return f"<{type(message).__qualname__}>"


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else _not_finite(value)
    if depth == _DEPTH_MAX:
        raise RecursionError
    depth += 1
    if isinstance(value, dict):
        return _dict(value.items(), depth)
    if isinstance(value, list | tuple | deque):
        return [_plain(part, depth) for part in value]
    if isinstance(value, set | frozenset):
        return sorted([_plain(part, depth) for part in value], key=_encode)
    if isinstance(value, Struct):
        config = value.__struct_config__
        tag = () if config.tag is None else ((config.tag_field, config.tag),)
        return _dict((*tag, *_parts(value, value.__struct_fields__)), depth)
    if is_dataclass(value) and not isinstance(value, type):
        return _dict(_parts(value, (field.name for field in fields(value))), depth)
    try:
        return to_builtins(value, order="deterministic", enc_hook=_as_text)
    except (TypeError, ValueError):
        return _as_text(value)


def _parts(value: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(value, name, None)) for name in names)


def _dict(items: Iterable[tuple[Any, Any]], depth: int) -> Any:
    """Return a dict whose keys are texts; or pairs, where different keys have the same text."""
    pairs = [(_plain(key, depth), _plain(value, depth)) for key, value in items]
    found = {key if type(key) is str else _encode(key).decode(): value for key, value in pairs}
    return found if len(found) == len(pairs) else [list(pair) for pair in pairs]


def _not_finite(value: float) -> str:
    return "Infinity" if value == inf else "-Infinity" if value == -inf else "NaN"


def _as_text(value: Any) -> str:
    try:
        text = str(value)
    except Exception:  # It is the model's code.
        text = f"<{type(value).__qualname__}>"
    return _ADDRESS.sub("", _text(text))


def _text(text: str) -> str:
    """Return a text without what can't be written as UTF-8."""
    return text.encode(errors="backslashreplace").decode()
