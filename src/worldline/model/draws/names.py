"""Names of draws, patterns that match them, and what a draw means in words.

A name is a purpose and what tells its draws apart, from the general to the particular, joined by slashes:
``latency/image/camera/planner/17``. `PURPOSES` lists the parts of each; the last is a number, counted from 0. Signs
that mean something in names and patterns are written as in a URL where they are part of a topic or a participant's
name: ``%2F`` is a slash.

Each part of a pattern may have wildcards (``*``, ``?``, ``[0-9]``), which never reach beyond it. Parts left out at the
end may be anything: ``latency/image`` matches every latency on that topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Final, NamedTuple

from worldline.model.draws.distributions import DrawnValue, format_rate
from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.time import format_time

LATENCY: Final = "latency"
LATENCY_OF_COPY: Final = "latency-of-copy"
LOSS: Final = "loss"
LOSS_AT_SENDER: Final = "loss-at-sender"
DUPLICATION: Final = "duplication"
CORRUPTION: Final = "corruption"
CORRUPTION_OF_COPY: Final = "corruption-of-copy"
CORRUPTED_BIT: Final = "corrupted-bit"
CORRUPTED_BIT_OF_COPY: Final = "corrupted-bit-of-copy"
BOOT: Final = "boot"
CLOCK_OFFSET: Final = "clock-offset"
CLOCK_DRIFT: Final = "clock-drift"
CLOCK_WALK: Final = "clock-walk"
RANDOM: Final = "random"
STREAM: Final = "stream"
SOMETIMES: Final = "sometimes"
TURN: Final = "turn"

PATH_NAMES: Final = ("topic", "sender", "receiver")
_PATH = (*PATH_NAMES, "number")
PURPOSES: Final[dict[str, tuple[str, ...]]] = {
    LATENCY: _PATH,
    LATENCY_OF_COPY: _PATH,
    LOSS: _PATH,
    LOSS_AT_SENDER: ("topic", "sender", "number"),
    DUPLICATION: _PATH,
    CORRUPTION: _PATH,
    CORRUPTION_OF_COPY: _PATH,
    CORRUPTED_BIT: _PATH,
    CORRUPTED_BIT_OF_COPY: _PATH,
    BOOT: ("participant", "number"),
    CLOCK_OFFSET: ("participant", "number"),
    CLOCK_DRIFT: ("participant", "number"),
    CLOCK_WALK: ("participant", "number"),
    RANDOM: ("participant", "number"),
    STREAM: ("participant", "stream", "number"),
    SOMETIMES: ("participant", "branch", "number"),
    TURN: ("participant", "number"),
}
"""What the parts of a name mean after the purpose."""

_BY_RECEIVERS = (CORRUPTION, CORRUPTION_OF_COPY, CORRUPTED_BIT, CORRUPTED_BIT_OF_COPY)
# Which part of a name is the participant on whose side it is drawn; what isn't here, the network draws.
_DRAWN_BY = {
    **{purpose: 1 for purpose, parts in PURPOSES.items() if parts[0] == "participant"},
    **{purpose: 1 + _PATH.index("receiver") for purpose in _BY_RECEIVERS},
}

ANY: Final = "*"
_RESERVED = re.compile(r"[/%*?\[\]]")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")
_WILD = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_WHO = frozenset(("sender", "receiver", "participant"))


def part_text(part: str) -> str:
    """Write one part of a name."""
    if part.isalnum() or not _RESERVED.search(part):
        return part
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", part)


def name_text(parts: Iterable[str]) -> str:
    """Write a name."""
    return "/".join(map(part_text, parts))


def names_in(pattern: str) -> tuple[str, ...] | None:
    """Return what the parts of a pattern name; None if one has a wildcard."""
    if _WILD.search(pattern):
        return None
    return tuple(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), part) for part in pattern.split("/"))


def is_exact(pattern: str) -> bool:
    """Whether a pattern is the whole name of a single draw."""
    purpose, *parts = pattern.split("/")
    return not _WILD.search(pattern) and len(PURPOSES.get(purpose, ())) == len(parts)


class NamePattern:
    """A pattern, ready to be tried on names."""

    __slots__ = ("_choosy", "_length")

    def __init__(self, pattern: str) -> None:
        parts = pattern.split("/")
        self._length = len(parts)
        # A function is often asked for every draw of a run: parts that match anything aren't tried.
        self._choosy = [(place, _compiled(part)) for place, part in enumerate(parts) if part != ANY]

    def matches(self, name: list[str]) -> bool:
        """Whether it matches a name, given as its written parts."""
        if len(name) < self._length:
            return False
        return not self._choosy or all(part.match(name[place]) for place, part in self._choosy)


def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))


def _matching(part: str, names: Iterable[str]) -> list[str]:
    """Return which of some names, written out, one part of a pattern matches."""
    if not _WILD.search(part):
        return [name for name in names if name == part]
    matches = _compiled(part).match
    return [name for name in names if matches(name)]


def purposes_of(pattern: str) -> list[str]:
    """Return the purposes for which a pattern may match draws."""
    purpose, *parts = pattern.split("/")
    return [each for each in _matching(purpose, PURPOSES) if len(PURPOSES[each]) >= len(parts)]


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that no draw of any run matches."""
    purpose, *parts = pattern.split("/")
    meant = _matching(purpose, PURPOSES)
    if not meant:
        advice = nearest(purpose, PURPOSES) or f"draws are for {', '.join(PURPOSES)}"
        raise ConfigurationError(f"draw {pattern}: no draw is for {shown(purpose)}", advice=advice)
    matching = purposes_of(pattern)
    if not matching:
        longest = max(meant, key=lambda each: len(PURPOSES[each]))
        form = "/".join([longest, *map(str.upper, PURPOSES[longest])])
        raise ConfigurationError(
            f"draw {pattern}: it has too many parts", advice=f"write {form}, with %2F for a slash in a name"
        )
    if "" in parts:
        raise ConfigurationError(f"draw {pattern}: a part of it is empty", advice="write * for anything")
    is_number = all(len(PURPOSES[each]) == len(parts) for each in matching)
    if is_number and not _WILD.search(parts[-1]) and not _NUMBER.fullmatch(parts[-1]):
        raise ConfigurationError(f"draw {pattern}: {shown(parts[-1])} isn't a number", advice="count draws from 0")


def check_participants(pattern: str, participants: Iterable[str]) -> None:
    """Refuse a pattern that names a participant which doesn't exist; these are all that there can be."""
    known = [part_text(name) for name in participants]
    matching = purposes_of(pattern)
    for place, part in enumerate(pattern.split("/")[1:]):
        if {PURPOSES[each][place] for each in matching} <= _WHO and not _matching(part, known):
            advice = nearest(part, known) or f"the roster is {', '.join(sorted(known))}"
            raise ConfigurationError(f"draw {pattern}: there is no participant {shown(part)}", advice=advice)


def numbered_message(name: str) -> tuple[tuple[str, ...], int] | None:
    """Return whose message a draw is about, and its number; None if it is about no message.

    Draws about one message have the same; those about corruption count a sender's messages in another way.
    """
    purpose, *parts = names_in(name) or ("",)
    named = PURPOSES.get(purpose, ())
    if "topic" not in named:
        return None
    counted = ("corruption", parts[1], parts[2]) if purpose in _BY_RECEIVERS else (parts[0], parts[1])
    return counted, int(parts[-1])


def renumbered(name: str, number: int) -> str:
    """Return the name of the same draw about another message."""
    return f"{name.rpartition('/')[0]}/{number}"


def drawn_by(name: str) -> str | None:
    """Return the participant on whose side a draw of this name is made; None if the network makes it."""
    names = names_in(name)
    assert names is not None
    place = _DRAWN_BY.get(names[0])
    return None if place is None else names[place]


def concerns(pattern: str, participant: str) -> bool:
    """Whether a pattern may match draws that are made on a participant's side."""
    parts = pattern.split("/")
    own = [part_text(participant)]
    places = [_DRAWN_BY[purpose] for purpose in purposes_of(pattern) if purpose in _DRAWN_BY]
    return any(place >= len(parts) or _matching(parts[place], own) for place in places)


# -- In words: which message gets lost, comes twice, or takes how long; whose clock is wrong.


class MessageFate(NamedTuple):
    """What becomes of a message, the sender's one of this number on a topic, counted from 0."""

    sender: str
    topic: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"message {self.number + 1} of {self.sender} on {self.topic} {self.text}"


def fate_of(name: str, value: DrawnValue) -> MessageFate | None:
    """Return what a draw makes of a message; None if it isn't about one, or nothing is out of the ordinary."""
    purpose, *parts = names_in(name) or ("",)
    if purpose == LOSS_AT_SENDER and value is True:
        topic, sender, number = parts
        return MessageFate(sender, topic, int(number), "reaches no participant")
    takes = "" if isinstance(value, bool | float) else f"takes {format_time(value)}"
    text = {
        (LOSS, True): "doesn't reach",
        (DUPLICATION, True): "comes twice to",
        (LATENCY, value): f"{takes} to",
        (LATENCY_OF_COPY, value): f"comes twice, and the copy {takes} to",
    }.get((purpose, value))
    if text is None:
        return None
    topic, sender, receiver, number = parts
    return MessageFate(sender, topic, int(number), f"{text} {receiver}")


def draw_in_words(name: str, value: DrawnValue) -> str:
    """Say what comes of a draw; an empty text if its name says it all."""
    purpose, *parts = names_in(name) or ("",)
    if isinstance(value, bool | float):
        if purpose in (CORRUPTION, CORRUPTION_OF_COPY) and value is True:
            _, sender, receiver, number = parts
            what = "message" if purpose == CORRUPTION else "the copy of message"
            return f"{what} {int(number) + 1} of all that {sender} sends is corrupted for {receiver}"
        if purpose == SOMETIMES and value is True:
            participant, branch, number = parts
            return f"{participant} takes the branch {branch!r} at its choice {int(number) + 1}"
        return str(fate_of(name, value) or "")
    if purpose == TURN:
        return f"{parts[0]} runs a callback ahead of {value} that were ready before it" if value else ""
    off = f"{format_time(abs(value))} {'slow' if value < 0 else 'fast'}"
    said = {
        BOOT: f"{parts[0]} takes {format_time(value)} to boot",
        CLOCK_OFFSET: f"the clock of {parts[0]} is {off} at first",
        CLOCK_DRIFT: f"the clock of {parts[0]} {'loses' if value < 0 else 'gains'} {format_rate(abs(value))}",
        CLOCK_WALK: f"the rate of the clock of {parts[0]} changes by {format_rate(value)}",
    }.get(purpose)
    return said or str(fate_of(name, value) or "")


def drawn_text(name: str, value: DrawnValue) -> str:
    """Write the value of a draw, as what its name says that it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) or name.startswith(f"{TURN}/"):
        return repr(value)
    return format_rate(value) if name.partition("/")[0] in (CLOCK_DRIFT, CLOCK_WALK) else format_time(value)
