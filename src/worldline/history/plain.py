"""Payloads of rooms whose messages are objects, as bytes that any tool can read."""

from __future__ import annotations

from typing import Any

from msgspec import json, to_builtins

_encode = json.Encoder(order="deterministic").encode


def encoded(message: Any) -> bytes:
    """Return a message as JSON, the same whatever the hash seed."""
    return _encode(plain(message))


def plain(message: Any) -> Any:
    """Return a message as plain values that any tool can read; as text, if it can't be had otherwise."""
    try:
        return to_builtins(message, str_keys=True, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return str(message)
