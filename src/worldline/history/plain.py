"""Payloads of rooms whose messages are objects, as bytes that any tool can read.

They must be the same in every process: so nothing of them tells the hash seed, or where in memory an object is.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

from msgspec import Struct, json, structs, to_builtins

_encode = json.Encoder(order="deterministic").encode
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def encoded(message: Any) -> bytes:
    """Return a message as JSON."""
    try:
        return _encode(plain(message))
    except (TypeError, ValueError, OverflowError, RecursionError):  # Too deep, or texts that aren't quite.
        return _encode(_as_text(message))


def plain(message: Any) -> Any:
    """Return a message as plain values that any tool can read; what can't be had otherwise, as text."""
    try:
        return _plain(message)
    except RecursionError:  # How deep it got depends on who called: so nothing of it is taken.
        return f"<{type(message).__qualname__}>"


def _plain(value: Any) -> Any:
    try:
        return to_builtins(value, str_keys=True, order="deterministic", enc_hook=_as_text)
    except (TypeError, ValueError):
        return _part_by_part(value)


def _part_by_part(value: Any) -> Any:
    """Return plain values of something with a part that JSON has no word for: a key, or a set that can't be sorted."""
    if isinstance(value, dict):
        return {key if type(key) is str else _encode(_plain(key)).decode(): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=_encode)
    if isinstance(value, Struct):
        return _plain(structs.asdict(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return _as_text(value)


def _as_text(value: Any) -> str:
    try:
        text = str(value)
    except Exception:  # It is somebody else's code.
        text = f"<{type(value).__qualname__}>"
    return _ADDRESS.sub("", text.encode(errors="backslashreplace").decode())
