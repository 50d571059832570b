"""What happened on the way from a cause to a symptom: step by step, in both runs, as text and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from worldline.history.causes import Origin, Reason
from worldline.history.deeds import Act, Deed
from worldline.history.parting import Parting
from worldline.history.values import FieldDifference, field_differences, payload_text, payload_texts
from worldline.model.printable import printable
from worldline.model.time import format_time

# What members note, and nobody is sent, by its topic.
_NOTES = {
    "worldline/log": "logs",
    "worldline/meta": "notes an event",
    "worldline/process": "starts or interrupts a process",
    "worldline/record": "records a value",
    "worldline/setting": "notes the setting",
    "worldline/timer": "sets a timer",
}


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

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "at": self.at,
            "member": self.member,
            "what": self.what,
            "a": _deed_json(self.a),
            "b": _deed_json(self.b),
            "fields": [difference.as_json() for difference in self.fields()],
        }


def step_of(parting: Parting) -> Step:
    first = parting.first
    a = parting.a if parting.a is not None and _corresponds(parting.a, first) else None
    b = parting.b if parting.b is not None and _corresponds(parting.b, first) else None
    return Step(first.at, parting.member, _what(first), a, b)


def _corresponds(deed: Deed, first: Deed) -> bool:
    """Whether this can be shown as the other version of the same."""
    return (deed.act, deed.topic, deed.peer) == (first.act, first.topic, first.peer)


def steps_of(chain: list[Reason]) -> Iterator[Step]:
    """Yield what happened on the way: what each sent that the next one received."""
    yield step_of(chain[0].parting)
    for before, reason in pairwise(chain):
        step = step_of(reason.parting)
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
        return f"receives {topic} from {named(deed.peer)}"
    if deed.act is Act.SENDS:
        return _NOTES.get(deed.topic) or f"sends {topic}"
    return "begins" if deed.act is Act.BEGINS else "ends"


def _versions(step: Step) -> str:
    """Say what differs, in a few words."""
    a, b = step.a, step.b
    if a is None or b is None:
        deed = a or b
        text = "" if deed is None or deed.act in (Act.BEGINS, Act.ENDS) else f": {content(deed)}"
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


def content(deed: Deed) -> str:
    return deed.act.name.lower() if deed.act in (Act.BEGINS, Act.ENDS) else payload_text(deed.payload)


def contents(a: Deed, b: Deed) -> tuple[str, str]:
    """Return two versions of the same, as much of them as is around where they differ."""
    is_message = a.act in (Act.SENDS, Act.RECEIVES) and b.act is a.act
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


def table(steps: list[Step]) -> Iterator[str]:
    """Lay steps out in columns."""
    rows = [(format_time(step.at), named(step.member), step.what, _versions(step)) for step in steps]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join((*cells, row[3]))}".rstrip()


def named(name: str) -> str:
    """Return how a member is called. What no member does, such as a fault, is done from outside."""
    return printable(name) or "(from outside)"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(named, names)) or "nobody"


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
