"""The words of a federation's file: the keys of its tables, and how each is read.

A reader sees its own place only. What several places must agree on is for the setup to check.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from worldline.federation.server.limits import FRAME_LEAST, PAYLOAD_MOST, LossPolicy, check_policy
from worldline.launch.file.startable import mode_of
from worldline.launch.file.toml_document import TOP, TomlPlace, TomlTable, quoted, said
from worldline.launch.file.topics import TOPIC, read_topics
from worldline.model.clock import (
    ClockJump,
    LocalClock,
    RateWalk,
    as_drift,
    as_offset,
    as_walk,
    check_clock,
    check_jumps,
)
from worldline.model.errors import ConfigurationError, shown
from worldline.model.faults import ParticipantFault, as_participant_fault
from worldline.model.latency import Latency, as_delay, as_distribution, delay_text
from worldline.model.links import Buffer, as_buffer
from worldline.model.message import check_name
from worldline.model.reading import as_time_difference, parse_time
from worldline.model.time import MS, SECOND
from worldline.programs.entries import MachineEntry, checked_escapes

# --- Readers of single values ---


Mention = tuple[str, TomlPlace]
"""A name, and where it stands."""


def _named(what: str) -> Callable[[TomlPlace], str]:
    return lambda place: check_name(place.text(), what)


def _mention(place: TomlPlace) -> Mention:
    return check_name(place.text(), "a participant"), place


def _text_with_unit(place: TomlPlace, what: str, example: str) -> str:
    try:
        return place.text()
    except ConfigurationError:
        advice = f'write a number with its unit in quotes, such as "{example}"'
        raise ConfigurationError(f"{said(place.value)} isn't {what}", advice=advice) from None


def _time_text(place: TomlPlace, what: str) -> str:
    """Read the text of a time; a bare number is refused, since milliseconds can't be told from seconds in it."""
    text = _text_with_unit(place, what, "5ms")
    if text.lstrip().startswith("-"):
        raise ConfigurationError(f"{shown(text)} isn't {what}", advice=f"{what} can't be negative")
    return text


def _time(what: str, *, least: int = 0) -> Callable[[TomlPlace], int]:
    def read(place: TomlPlace) -> int:
        text = _time_text(place, what)
        time = parse_time(text, what)
        if time < least:
            raise ConfigurationError(f"{shown(text)} isn't {what}", advice=f"{what} is at least {least}ns")
        return time

    return read


_SIZE = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?\s*([A-Za-z]+)", re.ASCII)
_SIZE_UNITS = {"B": 1, **{f"{k}B": 1000**n for n, k in enumerate("kMGT", 1)}}
_SIZE_UNITS |= {f"{k}iB": 1024**n for n, k in enumerate("KMGT", 1)}


def _size(least: int = 1, most: int = 2**50) -> Callable[[TomlPlace], int]:
    """Read a size; like a time, it stands with its unit."""
    advice = 'write a number with its unit in quotes, such as "256MB" or "64KiB"'

    def read(place: TomlPlace) -> int:
        try:
            text = place.text()
        except ConfigurationError:
            raise ConfigurationError(f"{said(place.value)} isn't a size", advice=advice) from None
        match = _SIZE.fullmatch(text.strip())
        if match is None or match[3] not in _SIZE_UNITS:
            raise ConfigurationError(f"{shown(text)} isn't a size", advice=advice)
        whole, fraction = match[1], match[2] or ""
        size, rest = divmod(int(whole + fraction) * _SIZE_UNITS[match[3]], 10 ** len(fraction))
        if rest:
            raise ConfigurationError(f"{shown(text)} isn't a size", advice="it isn't a whole number of bytes")
        if not least <= size <= most:
            raise ConfigurationError(f"{shown(text)} isn't possible here", advice=f"use {least:,}B to {most:,}B")
        return int(size)

    return read


def _seconds(what: str, least: int = MS) -> Callable[[TomlPlace], float]:
    """Read a time of the wall clock."""
    read = _time(what, least=least)
    return lambda place: read(place) / SECOND


def _seconds_or_never(what: str) -> Callable[[TomlPlace], float]:
    read = _seconds(what)
    return lambda place: math.inf if place.value == "never" else read(place)


def _count(what: str) -> Callable[[TomlPlace], int]:
    def read(place: TomlPlace) -> int:
        if type(place.value) is not int or not 1 <= place.value <= 10**9:
            raise ConfigurationError(f"{said(place.value)} isn't a number of {what}", advice="use 1 or more")
        return int(place.value)

    return read


def _latency(place: TomlPlace) -> Latency:
    return as_distribution(_time_text(place, "a latency"))


def _boot(place: TomlPlace) -> str:
    return delay_text(as_delay(_time_text(place, "a boot time"), "a boot time"))


def _difference(what: str) -> Callable[[TomlPlace], int]:
    """Read a time that may be negative."""

    def read(place: TomlPlace) -> int:
        _text_with_unit(place, what, "-5ms")
        return as_time_difference(place.text(), what)

    return read


def _offset(place: TomlPlace) -> int | Latency:
    return as_offset(_text_with_unit(place, "an offset", "-5ms"))


def _drift(place: TomlPlace) -> int | Latency:
    return as_drift(_text_with_unit(place, "a drift", "40ppm"))


def _wander(place: TomlPlace) -> RateWalk:
    return as_walk(_text_with_unit(place, "a wander", "walk(1ppm, every=1s, within=20ppm)"))


def _flag(place: TomlPlace) -> bool:
    if not isinstance(place.value, bool):
        raise ConfigurationError(f"{said(place.value)} isn't true or false", advice="write it without quotes")
    return place.value


def _probability(place: TomlPlace) -> float:
    # Written so that a NaN, which compares false to everything, is refused too.
    if type(place.value) not in (int, float) or not 0 <= place.value <= 1:
        raise ConfigurationError(f"{said(place.value)} isn't a probability", advice="use 0 to 1")
    return float(place.value)


def _seed(place: TomlPlace) -> int:
    if type(place.value) is not int or not -(2**63) <= place.value < 2**63:
        raise ConfigurationError(f"{said(place.value)} isn't a seed", advice="use a whole number of at most 64 bits")
    return int(place.value)


def _bandwidth(place: TomlPlace) -> int:
    if type(place.value) is not int or place.value < 1:
        raise ConfigurationError(f"{said(place.value)} isn't a bandwidth", advice="use whole bytes per second")
    return int(place.value)


def _buffer(place: TomlPlace) -> Buffer:
    return as_buffer(place.text())


def _entry(place: TomlPlace) -> str:
    entry = place.text()
    module, colon, name = entry.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise ConfigurationError(
            f"{shown(entry)} isn't a Python entry point",
            advice='write "module:function"; its folder goes into directory',
        )
    return entry


def _command(place: TomlPlace) -> tuple[str, ...]:
    if isinstance(place.value, list):
        words = tuple(_all(place.items("words", '["./camera", "--fast"]'), TomlPlace.text))
        if len(words) < len(place.value):
            return ()
    else:
        try:
            words = tuple(shlex.split(place.text()))
        except ValueError as error:
            raise ConfigurationError(f"{shown(place.value)} can't be split into words: {error}") from None
    if not words or not words[0]:
        raise ConfigurationError("the command is empty", advice="leave it out if it is started by hand")
    return words


def _program(kind: str) -> Callable[[TomlPlace], str]:
    """Read a program as one would type it after ``python`` or ``python -m``; it is an entry of its own kind."""

    def read(place: TomlPlace) -> str:
        try:
            words = shlex.split(place.text())
        except ValueError as error:
            raise ConfigurationError(f"{shown(place.value)} can't be split into words: {error}") from None
        if not words or not words[0]:
            raise ConfigurationError(f"the {kind} is empty", advice=f'write {kind} = "server.py --port 8080"')
        return str(MachineEntry(kind, tuple(words)))

    return read


def _directory(place: TomlPlace) -> Path:
    directory = place.document.file.absolute().parent / place.text()
    if not S_ISDIR(mode_of(directory)):
        raise ConfigurationError(f"there is no directory {quoted(str(directory))}")
    return directory.resolve()


# --- Readers of lists and tables ---


def _all(places: Iterable[TomlPlace], reader: Callable[[TomlPlace], Any]) -> list[Any]:
    """Return what could be read at these places."""
    return [found for place in places if (found := place.read(reader)) is not None]


def _distinct(mentions: list[Mention]) -> list[Mention]:
    """Note the names that stand there twice."""
    seen = set[str]()
    for name, place in mentions:
        if name in seen:
            place.note(f"{quoted(name)} is listed twice")
        seen.add(name)
    return mentions


def _names(place: TomlPlace) -> list[Mention]:
    """Read a list of participants, which isn't empty."""
    places = place.items("names", '["ann", "bob"]')
    if not places:
        raise ConfigurationError("the list is empty", advice="name at least one participant")
    return _distinct(_all(places, _mention))


def _topics(place: TomlPlace) -> tuple[str, ...]:
    topics = _all(place.items("topics", '["image", "pose"]'), lambda item: (_named("a topic")(item), item))
    return tuple(topic for topic, _ in _distinct(topics))


def _buffers(place: TomlPlace) -> dict[str, Buffer]:
    def read(entry: TomlPlace) -> tuple[str, Buffer]:
        return check_name(entry.steps[-1], "a topic"), _buffer(entry)

    return dict(_all((entry for _, entry in place.entries('{ target = "mailbox" }')), read))


def _subscribes(place: TomlPlace) -> dict[str, Buffer | None]:
    """Read a list of topics, whose buffers are said elsewhere or not at all, or a table from topics to buffers."""
    if isinstance(place.value, dict):
        return {**_buffers(place)}
    return dict.fromkeys(_topics(place))


def _environment(place: TomlPlace) -> dict[str, str]:
    def read(entry: TomlPlace) -> tuple[str, str]:
        variable = str(entry.steps[-1])
        if not variable or "=" in variable or "\0" in variable:
            raise ConfigurationError(f"{shown(variable)} can't be the name of an environment variable")
        return variable, entry.text()

    return dict(_all((entry for _, entry in place.entries('{ FOO = "1" }')), read))


def _sides(place: TomlPlace) -> list[list[Mention]]:
    sides = place.items("two lists of names", '[["arm"], ["planner", "camera"]]')
    if len(sides) != 2:
        raise ConfigurationError(
            f"a fault is between two groups, not {len(sides)}", advice='write [["arm"], ["planner", "camera"]]'
        )
    groups: list[list[Mention]] = _all(sides, _names)
    for name, where in groups[-1] if len(groups) == 2 else ():
        if name in [other for other, _ in groups[0]]:
            where.note(f"{quoted(name)} is on both sides")
    return groups


Tables = list[tuple[TomlPlace, dict[str, Any]]]


def _one(table: TomlTable) -> Callable[[TomlPlace], dict[str, Any]]:
    return lambda place: place.table(table)


def _many(table: TomlTable) -> Callable[[TomlPlace], Tables]:
    def read(place: TomlPlace) -> Tables:
        return _all(place.items("tables", table.title), lambda item: (item, item.table(table)))

    return read


Faults = list[tuple[TomlPlace, dict[str, Any] | ParticipantFault]]


def _faults(place: TomlPlace) -> Faults:
    """Read a list of outages, which are tables, and of faults of participants, which are texts."""

    def read(item: TomlPlace) -> tuple[TomlPlace, dict[str, Any] | ParticipantFault]:
        return item, as_participant_fault(item.value) if isinstance(item.value, str) else item.table(FAULT)

    return _all(place.items("faults", '["2s crash planner"], or [[faults]]'), read)


def _jumps(place: TomlPlace) -> tuple[ClockJump, ...]:
    places = place.items("jumps", '[{ at = "2s", by = "-5ms" }]')
    tables = [item.read(lambda item: item.table(CLOCK_JUMP)) for item in places]
    jumps = tuple(ClockJump(**table) for table in tables if table is not None and len(table) == len(CLOCK_JUMP.keys))
    if len(jumps) == len(places):  # Otherwise there is no telling what comes after what.
        check_jumps(jumps, lambda number, problem: places[number].note(problem))
    return jumps


def _clock(place: TomlPlace) -> LocalClock:
    described = place.table(CLOCK)
    made = LocalClock(**{key: value for key, value in described.items() if key != "jumps"})
    check_clock(made)
    return LocalClock(offset=made.offset, drift=made.drift, wander=made.wander, jumps=described.get("jumps", ()))


def _lcm_targets(place: TomlPlace) -> tuple[str, ...]:
    """Read where a public LCM is, or a list of that."""
    if isinstance(place.value, list):
        return tuple(_all(place.items("targets", '["udpm://239.255.76.67:7667?ttl=0", "run.lcmlog"]'), TomlPlace.text))
    return (place.text(),)


def _properties(place: TomlPlace) -> tuple[str, ...]:
    return tuple(_all(place.items("properties", '["properties:one_leader"]'), TomlPlace.text))


def _escapes(place: TomlPlace) -> tuple[str, ...]:
    return checked_escapes(_all(place.items("escapes", '["processes"]'), TomlPlace.text))


def _policy(place: TomlPlace) -> LossPolicy:
    return check_policy(place.text())


# --- The words of the file ---

LINK = TomlTable(
    "[link]",
    {
        "latency": _latency,
        "loss": _probability,
        "loss_at_sender": _probability,
        "duplication": _probability,
        "fifo": _flag,
        "bandwidth": _bandwidth,
        "corruption": _probability,
    },
)
RULE = TomlTable(
    "[[links]]",
    {"topic": _named("a topic"), "sender": _mention, "receiver": _mention, **LINK.keys},
    needs=(("topic", "sender", "receiver"), ("latency",)),
)
FAULT = TomlTable(
    "[[faults]]",
    {
        "partition": _sides,
        "hold": _sides,
        "start": _time("a start"),
        "repair": _time("a repair"),
        "release": _time("a release"),
    },
    needs=(("partition", "hold"), ("start",)),
    either=(("partition", "hold"),),
)
LIMITS = TomlTable(
    "[limits]",
    {
        "memory": _size(),
        "under_way": _size(),
        "flood": _size(),
        "unread": _size(),
        "frame": _size(FRAME_LEAST, 2**30),
        "payload": _size(1, PAYLOAD_MOST),
        "unreachable": _seconds("a time without an answer"),
        "silence": _seconds_or_never("a silence"),
        "handshake": _seconds("a handshake"),
        "join": _seconds_or_never("a join limit"),
        "rejoin": _seconds_or_never("a time to come back"),
        "topics": _count("topics"),
        "events": _count("events"),
        "frames": _count("frames"),
        "strangers": _count("connections"),
    },
)
ESTOP = TomlTable("[estop]", {"latency": _time("the latency of an emergency stop", least=1)}, needs=(("latency",),))
LCM = TomlTable("[lcm]", {"public": _lcm_targets, "serve": TomlPlace.text})
CLOCK_JUMP = TomlTable(
    '{ at = "2s", by = "-5ms" }',
    {"at": _time("the time of a jump"), "by": _difference("a jump")},
    needs=(("at",), ("by",)),
)
CLOCK = TomlTable(
    'clock = { offset = "3ms", drift = "40ppm" }',
    {"offset": _offset, "drift": _drift, "wander": _wander, "jumps": _jumps},
)
PARTICIPANT = TomlTable(
    "[[participants]]",
    {
        "name": _mention,
        "names": _names,
        "entry": _entry,
        "command": _command,
        "script": _program("script"),
        "module": _program("module"),
        "publishes": _topics,
        "subscribes": _subscribes,
        "period": _time("a period", least=1),
        "clock": _clock,
        "latency_least": _time("the least latency"),
        "controls": _flag,
        "guest": _flag,
        "boot": _boot,
        "durable": _topics,
        "directory": _directory,
        "folder": _directory,
        "volatile": _flag,
        "allow": _escapes,
        "environment": _environment,
    },
    needs=(("name", "names"),),
    either=(("name", "names"), ("entry", "command", "script", "module")),
)
FILE = TomlTable(
    TOP,
    {
        "name": _named("a federation"),
        "seed": _seed,
        "until": _time("an end time", least=1),
        "control_latency": _time("the control latency", least=1),
        "on_loss": _policy,
        "link": _one(LINK),
        "links": _many(RULE),
        "faults": _faults,
        "properties": _properties,
        "estop": _one(ESTOP),
        "participants": _many(PARTICIPANT),
        "buffers": _buffers,
        "limits": _one(LIMITS),
        "lcm": _one(LCM),
        "topics": read_topics,
    },
    needs=(("participants",),),
    renamed={"end": "until"},
)
TABLES = (FILE, LINK, RULE, FAULT, PARTICIPANT, CLOCK, LIMITS, ESTOP, LCM, TOPIC)
