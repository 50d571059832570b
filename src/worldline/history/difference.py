"""What two runs differ in, as a text and as plain values for JSON: who, where, why, and how it went on from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from worldline.history.causes import Causes, Origin, Reason
from worldline.history.parting import Act, Deed, Parting, Partings
from worldline.history.values import FieldDifference, field_differences, payload_text, plain_value
from worldline.model.printable import printable
from worldline.model.time import format_time

SHOWN_MAX = 20
"""How many members are shown, if not all are asked for."""

_FIELDS_MAX = 8
_NOTES = "worldline/"  # Topics of what members note, and nobody is sent.


class Step(NamedTuple):
    """Something that a member does in one run or in both; where both do it, they do it otherwise."""

    at: int
    member: str
    what: str
    a: Deed | None
    b: Deed | None

    def fields(self) -> list[FieldDifference]:
        """Return what differs in the message, if both runs have it."""
        return [] if self.a is None or self.b is None else field_differences(self.a.payload, self.b.payload)


@dataclass
class Difference:
    """What two runs differ in.

    `headers` are facts about the runs that differ; `ends` says of each run how it stopped before its end, if it did.
    """

    partings: Partings
    causes: Causes
    headers: list[FieldDifference] = field(default_factory=list)
    ends: tuple[str | None, str | None] = (None, None)
    same_ends: bool = True
    guess: str = ""
    to: str | None = None
    names: tuple[str, str] = ("A", "B")

    @property
    def is_same(self) -> bool:
        """Whether the same happened in both."""
        return self.partings.is_same and self.same_ends

    @property
    def cause(self) -> Reason | None:
        """The earliest of the differences that follow from no other."""
        return self.causes.reasons[self.causes.first[0]] if self.causes.first else None

    def target(self) -> str | None:
        """Return to whom the chain leads: who was asked for, or the last to part by the first cause."""
        if self.to is not None or self.cause is None:
            return self.to
        symptoms = self.causes.symptoms(self.causes.first[0])
        return symptoms[-1] if symptoms else None

    def chain(self) -> list[Step]:
        """Return, message by message, how the difference came to whom it is asked for."""
        target = self.target()
        return [] if target is None else list(_steps(self.causes.chain(target)))

    # --- As a text ---

    def lines(self, *, show_all: bool = False) -> list[str]:
        """Return the whole as lines of text."""
        return list(self._lines(show_all))

    def _lines(self, show_all: bool) -> Iterator[str]:
        yield from (f"{side}  {printable(name)}" for side, name in zip("AB", self.names, strict=True) if name != side)
        if self.headers:
            yield "the headers differ:"
            yield from (f"  {difference}" for difference in _few(self.headers))
        yield from self._lines_of_those_alone()
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
                yield f"from there to {_named(chain[-1].member)}:"
                yield from _table(chain)
            if len(self.causes.first) > 1:
                yield ""
                yield from self._lines_of_other_causes(show_all)

    def _lines_of_those_alone(self) -> Iterator[str]:
        for side, names in (("A", self.partings.only_a), ("B", self.partings.only_b)):
            if names:
                more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
                yield f"only in {side}: {', '.join(map(_named, names[:SHOWN_MAX]))}{more}"

    def _lines_of_ends(self) -> Iterator[str]:
        until = format_time(self.partings.until)
        for side, end in zip("AB", self.ends, strict=True):
            if end is not None:
                yield f"{side} is {end}"
        if not self.partings.is_same:
            return
        if self.same_ends:
            yield "no difference" if self.ends == (None, None) else f"no difference up to {until}, where both end"
        elif None in self.ends:
            yield f"the same up to {until}, then {'A' if self.ends[1] is None else 'B'} ends"
        else:
            yield f"the same up to {until}, as far as both go"

    def _lines_of_partings(self, show_all: bool) -> Iterator[str]:
        parted = self.partings.parted()
        if parted:
            yield f"first differences, of {_counted(len(parted))}:"
            shown = parted if show_all else parted[:SHOWN_MAX]
            yield from _table([_step(parting) for parting in shown])
            if len(shown) < len(parted):
                yield f"  and {len(parted) - len(shown):,} more"
        for name in self.partings.unseen:
            yield f"  {_named(name)}: the hash of its history differs, though nothing that is recorded does"
        if self.partings.lost_otherwise:
            yield f"  messages that were lost otherwise, which nobody could notice: {self.partings.lost_otherwise:,}"
        same = len(self.partings.members) - len(parted) - len(self.partings.unseen)
        yield f"without a difference: {_counted(same)}"

    def _lines_of_cause(self, cause: Reason) -> Iterator[str]:
        step = _step(cause.parting)
        yield f"first cause: {_named(step.member)} at {format_time(step.at)}, {step.what}"
        for side, deed in (("A", step.a), ("B", step.b)):
            if deed is None:
                yield f"  {side}: nothing like it"
            else:
                when = "" if deed.at == step.at else f"at {format_time(deed.at)}: "
                yield f"  {side}: {when}{_content(deed)}"
        yield from (f"  {difference}" for difference in _few(step.fields()))
        if cause.origin in (Origin.NETWORK, Origin.LISTENING):
            yield f"  {_elsewhere(cause.parting)}"
        if self.guess:
            yield f"  {self.guess}"

    def _lines_of_other_causes(self, show_all: bool) -> Iterator[str]:
        others = self.causes.first[1:]
        yield f"other causes: {len(others)}"
        shown = others if show_all else others[:SHOWN_MAX]
        yield from _table([_step(self.causes.reasons[name].parting) for name in shown])
        if len(shown) < len(others):
            yield f"  and {len(others) - len(shown):,} more"

    # --- As plain values ---

    def as_json(self) -> dict[str, Any]:
        """Return the whole as plain values."""
        partings = self.partings
        return {
            "same": self.is_same,
            "until": None if not self.ends[0] and not self.ends[1] else partings.until,
            "ends": list(self.ends),
            "headers": [_field_json(difference) for difference in self.headers],
            "only_a": partings.only_a,
            "only_b": partings.only_b,
            "members": len(partings.members),
            "differences": [_step_json(_step(parting)) for parting in partings.parted()],
            "unseen": partings.unseen,
            "lost_otherwise": partings.lost_otherwise,
            "causes": [
                {
                    "origin": self.causes.reasons[name].origin.value,
                    **_step_json(_step(self.causes.reasons[name].parting)),
                }
                for name in self.causes.first
            ],
            "guess": self.guess,
            "to": self.target(),
            "chain": [_step_json(step) for step in self.chain()],
        }


def _step(parting: Parting) -> Step:
    first = parting.first
    a = parting.a if parting.a is not None and _corresponds(parting.a, first) else None
    b = parting.b if parting.b is not None and _corresponds(parting.b, first) else None
    return Step(first.at, parting.member, _what(first), a, b)


def _corresponds(deed: Deed, first: Deed) -> bool:
    """Whether this can be shown as the other version of the same."""
    return (deed.act, deed.topic, deed.peer) == (first.act, first.topic, first.peer)


def _steps(chain: list[Reason]) -> Iterator[Step]:
    """Yield what happened on the way: what each sent that the next one received."""
    yield _step(chain[0].parting)
    for before, reason in pairwise(chain):
        step = _step(reason.parting)
        first = reason.parting.first
        if reason.origin is Origin.SENDER and not _is_this(before.parting.first, first):
            deeds = [
                None if deed is None else deed._replace(at=deed.sent, act=Act.SENDS, peer="")
                for deed in (step.a, step.b)
            ]
            yield Step(first.sent, before.parting.member, f"sends {printable(first.topic)}", deeds[0], deeds[1])
        yield step


def _is_this(deed: Deed, received: Deed) -> bool:
    """Whether what was received is what somebody had done."""
    return deed.act is Act.SENDS and (deed.at, deed.topic) == (received.sent, received.topic)


def _what(deed: Deed) -> str:
    topic = printable(deed.topic)
    if deed.act is Act.RECEIVES:
        return f"receives {topic} from {_named(deed.peer)}"
    if deed.act is Act.SENDS:
        return f"{'notes' if deed.topic.startswith(_NOTES) else 'sends'} {topic}"
    return "begins" if deed.act is Act.BEGINS else "ends"


def _versions(step: Step) -> str:
    """Say what differs, in a few words."""
    a, b = step.a, step.b
    if a is None or b is None:
        deed = a or b
        text = "" if deed is None or deed.act in (Act.BEGINS, Act.ENDS) else f": {_content(deed)}"
        return f"only in {'A' if b is None else 'B'}{text}"
    times = "" if a.at == b.at else f"at {format_time(a.at)} in A, at {format_time(b.at)} in B"
    if a.reordered and b.reordered:
        return f"in another order: {_content(a)} → {_content(b)}"
    fields = step.fields()
    if not fields:
        return times or (f"to {_names(a.to)} → to {_names(b.to)}" if a.to != b.to else "")
    more = f", and {len(fields) - 2} more" if len(fields) > 2 else ""
    changed = "; ".join(map(str, fields[:2])) + more
    return f"{times}: {changed}" if times else changed


def _content(deed: Deed) -> str:
    return deed.act.name.lower() if deed.act in (Act.BEGINS, Act.ENDS) else payload_text(deed.payload)


def _elsewhere(parting: Parting) -> str:
    """Say what became of a message in the run where it isn't received then."""
    other = "A" if parting.is_only_in_b else "B"
    first = parting.first
    became = f"doesn't concern {_named(parting.member)}"
    if first.elsewhere:
        at, _, _, lost = first.elsewhere[0]
        became = f"arrives at {format_time(at)}" if lost is None else f"is lost: {printable(lost)}"
    return f"{_named(first.peer)} sent the same at {format_time(first.sent)}, but in {other} it {became}"


def _table(steps: list[Step]) -> Iterator[str]:
    """Lay steps out in columns."""
    rows = [(format_time(step.at), _named(step.member), step.what, _versions(step)) for step in steps]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join((*cells, row[3]))}".rstrip()


def _few(differences: list[FieldDifference]) -> Iterator[str]:
    yield from map(str, differences[:_FIELDS_MAX])
    if len(differences) > _FIELDS_MAX:
        yield f"and {len(differences) - _FIELDS_MAX:,} more"


def _counted(count: int) -> str:
    return f"{count:,} member{'' if count == 1 else 's'}"


def _named(name: str) -> str:
    return printable(name) or "(outside)"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(_named, names)) or "nobody"


def _field_json(difference: FieldDifference) -> dict[str, Any]:
    found = {"path": difference.path, "a": plain_value(difference.a), "b": plain_value(difference.b)}
    return found if difference.steps is None else {**found, "last_places": difference.steps}


def _step_json(step: Step) -> dict[str, Any]:
    return {
        "at": step.at,
        "member": step.member,
        "what": step.what,
        "a": _deed_json(step.a),
        "b": _deed_json(step.b),
        "fields": [_field_json(difference) for difference in step.fields()],
    }


def _deed_json(deed: Deed | None) -> dict[str, Any] | None:
    if deed is None:
        return None
    found: dict[str, Any] = {"at": deed.at, "act": deed.act.name.lower()}
    if deed.act in (Act.RECEIVES, Act.SENDS):
        found |= {"topic": deed.topic, "sent": deed.sent, "payload": payload_text(deed.payload)}
    if deed.act is Act.RECEIVES:
        found["sender"] = deed.peer
    if deed.reordered:
        found["reordered"] = True
    return found
