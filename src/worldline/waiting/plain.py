"""A situation as plain values, for JSON: times in nanoseconds, null for never; with who is at the root of what."""

from __future__ import annotations

from typing import Any

import msgspec

from worldline.lock.chains import chains, holds
from worldline.lock.situation import Situation
from worldline.model.time import FOREVER
from worldline.waiting.hints import hints


def as_plain(situation: Situation) -> dict[str, Any]:
    """Return all that a situation says, and all that follows from it."""
    plain: dict[str, Any] = _without_forever(msgspec.to_builtins(situation))
    plain["whys"] = [
        {**why, "root": chain.root} for why, chain in zip(plain["whys"], chains(situation.whys), strict=True)
    ]
    plain["holds"] = _without_forever(msgspec.to_builtins(holds(situation)))
    plain["hints"] = hints(situation)
    return plain


def _without_forever(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_forever(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_forever(each) for each in value]
    return None if type(value) is int and value >= FOREVER else value
