"""What happened on the way from a cause to a symptom: step by step, in both runs, as text and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from worldline.history.diff.account import ActionKind, MemberAction
from worldline.history.diff.parting import Origin, Parting, Reason
from worldline.history.diff.values import FieldDifference, field_differences, payload_text, payload_texts
from worldline.model.text import printable
from worldline.model.time import format_time

NOTES = {  # What members note, and nobody is sent, by its topic.
    "worldline/log": "logs",
    "worldline/meta": "notes an event",
    "worldline/process": "resumes or interrupts a process",
    "worldline/record": "records a value",
    "worldline/setting": "notes the setting",
    "worldline/timer": "sets a timer",
}


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
            "a": _deed_json(self.a),
            "b": _deed_json(self.b),
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
    """Whether what was received is what somebody had done."""
    return action.act is ActionKind.SENDS and (action.at, action.topic) == (received.sent, received.topic)


def _what(action: MemberAction) -> str:
    topic = printable(action.topic)
    if action.act is ActionKind.RECEIVES:
        return f"receives {topic} from {named(action.peer)}"
    if action.act is ActionKind.SENDS:
        return NOTES.get(action.topic) or f"sends {topic}"
    return "begins" if action.act is ActionKind.BEGINS else "ends"


def _versions(step: Step) -> str:
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


def _deed_json(action: MemberAction | None) -> dict[str, Any] | None:
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
