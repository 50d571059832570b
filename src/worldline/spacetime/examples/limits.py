"""Refuses parameters of examples with which there would be nothing to see."""

from __future__ import annotations

from worldline.model.errors import ConfigurationError


def at_least(least: int, **given: int) -> None:
    """Refuse numbers below a limit."""
    for name, number in given.items():
        if number < least:
            raise ConfigurationError(f"{name} is {number}", advice=f"use {least} or more")
