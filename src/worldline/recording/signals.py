"""What members told in a run, by the names of fields: `topic.field[0]`; of one alone, `member/topic.field[0]`.

A payload is read by what the file says of its encoding: JSON, MessagePack, an LCM type whose definition is in the file;
without an encoding, as JSON or MessagePack if it is that. What members measure or record (a *monitor*) is a topic of
that name: `queue` is what all stations measured, and `lathe/queue` what one of them did.

A name may end anywhere, and then stands for all fields below; a `*` in it stands for any text.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from mcap.records import Channel

from worldline.history.account import Fate, Sending
from worldline.history.fields import (
    Way,
    decoded,
    fields_of,
    getter,
    is_missing,
    joined,
    pattern,
    rest_of,
    way_to,
)
from worldline.history.observer import MEASURE
from worldline.model.errors import UsageError, nearest, shown
from worldline.model.time import FOREVER, format_time
from worldline.recording.facts import LOST_CHANNEL
from worldline.recording.scan import SHARED_CHANNEL, Damaged, Scan, batches

MONITORS = frozenset((MEASURE, "worldline/record"))
"""The topics of what members measure, and of what entities of the kernel record: a monitor's name, and the value."""

_NAMED_MAX = 12
_AT_ONCE = 1000
_NUMBERS = frozenset((int, float))
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

_lines = msgspec.json.Decoder().decode_lines

Decode = Callable[[bytes], Any]
"""Returns a payload as plain values; as the bytes that it is, if it can't be read as what the file says it is."""

Telling = tuple[int, str, str, Any, list[Fate], int]
"""When it was sent, by whom, topic, decoded payload, what became of it, and its sender's number for it."""


class Tellings(NamedTuple):
    """What a recording is to one who reads values out of it.

    `sendings` are as many as can be relied on; `check` refuses a file that was altered.
    """

    path: Path
    scan: Scan
    channels: Mapping[int, Channel]
    topics: frozenset[str]
    members: frozenset[str]
    is_complete: bool
    sendings: Callable[[], Iterable[Sending]]
    check: Callable[[], object]


# --- Payloads ---


def decoders_of(channels: Mapping[int, Channel], scan: Scan) -> Callable[[str], Decode]:
    """Return a function that finds out, once for each topic, how its payloads are read."""
    said = {
        channel.topic: (channel.message_encoding, scan.schemas.get(channel.schema_id))
        for channel in channels.values()
        if channel.metadata != LOST_CHANNEL and "worldline" not in channel.metadata
    }

    @cache
    def decoder(topic: str) -> Decode:
        encoding, schema = said.get(topic, ("", None))
        if encoding == "lcm" and schema is not None:
            try:
                return _guarded(lcm_reader(schema.name, schema.data.decode()), ValueError)
            except ValueError:
                return bytes
        if encoding == "msgpack":
            return _guarded(msgspec.msgpack.decode, msgspec.DecodeError, ValueError, TypeError, RecursionError)
        return read if encoding in ("", "json") else bytes

    return decoder


def _guarded(decode: Decode, *errors: type[Exception]) -> Decode:
    def read(payload: bytes) -> Any:
        try:
            return decode(payload)
        except errors:
            return payload

    return read


def read(payload: bytes) -> Any:
    value = decoded(payload)
    return payload if is_missing(value) else value


# --- What was told, by names ---

Rest = str | Callable[[str], bool]
"""Which fields of a topic a name means: those whose names begin with this, or those that a function knows."""


class Names:
    """What its user wants of a run: some topics, or fields; everything, if none is named."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._patterns = {name: pattern(name) for name in self.names if "*" in name}

    def rests(self, sender: str, topic: str) -> list[tuple[int, Rest]]:
        """Return which names are of a topic as this sender tells it: the name's number, and which of its fields."""
        if not self.names:
            return [] if topic in MONITORS else [(0, "")]
        found: list[tuple[int, Rest]] = []
        for number, name in enumerate(self.names):
            if name in self._patterns:
                if topic in MONITORS:
                    continue
                found.append((number, self._knowing(self._patterns[name].fullmatch, sender, topic)))
                continue
            rest = rest_of(name, topic)
            if rest is None:
                rest = rest_of(name, f"{sender}/{topic}")
            if rest is not None:
                found.append((number, rest))
        return found

    @staticmethod
    def _knowing(match: Callable[[str], object], sender: str, topic: str) -> Callable[[str], bool]:
        @cache
        def knows(field: str) -> bool:
            full = joined(topic, field)
            return match(full) is not None or match(f"{sender}/{full}") is not None

        return knows


def meant_by(field: str, rests: Iterable[tuple[int, Rest]]) -> list[int]:
    """Return the numbers of the names that mean a field of a topic."""
    return [
        number
        for number, rest in rests
        if (rest(field) if callable(rest) else not rest or rest_of(field, rest) is not None)
    ]


def told(
    sendings: Iterable[Sending], decoder: Callable[[str], Decode], wants: Callable[[str, str], object]
) -> Iterator[list[Telling]]:
    """Yield what is wanted of what was sent and noted: by its sender and its topic, which may be a monitor's name.

    They come many at a time, in their order, since to decode them together takes a third of the time.
    """
    cached = cache(wants)
    rest = iter(sendings)
    while block := list(islice(rest, _AT_ONCE)):
        wanted = [each for each in block if cached(each[1], each[2]) or (each[2] in MONITORS and not each[4])]
        payloads: dict[str, list[bytes]] = {}
        for _, _, topic, payload, _, _ in wanted:
            payloads.setdefault(topic, []).append(payload or b"")
        values = {topic: iter(_decoded(data, decoder(topic))) for topic, data in payloads.items()}
        found: list[Telling] = []
        for at, sender, topic, _, fates, number in wanted:
            value = next(values[topic])
            if topic in MONITORS and not fates and not cached(sender, topic):
                topic, value = _monitored(value)
                if not topic or not cached(sender, topic):
                    continue
            found.append((at, sender, topic, value, fates, number))
        yield found


def _monitored(record: Any) -> tuple[str, Any]:
    """Return the name of a monitor and what is told of it; no name, if it isn't that."""
    if isinstance(record, dict) and len(record) == 1:
        ((name, value),) = record.items()
        return str(name), value
    return (str(record[0]), record[1]) if isinstance(record, list) and len(record) == 2 else ("", None)


def told_in(run: Tellings, wants: Callable[[str, str], object]) -> Iterator[Telling]:
    """Yield what is wanted of a recording, as far as all of it is there."""
    return chain.from_iterable(told_together(run, wants))


def told_together(run: Tellings, wants: Callable[[str, str], object]) -> Iterator[list[Telling]]:
    """Yield the same, many at a time."""
    return told(run.sendings(), decoders_of(run.channels, run.scan), wants)


# --- Signals ---


class RecordedSignal(NamedTuple):
    """The values of one field, as one member told them, and when: nanoseconds. `asked` is the number of the name."""

    asked: int
    sender: str
    name: str
    times: list[int]
    values: list[Any]


def signals(
    run: Tellings,
    names: Sequence[str],
    *,
    senders: Collection[str] = (),
    start: int = 0,
    end: int = FOREVER,
) -> list[RecordedSignal]:
    """Return the signals of a recording that are meant by these names, in the order of the names.

    Values are numbers and texts; those of other kinds are left out.
    """
    wanted = Names(names)
    for sender in senders:
        if sender not in run.members:
            raise UsageError(f"{run.path} has no member {shown(sender)}", advice=nearest(sender, run.members))
    takers: dict[tuple[str, str], list[_Taker]] = {}

    def wants(sender: str, topic: str) -> bool:
        if senders and sender not in senders:
            return False
        found = [_Taker(number, rest) for number, rest in wanted.rests(sender, topic)]
        takers[sender, topic] = found
        return bool(found)

    for sender, topic, times, values in _values(run, cache(wants)):
        first, last = bisect_left(times, start), bisect_left(times, end)
        if first < last:
            own = takers[sender, topic]
            if isinstance(values, Payloads):
                data = values.data[first:last]
                if len(own) == 1 and values.decode is read and own[0].take_numbers(times[first:last], data):
                    continue
                values = _decoded(data, values.decode)
            else:
                values = values[first:last]
            for taker in own:
                taker.take(times[first:last], values)
    found = [
        RecordedSignal(taker.number, sender, joined(topic, field), times, values)
        for (sender, topic), each in takers.items()
        for taker in each
        for field, (times, values) in taker.series.items()
        if values
    ]
    found.sort(key=lambda signal: signal.asked)
    there = {signal.asked for signal in found}
    for number, name in enumerate(wanted.names):
        if number not in there:
            told = f" by {' or '.join(senders)}" if senders else ""
            told += f" from {format_time(start)} on" if start else ""
            told += f" before {format_time(end)}" if end < FOREVER else ""
            raise unknown_name(run, name, told)
    return found


class Payloads(NamedTuple):
    """Payloads that aren't decoded yet, and what decodes them."""

    data: list[bytes]
    decode: Decode


Values = tuple[str, str, list[int], list[Any] | Payloads]
"""A sender, a topic, times, and the values in the payloads."""


def _values(run: Tellings, wants: Callable[[str, str], object]) -> Iterator[Values]:
    """Yield what is wanted of a recording, as much at once as stands together."""
    shared = any(channel.metadata == SHARED_CHANNEL for channel in run.channels.values())
    if shared or run.scan.is_reordered or not run.is_complete:
        for at, sender, topic, value, _, _ in told_in(run, wants):
            yield sender, topic, [at], [value]
        return
    decoder = decoders_of(run.channels, run.scan)
    run.check()
    try:
        for sender, topic, times, payloads in batches(
            run.scan, lambda sender, topic: topic in MONITORS or wants(sender, topic)
        ):
            if topic in MONITORS and not wants(sender, topic):
                yield from _of_monitors(sender, times, _decoded(payloads, decoder(topic)), wants)
            else:
                yield sender, topic, times, Payloads(payloads, decoder(topic))
    except Damaged as damage:
        raise UsageError(f"{run.path} was altered: {damage}", advice="record the run again") from damage


def _decoded(payloads: list[bytes], decode: Decode) -> list[Any]:
    """Decode payloads: all at once, if they are lines of JSON, which takes a third of the time."""
    values = _of_lines(payloads, _lines) if decode is read else None
    return list(map(decode, payloads)) if values is None else values


def _of_lines(payloads: list[bytes], decode: Callable[[bytes], list[Any]]) -> list[Any] | None:
    """Decode payloads as lines of JSON; None, if they aren't."""
    text = b"\n".join(payloads)
    if text.count(b"\n") != len(payloads) - 1:
        return None
    try:
        values = decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    # Without a line break in any payload, there are at most as many values as payloads: so there is one for each.
    return values if len(values) == len(payloads) else None


def _reader_of(way: Way) -> Callable[[list[bytes]], list[Any]] | None:
    """Return what reads only the value at the end of a way through objects, out of lines of JSON: again, in a third."""
    if not way or not all(isinstance(step, str) for step in way):
        return None
    kind: Any = Any
    for step in reversed(way):
        kind = msgspec.defstruct("Part", [("part", kind)], rename={"part": step}, gc=False)
    decode = msgspec.json.Decoder(kind).decode_lines
    part = attrgetter(".".join(["part"] * len(way)))

    def read(payloads: list[bytes]) -> list[Any]:
        return list(map(part, _of_lines(payloads, decode) or ()))

    return read


def _of_monitors(
    sender: str, times: list[int], values: list[Any], wants: Callable[[str, str], object]
) -> Iterator[Values]:
    """Yield what an entity recorded, by the names of its monitors."""
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for at, record in zip(times, values, strict=True):
        name, value = _monitored(record)
        if name and wants(sender, name):
            own = found.setdefault(name, ([], []))
            own[0].append(at)
            own[1].append(value)
    yield from ((sender, name, *lists) for name, lists in found.items())


class _Taker:
    """Takes the values of what one name means on one topic of one sender."""

    def __init__(self, number: int, rest: Rest) -> None:
        self.number = number
        self.series: dict[str, tuple[list[int], list[Any]]] = {}
        self._rest = rest
        self._get = None if callable(rest) else getter(rest)
        self._read: Callable[[list[bytes]], list[Any]] | None = None

    def take_numbers(self, times: list[int], payloads: list[bytes]) -> bool:
        """Take numbers out of payloads, as fast as can be; say if they aren't numbers, or can't be had like that."""
        if self._read is None:
            way = None if callable(self._rest) else way_to(read(payloads[0]), self._rest)
            self._read = _reader_of(way or ())
        found = [] if self._read is None else self._read(payloads)
        if not found or not {*map(type, found)} <= _NUMBERS:
            return False
        self._extend(str(self._rest), times, found)
        return True

    def _extend(self, field: str, times: list[int], values: list[Any]) -> None:
        own = self.series.setdefault(field, ([], []))
        own[0].extend(times)
        own[1].extend(values)

    def take(self, times: list[int], values: list[Any]) -> None:
        if self._get is None:
            for at, value in zip(times, values, strict=True):
                for field, each in fields_of(value):
                    if self._rest(field):  # type: ignore[operator]
                        self._add(field, at, each)
            return
        field = str(self._rest)
        found = list(map(self._get, values))
        if {*map(type, found)} <= _NUMBERS:
            self._extend(field, times, found)
            return
        for at, each in zip(times, found, strict=True):
            if isinstance(each, dict | list):
                for part, value in fields_of(each, field):
                    self._add(part, at, value)
            elif not is_missing(each):
                self._add(field, at, each)

    def _add(self, field: str, at: int, value: Any) -> None:
        if isinstance(value, str):
            value = _NOT_FINITE.get(value, value)
        if isinstance(value, float | int | str):  # A truth value is a number, too.
            times, values = self.series.setdefault(field, ([], []))
            times.append(at)
            values.append(value)


def unknown_name(run: Tellings, name: str, where: str = "") -> UsageError:
    """Say that nothing has a name, or nothing that can be shown, and which ones there are."""
    known = field_names(run)
    full = [*known, *(f"{sender}/{each}" for each, senders in known.items() for sender in senders)]
    if any(rest_of(each, name) is not None for each in full):
        others = some_of(each for each in known if rest_of(each, name) is None)
        advice = f"there are {', '.join(others)}" if others else "payloads must be JSON, MessagePack, LCM or numbers"
        problem = where or " that is a number or a text"
        return UsageError(f"{run.path} has nothing of {shown(name)}{problem}", advice=None if where else advice)
    listed = f"there are {', '.join(some_of(known))}" if known else "it has none at all"
    return UsageError(f"{run.path} has no field {shown(name)}", advice=nearest(name, full) or listed)


def some_of(names: Iterable[str]) -> list[str]:
    """Return names to choose from: those of the run's own topics first, and elements of lists together."""
    together = dict.fromkeys(re.sub(r"\[\d+\]", "[*]", name) for name in names)
    return sorted(together, key=lambda name: name.startswith("worldline/"))[:_NAMED_MAX]


_LOOKED_AT = 100


def field_names(run: Tellings) -> dict[str, set[str]]:
    """Return the names of all fields, from the first payloads of each topic, with the members that told them."""
    counts: dict[tuple[str, str], int] = {}
    names: dict[str, set[str]] = {}
    for _, sender, topic, value, _, _ in told_in(run, lambda _, topic: topic not in MONITORS):
        counts[sender, topic] = counts.get((sender, topic), 0) + 1
        if counts[sender, topic] <= _LOOKED_AT:
            for field, _ in fields_of(value):
                names.setdefault(joined(topic, field), set()).add(sender)
    return names


# Reads LCM messages by their definition, as it stands in a recording: no class that lcm-gen made is needed.
#
# Pure. A definition is a .lcm file: packages, structs, constants. What can't be read by it, a message of another type
# for instance, isn't guessed.

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FINGERPRINT = re.compile(r"// fingerprint 0x([0-9a-f]{16})")
_STATEMENT = re.compile(r"package\s+([\w.]+)\s*;|struct\s+(\w+)\s*\{(.*?)\}", re.DOTALL)
_CONSTANT = re.compile(r"(\w+)\s*=\s*(-?(?:0x[0-9a-fA-F]+|\d+))")
_MEMBER = re.compile(r"(\w+)\s*((?:\[\s*\w+\s*\]\s*)*)")
_LCM_NUMBERS = {
    "int8_t": "b",
    "int16_t": "h",
    "int32_t": "i",
    "int64_t": "q",
    "byte": "B",
    "float": "f",
    "double": "d",
    "boolean": "?",
}
_ELEMENTS_MAX = 2**24  # Of an array of structs without fields: all others need bytes of the message.


class _Member(NamedTuple):
    name: str
    type: str
    sizes: Sequence[str | int]


Types = Mapping[str, Sequence[_Member]]


def lcm_reader(name: str, definition: str) -> Callable[[bytes], dict[str, Any]]:
    """Return what reads messages of the type of that name."""
    types = _types(definition)
    if name not in types:
        raise ValueError(f"there is no struct {name} in the definition")
    said = _FINGERPRINT.search(definition)
    fingerprint = bytes.fromhex(said[1]) if said else None

    def read(payload: bytes) -> dict[str, Any]:
        if len(payload) < 8 or (fingerprint is not None and payload[:8] != fingerprint):
            raise ValueError("it is a message of another type")
        try:
            value, end = _struct(types, name, payload, 8)
        except (struct.error, IndexError, UnicodeDecodeError, RecursionError, TypeError, KeyError) as error:
            raise ValueError(f"it isn't a {name}") from error
        if end != len(payload):
            raise ValueError(f"it isn't a {name}")
        return value

    return read


def _types(definition: str) -> Types:
    found: dict[str, list[_Member]] = {}
    package = ""
    for statement in _STATEMENT.finditer(_COMMENT.sub(" ", definition)):
        if statement[1] is not None:
            package = f"{statement[1]}."
            continue
        constants: dict[str, int] = {}
        members = found[package + statement[2]] = []
        for line in filter(None, map(str.strip, statement[3].split(";"))):
            kind, _, rest = line.partition(" ")
            if kind == "const":
                constants.update((each[1], int(each[2], 0)) for each in _CONSTANT.finditer(rest))
                continue
            if kind not in _LCM_NUMBERS and kind != "string" and "." not in kind:
                kind = package + kind
            for each in _MEMBER.finditer(rest):
                sizes = [
                    int(size) if size.isdecimal() else constants.get(size, size) for size in re.findall(r"\w+", each[2])
                ]
                members.append(_Member(each[1], kind, sizes))
    return found


def _struct(types: Types, name: str, data: bytes, at: int) -> tuple[dict[str, Any], int]:
    value: dict[str, Any] = {}
    for member in types[name]:
        sizes = [size if isinstance(size, int) else value[size] for size in member.sizes]
        value[member.name], at = _value(types, member.type, sizes, data, at)
    return value, at


def _value(types: Types, kind: str, sizes: Sequence[int], data: bytes, at: int) -> tuple[Any, int]:
    code = _LCM_NUMBERS.get(kind)
    if not sizes:
        if code is not None:
            form = f">{code}"
            return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
        if kind == "string":
            (size,) = struct.unpack_from(">i", data, at)
            end = at + 4 + size
            if size < 1 or end > len(data):
                raise IndexError
            return data[at + 4 : end - 1].decode(), end
        return _struct(types, kind, data, at)
    count = sizes[0]
    if not 0 <= count <= max(len(data), _ELEMENTS_MAX):
        raise IndexError
    if code is not None and len(sizes) == 1:
        form = f">{count}{code}"
        return list(struct.unpack_from(form, data, at)), at + struct.calcsize(form)
    elements = []
    for _ in range(count):
        if at > len(data):
            raise IndexError
        each, at = _value(types, kind, sizes[1:], data, at)
        elements.append(each)
    return elements, at
