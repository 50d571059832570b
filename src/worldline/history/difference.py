"""What two runs differ in, as a text and as plain values for JSON: who, where, why, and how it went on from there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from worldline.history.account import NOTES, ActionKind, MemberAction, kind_of_note, named
from worldline.history.fields import (
    FieldDifference,
    field_differences,
    is_missing,
    is_reordered,
    payload_text,
    payload_texts,
    value_text,
)
from worldline.history.observer import OUTSIDE
from worldline.history.parting import Causes, Origin, Parting, Partings, Reason
from worldline.model.lifecycle import ESTOP_LINE, FAULT_LOG
from worldline.model.payload import from_json
from worldline.model.text import counted, printable
from worldline.model.time import FOREVER, format_time

SHOWN_MAX = 20
"""How many members are shown, if not all are asked for."""

_FIELDS_MAX = 8
_SETTING = "settings."
_CODE = "code."  # In the paths of differences between headers, before the names of files.
# Fields of headers that are times.
_TIMES = ("end", "start", "latency", "minimum", "maximum", "mean", "deviation", "control_latency")


# What happened on the way from a cause to a symptom: step by step, in both runs.


class Step(NamedTuple):
    """Something that a member does in one run or in both; where both do it, they do it otherwise."""

    at: int
    member: str
    what: str
    a: MemberAction | None
    b: MemberAction | None

    def fields(self) -> list[FieldDifference]:
        """Return what differs in the message, if both runs have it."""
        return [] if self.a is None or self.b is None else field_differences(self.a.payload, self.b.payload)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "at": self.at,
            "member": self.member,
            "what": self.what,
            "a": _action_json(self.a),
            "b": _action_json(self.b),
            "fields": [difference.as_json() for difference in self.fields()],
        }


def step_of(parting: Parting) -> Step:
    first = parting.first
    a = parting.a if parting.a is not None and _corresponds(parting.a, first) else None
    b = parting.b if parting.b is not None and _corresponds(parting.b, first) else None
    return Step(first.at, parting.member, _what(first), a, b)


def _corresponds(action: MemberAction, first: MemberAction) -> bool:
    """Whether this can be shown as the other version of the same."""
    return (action.act, action.topic, action.peer) == (first.act, first.topic, first.peer)


def steps_of(chain: list[Reason]) -> Iterator[Step]:
    """Yield what happened on the way: what each sent that the next one received."""
    yield step_of(chain[0].parting)
    for before, reason in pairwise(chain):
        step = step_of(reason.parting)
        first = reason.parting.first
        if reason.origin is Origin.SENDER and not _is_this(before.parting.first, first):
            actions = [
                None if action is None else action._replace(at=action.sent, act=ActionKind.SENDS, peer="")
                for action in (step.a, step.b)
            ]
            yield Step(first.sent, before.parting.member, f"sends {printable(first.topic)}", actions[0], actions[1])
        yield step


def _is_this(action: MemberAction, received: MemberAction) -> bool:
    """Whether what was received is what another member had done."""
    return action.act is ActionKind.SENDS and (action.at, action.topic) == (received.sent, received.topic)


def _what(action: MemberAction) -> str:
    topic = printable(action.topic)
    if action.act is ActionKind.RECEIVES:
        return f"receives {topic} from {named(action.peer)}"
    if action.act is ActionKind.SENDS:
        return NOTES.get(action.topic) or f"sends {topic}"
    return "begins" if action.act is ActionKind.BEGINS else "ends"


def _changes(step: Step) -> str:
    """Say what differs, in a few words."""
    a, b = step.a, step.b
    if a is None or b is None:
        action = a or b
        text = "" if action is None or action.act in (ActionKind.BEGINS, ActionKind.ENDS) else f": {content(action)}"
        return f"only in {'A' if b is None else 'B'}{text}"
    times = "" if a.at == b.at else f"at {format_time(a.at)} in A, at {format_time(b.at)} in B"
    if a.reordered and b.reordered:
        return f"in another order: {' → '.join(contents(a, b))}"
    fields = step.fields()
    if not fields:
        return times or (f"to {_names(a.to)} → to {_names(b.to)}" if a.to != b.to else "")
    more = f", and {len(fields) - 2} more" if len(fields) > 2 else ""
    changed = "; ".join(map(str, fields[:2])) + more
    return f"{times}: {changed}" if times else changed


def content(action: MemberAction) -> str:
    return (
        action.act.name.lower() if action.act in (ActionKind.BEGINS, ActionKind.ENDS) else payload_text(action.payload)
    )


def contents(a: MemberAction, b: MemberAction) -> tuple[str, str]:
    """Return two versions of the same, as much of them as is around where they differ."""
    is_message = a.act in (ActionKind.SENDS, ActionKind.RECEIVES) and b.act is a.act
    return payload_texts(a.payload, b.payload) if is_message else (content(a), content(b))


def elsewhere(parting: Parting) -> str:
    """Say what became of a message in the run where it isn't received then."""
    other = "A" if parting.is_only_in_b else "B"
    first = parting.first
    became = f"doesn't concern {named(parting.member)}"
    if first.elsewhere:
        at, _, _, lost = first.elsewhere[0]
        became = f"arrives at {format_time(at)}" if lost is None else f"is lost: {printable(lost)}"
    return f"{named(first.peer)} sent the same at {format_time(first.sent)}, but in {other} it {became}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(named, names)) or "no receiver"


def _action_json(action: MemberAction | None) -> dict[str, Any] | None:
    if action is None:
        return None
    found: dict[str, Any] = {"at": action.at, "act": action.act.name.lower()}
    if action.act in (ActionKind.RECEIVES, ActionKind.SENDS):
        found |= {"topic": action.topic, "sent": action.sent, "payload": payload_text(action.payload)}
    if action.act is ActionKind.RECEIVES:
        found["sender"] = action.peer
    if action.reordered:
        found["reordered"] = True
    return found


def table(steps: list[Step], most: int | None = None) -> Iterator[str]:
    """Lay steps out in columns, so many at most."""
    rows = [(format_time(step.at), named(step.member), step.what, _changes(step)) for step in steps[:most]]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join((*cells, row[3]))}".rstrip()
    yield from _rest(len(steps), most)


def _rest(count: int, most: int | None) -> Iterator[str]:
    """Say how many more there are than are shown."""
    if most is not None and count > most:
        yield f"  and {count - most:,} more"


@dataclass
class Difference:
    """What two runs differ in.

    `headers` are facts about the runs that differ; `ends` says of each run how it stopped before its end, if it did;
    `cut_off`, of which of them that is because the file is.
    `draws` are draws of links that both made, and that a table replaced, in one of them or both: the name, and the
    values in A and B, which differ; `draws_unlisted` is how many more a function replaced, by values not known here.
    `unseen_before` are those from whom the first cause may have received what differs, though that isn't recorded.
    """

    partings: Partings
    causes: Causes
    headers: list[FieldDifference] = field(default_factory=list)
    ends: tuple[str | None, str | None] = (None, None)
    same_ends: bool = True
    cut_off: tuple[bool, ...] = (False, False)
    unseen_before: list[str] = field(default_factory=list)
    guess: str = ""
    to: str | None = None
    names: tuple[str, str] = ("A", "B")
    draws: list[tuple[str, str, str]] = field(default_factory=list)
    draws_unlisted: int = 0

    @property
    def is_same(self) -> bool:
        """Whether the same happened in both."""
        return self.partings.is_same and self.same_ends

    @property
    def are_strangers(self) -> bool:
        """Whether no member of one run takes part in the other; then there is nothing to be compared."""
        partings = self.partings
        return bool(any(partings.only_a) and any(partings.only_b) and not any(partings.members))

    @property
    def cause(self) -> Reason | None:
        """The earliest of the differences that follow from no other."""
        return self.causes.reasons[self.causes.first[0]] if self.causes.first else None

    def target(self) -> str | None:
        """Return to whom the chain leads: who was asked for, or the last to part by the first cause."""
        if self.is_same:
            return None
        if self.to is not None or self.cause is None:
            return self.to
        symptoms = self.causes.symptoms(self.causes.first[0])
        return symptoms[-1] if symptoms else None

    def chain(self) -> list[Step]:
        """Return, message by message, how the difference came to whom it is asked for; refuse one without any."""
        target = self.target()
        if target is None or target in (*self.partings.unseen, *self.partings.renumbered):
            return []
        return list(steps_of(self.causes.chain(target)))

    # --- As a text ---

    def lines(self, *, show_all: bool = False) -> list[str]:
        """Return the whole as lines of text."""
        return list(self._lines(show_all))

    def _lines(self, show_all: bool) -> Iterator[str]:
        yield from (f"{side}  {printable(name)}" for side, name in zip("AB", self.names, strict=True) if name != side)
        if self.headers:
            yield "the headers differ:"
            yield from _few(self.headers, _header_text)
        if self.draws:
            yield f"draws with other values: {len(self.draws):,}"
            yield from (f"  {printable(name)}: {a} → {b}" for name, a, b in self.draws[:_FIELDS_MAX])
            yield from _rest(len(self.draws), _FIELDS_MAX)
        if self.draws_unlisted:
            yield f"draws that a function replaced, whose values aren't listed: {self.draws_unlisted:,}"
        yield from self._lines_of_those_alone()
        if self.are_strangers:
            yield "no member takes part in both runs: they are of different models, or all have other names"
            return
        yield from self._lines_of_ends()
        if self.partings.is_same:
            return
        yield from self._lines_of_partings(show_all)
        cause = self.cause
        if cause is not None:
            yield ""
            yield from self._lines_of_cause(cause)
            chain = self.chain()
            if len(chain) > 1:
                yield ""
                yield f"from there to {named(chain[-1].member)}:"
                yield from table(chain)
            if len(self.causes.first) > 1:
                yield ""
                yield from self._lines_of_other_causes(show_all)

    def _lines_of_those_alone(self) -> Iterator[str]:
        for side, names in (("A", self.partings.only_a), ("B", self.partings.only_b)):
            if names:
                yield f"only in {side}: {_shortened(names)}"

    def _lines_of_ends(self) -> Iterator[str]:
        until = format_time(self.partings.until)
        for side, end in zip("AB", self.ends, strict=True):
            if end is not None:
                yield f"{side} is {end}"
        if not self.partings.is_same:
            return
        if self.partings.until == 0 and None not in self.ends:
            yield "nothing was recorded in either that could be compared"
        elif self.same_ends:
            yield "no difference" if self.ends == (None, None) else f"no difference up to {until}, where both end"
        elif None in self.ends:
            yield f"the same up to {until}, then {'A' if self.ends[1] is None else 'B'} ends"
        else:
            yield f"the same up to {until}, as far as both go"

    def _lines_of_partings(self, show_all: bool) -> Iterator[str]:
        parted = self.partings.parted()
        if parted:
            yield f"first differences, of {counted(len(parted), 'member')}:"
            yield from table([step_of(parting) for parting in parted], None if show_all else SHOWN_MAX)
        if self.partings.unseen:
            names = _shortened(self.partings.unseen)
            yield f"the hashes of histories differ, though nothing that is recorded does: {names}"
        if self.partings.renumbered:
            names = _shortened(self.partings.renumbered)
            yield f"only the numbers that senders gave to messages differ: {names}"
        if self.partings.lost_otherwise:
            yield f"messages that were lost otherwise, which no member could notice: {self.partings.lost_otherwise:,}"
        unseen = (*self.partings.unseen, *self.partings.renumbered)
        differing = {OUTSIDE, *unseen, *(parting.member for parting in parted)}
        same = sum(name not in differing for name in self.partings.members)
        yield f"without a difference: {counted(same, 'member')}"

    def cause_lines(self) -> list[str]:
        """Return the first cause as lines of text, if there is one."""
        return [] if self.cause is None else list(self._lines_of_cause(self.cause))

    def _lines_of_cause(self, cause: Reason) -> Iterator[str]:
        step = step_of(cause.parting)
        if self.unseen_before:
            whose = f"{_shortened(self.unseen_before)}, in what isn't recorded"
            yield f"first cause, perhaps: {whose}; {named(step.member)} had received from there"
        which = "that is recorded" if self.unseen_before else "cause"
        yield f"first {which}: {named(step.member)} at {format_time(step.at)}, {step.what}"
        shown = _versions(step)
        for side, action, text in zip("AB", (step.a, step.b), shown, strict=True):
            when = "" if action is None or action.at == step.at else f"at {format_time(action.at)}: "
            yield f"  {side}: {when}{text}"
        yield from _few(step.fields())
        if cause.origin in (Origin.NETWORK, Origin.LISTENING):
            yield f"  {elsewhere(cause.parting)}"
        if self.guess:
            yield f"  {self.guess}"

    def _lines_of_other_causes(self, show_all: bool) -> Iterator[str]:
        others = self.causes.first[1:]
        yield f"other causes: {len(others)}"
        steps = [step_of(self.causes.reasons[name].parting) for name in others]
        yield from table(steps, None if show_all else SHOWN_MAX)
        for step in steps[: None if show_all else SHOWN_MAX]:
            arrival, sender = self.partings.renumbers.get(step.member, (FOREVER, ""))
            if arrival <= step.at:
                whose = f"{named(step.member)} had received messages with other numbers from {named(sender)}"
                yield f"  {whose}: perhaps that is why"

    # --- As plain values ---

    def as_json(self) -> dict[str, Any]:
        """Return the whole as plain values."""
        partings = self.partings
        return {
            "same": self.is_same,
            "until": None if not self.ends[0] and not self.ends[1] else partings.until,
            "ends": list(self.ends),
            "headers": [difference.as_json() for difference in self.headers],
            "draws": [{"name": name, "a": a, "b": b} for name, a, b in self.draws],
            "draws_unlisted": self.draws_unlisted,
            "only_a": partings.only_a,
            "only_b": partings.only_b,
            "members": len(partings.members),
            "differences": [step_of(parting).as_json() for parting in partings.parted()],
            "unseen": partings.unseen,
            "renumbered": partings.renumbered,
            "lost_otherwise": partings.lost_otherwise,
            "causes": [
                {
                    "origin": self.causes.reasons[name].origin.value,
                    **step_of(self.causes.reasons[name].parting).as_json(),
                }
                for name in self.causes.first
            ],
            "unseen_before": self.unseen_before,
            "guess": self.guess,
            "to": self.target(),
            "chain": [step.as_json() for step in self.chain()],
        }


def _versions(step: Step) -> tuple[str, str]:
    if step.a is not None and step.b is not None:
        return contents(step.a, step.b)
    a, b = ("nothing like it" if action is None else content(action) for action in (step.a, step.b))
    return a, b


def _header_text(difference: FieldDifference) -> str:
    """Say what differs in two headers, times as times."""
    if difference.path == "federation":  # That is only what the field is called.
        difference = difference._replace(path="name")
    if difference.path.startswith(_CODE):  # Two hashes say nothing more than that they differ.
        file = difference.path.removeprefix(_CODE)
        alone = "A" if isinstance(difference.a, str) else "B"
        both = isinstance(difference.a, str) and isinstance(difference.b, str)
        return f"code: {file} was changed" if both else f"code: {file} is part of {alone} only"
    if difference.path.startswith(_SETTING):  # One that wasn't given has its default, which a recording doesn't know.
        a, b = ("its default" if is_missing(value) else value_text(value) for value in (difference.a, difference.b))
        return f"{difference.path}: {a} → {b}"
    if difference.path.rpartition(".")[2] not in _TIMES:
        return str(difference)
    a, b = (
        format_time(value) if isinstance(value, int) else "none" if value is None else value_text(value)
        for value in (difference.a, difference.b)
    )
    return f"{difference.path}: {a} → {b}"


def _few(
    differences: list[FieldDifference], text_of: Callable[[FieldDifference], str] = FieldDifference.__str__
) -> Iterator[str]:
    yield from (f"  {text_of(each)}" for each in differences[:_FIELDS_MAX])
    yield from _rest(len(differences), _FIELDS_MAX)


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(map(named, names[:SHOWN_MAX])) + more


# Guesses of what kind a cause is. A guess is told as one: what was sent doesn't say why.

LAST_PLACES_MAX = 4096
"""Floats that lie closer than this, in units in the last place, differ by rounding."""

_LATER_MIN = 4  # With fewer messages there is no telling how it goes on.
_ADDRESS = re.compile(rb"0x([0-9a-f]{8,14})\b|\b(\d{14,15})\b")
_DATES = (1.5e9, 2.2e9)  # The years 2017 to 2039, in seconds.
_MACHINE = ("python", "platform", "float_fingerprint", "byte_order", "version", "libraries")

Later = Sequence[tuple[bytes, bytes]]
"""What the member sent from there on, on the same topic: in A, in B."""


def guess(reason: Reason, headers: Collection[str], later: Later = ()) -> str:
    """Say what may be behind a cause. `headers` are the fields of the two headers that differ."""
    if reason.origin is Origin.NETWORK:
        if "network" in headers:
            return "the networks of the two plans differ"
        if "seed" in headers:
            return "the seeds differ, and the network draws from them"
        if "draws" in headers:
            return "draws of the network were replaced"
        return "the network did otherwise with the same message: perhaps another version, or another state of the path"
    if reason.origin is Origin.LISTENING:
        return "sent equally in both, but it didn't listen: perhaps it subscribed or left at another time"
    if reason.origin is Origin.PRESENCE:
        return "it takes part in one of the runs only"
    if reason.origin is Origin.END:
        return "one of the runs ends earlier"
    return _guess_of_its_own(reason.parting, headers, later)


def _guess_of_its_own(parting: Parting, headers: Collection[str], later: Later) -> str:
    first, a, b = parting.first, parting.a, parting.b
    if first.reordered:
        return "the same messages in another order: perhaps the order of a set, of threads, or of arrival"
    fault = _guess_of_faults(parting)
    if fault:
        return fault
    if first.act is not ActionKind.SENDS:
        return f"it {'begins' if first.act is ActionKind.BEGINS else 'ends'} at another time"
    if a is None or b is None or (a.act, a.topic) != (b.act, b.topic):
        return _otherwise(headers, f"only {'A' if first is a else 'B'} does this")
    message = "" if a.topic in NOTES else " message"
    if a.payload == b.payload:
        text = f"the same{message} at another time" if a.at != b.at else "the same, to another member"
        return _otherwise(headers, text)
    if a.at != b.at:
        return _otherwise(headers, f"another{message or ' one'} at another time")
    if is_reordered(a.payload, b.payload):
        return "the same values in another order: perhaps the order of a set, of threads, or of arrival"
    if _addresses(a.payload) ^ _addresses(b.payload):
        return "perhaps the address of an object, from id() or a repr: it is another one in every process"
    return _guess_of_values(field_differences(a.payload, b.payload), headers, later)


def _guess_of_faults(parting: Parting) -> str:
    """Say which fault was noted at this very moment, in one run only."""
    told = [
        f"only {side} has the fault {text.removeprefix(FAULT_LOG)}"
        for side, action in (("A", parting.a), ("B", parting.b))
        if action is not None and action.at == parting.at and (text := _fault_line(action))
    ]
    return "; ".join(told)


def _fault_line(action: MemberAction) -> str:
    """Return the line of a log that tells of a fault, if it is one: a program's own never is."""
    if kind_of_note(action.topic, action.payload) in ("", ESTOP_LINE):
        return ""
    return str(from_json(action.payload).get("text", ""))


def _guess_of_values(fields: list[FieldDifference], headers: Collection[str], later: Later) -> str:
    if all(field.steps is not None and field.steps <= LAST_PLACES_MAX for field in fields):
        if "float_fingerprint" in headers:
            return "floats in their last places: the two machines compute some floats differently"
        return "floats in their last places: perhaps a sum in another order, or another library"
    if any(_is_date(field.a) and _is_date(field.b) for field in fields):
        return "perhaps the wall clock: these numbers look like dates"
    return _otherwise(headers, "" if "seed" in headers else _guess_of_what_follows(fields[0].path, later))


def _otherwise(headers: Collection[str], text: str) -> str:
    machine = [name for name in _MACHINE if name in headers]
    if "seed" in headers:
        also = "the seeds differ, perhaps that is why"
    elif machine:
        also = f"perhaps the environment: the headers differ in {', '.join(machine)}"
    else:
        return text
    return f"{text}; {also}" if text else also


def _guess_of_what_follows(path: str, later: Later) -> str:
    """Look at how the messages go on that the member sends on this topic, and one field in them."""
    following = later[1:]
    same = sum(a == b for a, b in following)
    if len(following) < _LATER_MIN:
        return "perhaps code, a parameter or a draw"
    if 4 * same >= 3 * len(following):
        return f"of the next {len(following)} on this topic, {same} are the same in both"
    apart = [pair for pair in (_numbers_at(path, *each) for each in later) if pair is not None]
    if len(apart) < _LATER_MIN:
        return "perhaps code, a parameter or a draw"
    up = sum(b > a for a, b in apart)
    if 4 * min(up, len(apart) - up) >= len(apart):
        return "from here on some values are higher in B, and some lower"  # Draws or a gain: that isn't recorded.
    return (
        f"from here on the values are {'higher' if 2 * up > len(apart) else 'lower'} in B:"
        " perhaps a constant in the code, or a parameter"
    )


def _numbers_at(path: str, a: bytes, b: bytes) -> tuple[float, float] | None:
    """Return the numbers that stand in one place of two payloads, if they are two, and differ."""
    found = {field.path: field for field in field_differences(a, b)}.get(path)
    return (found.a, found.b) if found is not None and _is_number(found.a) and _is_number(found.b) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _addresses(payload: bytes) -> set[int]:
    """Return the numbers that look like places in memory: those of objects are multiples of eight."""
    found = (int(in_hex or decimal, 16 if in_hex else 10) for in_hex, decimal in _ADDRESS.findall(payload))
    return {each for each in found if each % 8 == 0}


def _is_date(value: Any) -> bool:
    return _is_number(value) and any(_DATES[0] <= value / unit <= _DATES[1] for unit in (1, 1e3, 1e6, 1e9))
