"""Reads which executor is wanted, before it is known which room it is for."""

from __future__ import annotations

from typing import Any

from worldline.model.errors import UsageError
from worldline.spacetime.simulation import read_executor as read

IN_PROCESS, TCP, UNIX = "in-process", "tcp", "unix"
OF_FEDERATIONS = (IN_PROCESS, TCP, UNIX, "processes")


def read_executor(text: str | None) -> Any:
    """Return the executor of this text; None if there is none, or if it is one that only federations have."""
    return None if text is None or text.strip() in OF_FEDERATIONS else read(text)


def refusal(executor: object, kind: str, usable: str) -> UsageError:
    """Return that a room has no use for an executor."""
    return UsageError(f"{executor} doesn't run {kind}", advice=f"use {usable}")
