"""Reads the times that people write, and refuses what isn't one.

Text such as ``"5ms"`` is read at the edges only and is exact: ``"0.1ns"`` isn't rounded but refused.
"""

from __future__ import annotations

import re
from datetime import timedelta
from operator import index
from typing import Any

from worldline.model.errors import ConfigurationError, shown
from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, TIME_MAX, US, TimeLike, format_time, is_time

_UNITS = {"ns": NS, "us": US, "µs": US, "μs": US, "ms": MS, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY}
_MICROSECOND = timedelta(microseconds=1)
_KNOWN: dict[str, int] = {}  # What texts say: a program gives the same few, over and over.
_KNOWN_MAX = 1024
_TEXT = re.compile(r"([0-9]+)(?:\.([0-9]+))?\s*([a-zµμ]+)", re.ASCII)


def parse_time(text: str, what: str = "a time") -> int:
    """Read ``"5ms"``, ``"1.5s"`` or ``"2h"``; the units are ns, us, ms, s, min, h and d. ``"0"`` needs no unit."""
    stripped = text.strip()
    if stripped == "0":
        return 0
    match = _TEXT.fullmatch(stripped)
    if match is None or match[3] not in _UNITS:
        if stripped.startswith("-") and _TEXT.fullmatch(stripped[1:]):
            raise _refusal(text, f'{what} can\'t be negative: write "5ms"', what)
        raise _refusal(text, 'write a number and a unit, such as "5ms", "1.5s" or "2h"', what)
    whole, fraction, unit = str(match[1]), str(match[2] or ""), _UNITS[match[3]]
    if len(whole) + len(fraction) > 40:  # Longer than any time; keeps int() from chewing on a megabyte of digits.
        raise _refusal(text, "that many digits aren't a time", what)
    scaled = int(whole + fraction) * unit
    time, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise _refusal(text, "it isn't a whole number of nanoseconds", what)
    if time > TIME_MAX:
        raise _refusal(text, f"the largest time is {format_time(TIME_MAX)}", what)
    return time


def as_time(value: TimeLike, what: str = "a time") -> int:
    """Take a time as nanoseconds, text or a timedelta; refuse floats, which can't say what they mean exactly."""
    if type(value) is int and 0 <= value <= TIME_MAX:  # As nearly all are.
        return value
    if isinstance(value, str):
        known = _KNOWN.get(value)
        return _learnt(value, what) if known is None else known
    time = _as_int(value)
    if time is None and isinstance(value, timedelta):
        time = value // _MICROSECOND * US
    if time is None:
        raise _refusal(value, f"{what} is a whole number of nanoseconds, text with a unit, or a timedelta", what)
    if not is_time(time):
        raise _refusal(value, f"{what} lies between 0 and {format_time(TIME_MAX)}", what)
    return time


def _learnt(text: str, what: str) -> int:
    time = parse_time(text, what)
    if len(_KNOWN) < _KNOWN_MAX:
        _KNOWN[str.__str__(text)] = time
    return time


def as_time_difference(value: TimeLike, what: str = "a time difference") -> int:
    """Take what `as_time` takes, forward or back: ``"-5ms"`` is negative."""
    if isinstance(value, str):
        text = value.strip()
        return -parse_time(text[1:], what) if text.startswith("-") else parse_time(text, what)
    if isinstance(value, timedelta):
        return as_time(value, what) if value >= timedelta() else -as_time(-value, what)
    number = _as_int(value)
    if number is not None and number < 0:
        return -as_time(-number, what)
    return as_time(value, what)


def resembles_time(value: object) -> bool:
    """Whether this is meant as a time, if perhaps as one that is refused."""
    return isinstance(value, str | timedelta) or _as_int(value) is not None


def _as_int(value: Any) -> int | None:
    """Return a whole number of whichever class, such as NumPy's, as an int; None if it isn't one.

    Those that Python counts as ints, but that mean something else, are none: True, or the member of an enum.
    """
    if isinstance(value, int):
        return value if type(value) is int else None
    try:
        return index(value)
    except TypeError:
        return None


def as_latency(value: TimeLike, what: str = "a latency") -> int:
    """Take a duration of at least 1 ns: there is no zero latency, 1 ns is the microstep."""
    latency = as_time(value, what)
    if latency < 1:
        raise _refusal(value, f"{what} is at least 1ns", what)
    return latency


def _refusal(value: object, advice: str, what: str = "a time") -> ConfigurationError:
    return ConfigurationError(f"{shown(value)} isn't {what}", advice=advice)
