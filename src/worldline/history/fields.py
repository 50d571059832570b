"""How the values in payloads are named, in every command and table: `topic.field.part[0]`.

Pure. A *field* is a value in a payload that has no parts of its own. Its name is the way to it: keys with dots before
them, places in lists in brackets. So a field of a topic is `pose.x`, an element `pose.joints[2]`, and a payload that is
a number by itself has the name of its topic alone. A list of more than `ELEMENTS_MAX` elements (an image, a scan) is
one field.

`worldline diff` names what differs in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from worldline.model.text import printable

ELEMENTS_MAX = 1000
"""Longer lists are one field."""

_DEPTH_MAX = 100
_MISSING = object()

Fields = list[tuple[str, Any]]
"""Names, each with its value."""


def dotted(path: str, key: object) -> str:
    """Return the name of what is under a key."""
    name = printable(str(key))
    return f"{path}.{name}" if path else name


def element(path: str, place: object) -> str:
    """Return the name of what is at a place of a list."""
    return f"{path}[{place}]"


def joined(topic: str, field: str) -> str:
    """Return the full name of a field of a topic."""
    return f"{topic}.{field}" if field and field[0] != "[" else topic + field


def fields_of(value: Any, path: str = "") -> Fields:
    """Return all fields of a decoded payload, in their order. What is empty is a field itself."""
    found: Fields = []
    _collect(value, path, found, 0)
    return found


def _collect(value: Any, path: str, found: Fields, depth: int) -> None:
    if isinstance(value, dict) and value and depth < _DEPTH_MAX:
        for key, each in value.items():
            is_plain = type(key) is str and key.isprintable()
            name = (f"{path}.{key}" if path else key) if is_plain else dotted(path, key)
            kind = type(each)
            if kind is dict or kind is list:
                _collect(each, name, found, depth + 1)
            else:
                found.append((name, each))
    elif isinstance(value, list) and 0 < len(value) <= ELEMENTS_MAX and depth < _DEPTH_MAX:
        for place, each in enumerate(value):
            _collect(each, f"{path}[{place}]", found, depth + 1)
    else:
        found.append((path, value))


def rest_of(name: str, beginning: str) -> str | None:
    """Return the part of a name that follows its beginning: "" if that is all of it, None if it begins otherwise."""
    if not name.startswith(beginning):
        return None
    rest = name[len(beginning) :]
    if not rest or rest[0] == "[":
        return rest
    return rest[1:] if rest[0] == "." and len(rest) > 1 else None


Way = tuple[Any, ...]
"""The keys and places that lead to a value."""


def way_to(value: Any, name: str) -> Way | None:
    """Return how to get to what a name means in a payload, whatever is in its keys; None if it isn't there."""
    if not name:
        return ()
    if isinstance(value, dict):
        for key, each in value.items():
            rest = rest_of(name, printable(str(key)))
            if rest is not None and (way := way_to(each, rest)) is not None:
                return key, *way
    elif isinstance(value, list) and (found := re.match(r"\[(\d{1,9})\]", name)) and int(found[1]) < len(value):
        rest = rest_of(name, found[0])
        if rest is not None and (way := way_to(value[int(found[1])], rest)) is not None:
            return int(found[1]), *way
    return None


def getter(name: str) -> Callable[[Any], Any]:
    """Return a function that gets the value of that name out of payloads; `is_missing` tells if there is none.

    Payloads of a topic are mostly alike: the way that led to the last one is tried first.
    """
    last: Way = ()

    def get(value: Any) -> Any:
        nonlocal last
        found = value
        if last:
            try:
                for step in last:
                    found = found[step]
            except (KeyError, IndexError, TypeError):
                pass
            else:
                return found
        way = way_to(value, name)
        if way is None:
            return _MISSING
        last, found = way, value
        for step in way:
            found = found[step]
        return found

    return get


def is_missing(value: Any) -> bool:
    """Whether there is no such value."""
    return value is _MISSING


def pattern(name: str) -> re.Pattern[str]:
    """Return what matches all names that a name with `*` stands for: each stands for any text."""
    return re.compile(".*".join(map(re.escape, name.split("*"))))
