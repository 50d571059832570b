"""Rates by which a clock differs from true time, in whole parts per billion, and as people write them."""

from __future__ import annotations

import re

from worldline.model.errors import ConfigurationError, shown

RateLike = int | str
"""What stands for a rate: text such as ``"40ppm"``, or whole parts per billion."""

_RATE_UNITS = {"ppb": 1, "ppm": 1000, "%": 10**7}
_RATE = re.compile(r"([+-]?)\s*([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*(ppb|ppm|%)", re.ASCII)


def as_rate(value: RateLike, what: str = "a rate") -> int:
    """Take a rate as text with a unit, ppb, ppm or %, or as whole parts per billion."""
    advice = 'write a number and a unit, such as "40ppm", "-300ppb" or "0.1%"'
    if isinstance(value, str):
        match = _RATE.fullmatch(value.strip())
        if match is None:
            raise ConfigurationError(f"{shown(value)} isn't {what}", advice=advice)
        sign, whole, fraction, unit = match[1], match[2], match[3] or "", _RATE_UNITS[match[4]]
        rate, rest = divmod(int(whole + fraction) * unit, int(10 ** len(fraction)))
        if rest:
            raise ConfigurationError(
                f"{shown(value)} isn't {what}", advice="it isn't a whole number of parts per billion"
            )
        return -rate if sign == "-" else rate
    if type(value) is not int:
        raise ConfigurationError(f"{shown(value)} isn't {what}", advice=advice)
    return value


def format_rate(rate: int) -> str:
    """Write a rate so that `as_rate` reads it back exactly."""
    if rate % 1000:
        return f"{rate}ppb"
    return f"{rate // 1000}ppm"
