"""The values in payloads: how every command and table names them, `topic.field.part[0]`, and where two differ.

Pure. A *field* is a value in a payload that has no parts of its own. Its name is the way to it: keys with dots before
them, places in lists in brackets. So a field of a topic is `pose.x`, an element `pose.joints[2]`, and a payload that is
a number by itself has the name of its topic alone. A list of more than `ELEMENTS_MAX` elements (an image, a scan) is
one field.

`worldline diff` names what differs in the same way: payloads are compared field by field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from math import frexp, isfinite, ldexp
from typing import Any, NamedTuple

import msgspec

from worldline.model.segments import parts_of, read_any
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


# Two payloads, field by field: as JSON or MessagePack if they are that, else as texts or bytes.

TEXT_MAX = 60
"""How much of a value is shown."""

_JSON_STARTS = frozenset(b'{["-0123456789tfn \n\t')
_ALIGNED_MAX = 200  # Texts in two lists that are aligned: the time that it takes grows with their square, or faster.
_AROUND = 8  # How many bytes are shown beside the first one that differs.


class FieldDifference(NamedTuple):
    """A place in two payloads that isn't the same. `steps`: how many floats lie between two; None: not two floats."""

    path: str
    a: Any
    b: Any
    steps: int | None = None

    def __str__(self) -> str:
        a, b = around_difference(_value_text(self.a), _value_text(self.b))
        text = f"{self.path or 'payload'}: {a} → {b}"
        if self.steps is not None and self.steps <= 1_000_000:
            text += f" ({self.steps:,} unit{'' if self.steps == 1 else 's'} in the last place)"
        return text

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values; null, where there is nothing."""
        found = {"path": self.path, "a": _plain(self.a), "b": _plain(self.b)}
        return found if self.steps is None else {**found, "last_places": self.steps}


class Raw(NamedTuple):
    """Bytes that are nothing else, from somewhere on."""

    offset: int
    data: bytes
    size: int

    def __str__(self) -> str:
        return f"{self.data.hex(' ') or 'nothing'} at byte {self.offset} of {self.size:,}"


def field_differences(a: bytes, b: bytes) -> list[FieldDifference]:
    """Return where two payloads differ, in their own order."""
    if a == b:
        return []
    decoded = both_decoded(a, b)
    if decoded is not None:
        found = list(_differences("", *decoded))
        if found:
            return found
    texts = _text(a), _text(b)
    if texts[0] is not None and texts[1] is not None:
        return [FieldDifference("", *texts)]
    offset = next((place for place, (x, y) in enumerate(zip_longest(a, b)) if x != y), 0)
    start = max(0, offset - _AROUND)
    end = offset + _AROUND
    return [FieldDifference("", Raw(start, a[start:end], len(a)), Raw(start, b[start:end], len(b)))]


def value_differences(a: Any, b: Any) -> list[FieldDifference]:
    """Return where two plain values differ: dicts, lists, texts and numbers."""
    return list(_differences("", a, b))


def both_decoded(a: bytes, b: bytes) -> tuple[Any, Any] | None:
    """Return two payloads as plain values, if both can be had in the same way."""
    for decode in (_from_json, _from_msgpack, _from_segment):
        one, other = decode(a), decode(b)
        if one is not _MISSING and other is not _MISSING:
            return one, other
    return None


def decoded(payload: bytes) -> Any:
    """Return a payload as plain values, if it is JSON or MessagePack; `is_missing` tells if it is neither."""
    for decode in (_from_segment, _from_json, _from_msgpack):
        if (value := decode(payload)) is not _MISSING:
            return value
    return _MISSING


def is_reordered(a: bytes, b: bytes) -> bool:
    """Whether two payloads hold the same, with lists or keys in another order."""
    decoded = both_decoded(a, b)
    if decoded is None or repr(decoded[0]) == repr(decoded[1]):  # Then they differ in what isn't decoded.
        return False
    return repr(_without_order(decoded[0])) == repr(_without_order(decoded[1]))


def payload_text(payload: bytes) -> str:
    """Return a payload in a few words, on one line."""
    return _cut(_payload_text(payload))


def payload_texts(a: bytes, b: bytes) -> tuple[str, str]:
    """Return two payloads in a few words each: those around where they differ."""
    return around_difference(_payload_text(a), _payload_text(b))


def around_difference(a: str, b: str) -> tuple[str, str]:
    """Cut two long texts to what is around their first difference."""
    apart = next((place for place, (x, y) in enumerate(zip_longest(a, b)) if x != y), 0)
    if max(len(a), len(b)) <= TEXT_MAX or apart < TEXT_MAX // 2:
        return _cut(a), _cut(b)
    start = apart - TEXT_MAX // 3
    return f"…{_cut(a[start:])}", f"…{_cut(b[start:])}"


def _payload_text(payload: bytes) -> str:
    if not payload:
        return "(empty)"
    if (segment := read_any(payload)) is not None:
        return printable(str(segment))
    if _from_json(payload) is not _MISSING:
        return printable(payload.decode(errors="replace"))
    value = _from_msgpack(payload)
    if value is not _MISSING:
        return _value_text(value)
    text = _text(payload)
    return text if text is not None else f"{payload[:20].hex(' ')} ({len(payload):,} bytes)"


def value_text(value: Any) -> str:
    """Return a decoded value in a few words."""
    return _cut(_value_text(value))


def _value_text(value: Any) -> str:
    if value is _MISSING:
        return "(missing)"
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bytes):
        return value.hex(" ")
    try:
        return printable(msgspec.json.encode(value).decode())
    except (TypeError, ValueError, RecursionError):
        return printable(repr(value))


def steps_between(a: float, b: float) -> int:
    """Return how many steps from float to next float lie between two: their distance in units in the last place."""
    return abs(_ordinal(a) - _ordinal(b))


def _plain(value: Any) -> Any:
    if value is _MISSING:
        return None
    return value_text(value) if isinstance(value, Raw | bytes) else value


def _differences(path: str, a: Any, b: Any) -> Iterator[FieldDifference]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _differences(dotted(path, key), a.get(key, _MISSING), b.get(key, _MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        found = list(_differences_of_named(path, a, b))
        if not found:  # There are no names, or they are all that is in another order.
            for place, x, y in _paired(a, b):
                found += _differences(element(path, place), x, y)
        yield from found
    elif type(a) is not type(b) or a != b:
        if a != a and b != b:  # Neither is a number, in both.
            return
        are_floats = isinstance(a, float) and isinstance(b, float) and isfinite(a) and isfinite(b)
        yield FieldDifference(path, a, b, steps_between(a, b) if are_floats else None)


def _paired(a: list[Any], b: list[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Pair the elements of two lists by their places; if some texts are missing, so that they shift no others."""
    both = [*a, *b]
    spans = [(0, len(a), 0, len(b))]
    if len(a) != len(b) and len(both) <= _ALIGNED_MAX and all(isinstance(each, str) for each in both):
        codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        spans = [code[1:] for code in codes if code[0] != "equal"]
    for start_a, end_a, start_b, end_b in spans:
        pairs = zip_longest(a[start_a:end_a], b[start_b:end_b], fillvalue=_MISSING)
        yield from ((start_b + place, x, y) for place, (x, y) in enumerate(pairs))


def _differences_of_named(path: str, a: list[Any], b: list[Any]) -> Iterator[FieldDifference]:
    """Compare the elements of two lists by their names, if they have any: so one that is missing shifts no others."""
    field = _naming_field(a, b)
    if field is not None:
        named_a, named_b = ({each[field]: each for each in elements} for elements in (a, b))
        for name in dict.fromkeys((*named_a, *named_b)):
            place = element(path, printable(name))
            yield from _differences(place, named_a.get(name, _MISSING), named_b.get(name, _MISSING))


def _naming_field(a: list[Any], b: list[Any]) -> str | None:
    """Return the first field whose text tells the objects of both lists apart, if any object is in both."""
    both = [*a, *b]
    if len(both) < 3 or not all(isinstance(each, dict) for each in both):  # Any field tells one object from none.
        return None
    for field in both[0]:
        names = [each.get(field) for each in both]
        if all(isinstance(name, str) for name in names):
            in_a, in_b = frozenset(names[: len(a)]), frozenset(names[len(a) :])
            if len(in_a) == len(a) and len(in_b) == len(b) and in_a & in_b:
                return str(field)
    return None


def _without_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_order(value[key]) for key in sorted(value, key=repr)}
    return sorted((_without_order(each) for each in value), key=repr) if isinstance(value, list) else value


def _ordinal(value: float) -> int:
    """Number all floats from zero on, in their order."""
    if value < 0:
        return -_ordinal(-value)
    fraction, exponent = frexp(value)
    if value == 0 or exponent < -1021:  # So small that floats lie as close as they ever do.
        return int(ldexp(value, 1074))
    return ((exponent + 1022) << 52) + int(ldexp(fraction, 53)) - (1 << 52)


def _from_json(payload: bytes) -> Any:
    if not payload or payload[0] not in _JSON_STARTS:
        return _MISSING
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _MISSING


def _from_segment(payload: bytes) -> Any:
    """Return what a machine has sent, by the names of its parts."""
    found = read_any(payload)
    return _MISSING if found is None else parts_of(found)


def _from_msgpack(payload: bytes) -> Any:
    """Only maps and arrays: almost any few bytes could be a number."""
    try:
        value = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        return _MISSING
    return value if isinstance(value, dict | list) else _MISSING


def _text(payload: bytes) -> str | None:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
