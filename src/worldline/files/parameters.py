"""Reads parameters that are given as texts, such as those of ``--set NAME=VALUE``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.reading import as_time
from worldline.model.time import US

_BOOLS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_OPTIONS = ("seed", "until", "executor")  # What isn't a parameter, but an option of its own.
_KINDS = (bool, float, int, str)


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Take apart texts of the form NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text} sets nothing", advice="write --set NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def parsed(owner: str, defaults: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Read the parameters of something; each is of the kind of its default."""
    found: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in defaults:
            if name in _OPTIONS:
                advice = f"write --{name} {text}"
                raise ConfigurationError(f"{owner} has no parameter {shown(name)} of its own", advice=advice)
            there = ", ".join(f"{key}={value}" for key, value in defaults.items()) or "it has none"
            raise ConfigurationError(f"{owner} has no parameter {shown(name)}", advice=f"parameters: {there}")
        found[name] = _as_its_default(owner, name, defaults[name], text)
    return found


def _as_its_default(owner: str, name: str, default: Any, text: str) -> Any:
    kind = str if default is None else type(default)
    if kind is timedelta:
        return _as_timedelta(text, f"a value of {name}")
    if kind not in _KINDS:
        raise ConfigurationError(
            f"{owner}: {name} can't be set here: it is {shown(default)}",
            advice="numbers, text, times, yes and no can",
        )
    try:
        return _BOOLS[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"{owner}: {name} can't be {shown(text)}", advice=f"write a value like {default!r}"
        ) from None


def _as_timedelta(text: str, what: str) -> timedelta:
    time = as_time(text, what)
    if time % US:
        raise ConfigurationError(f"{what} can't be {text}", advice="a timedelta is in whole microseconds")
    return timedelta(microseconds=time // US)
