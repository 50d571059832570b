"""Guesses of what kind a cause is. A guess is told as one: what was sent doesn't say why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from worldline.history.diff.account import ActionKind, MemberAction
from worldline.history.diff.causes import Origin, Reason
from worldline.history.diff.parting import Parting
from worldline.history.diff.steps import NOTES
from worldline.history.diff.values import FieldDifference, field_differences, is_reordered
from worldline.history.observer import LOG
from worldline.model.lifecycle import FAULT_LINE, FAULT_LOG
from worldline.model.payload import from_json

LAST_PLACES_MAX = 4096
"""Floats that lie closer than this, in units in the last place, differ by rounding."""

_LATER_MIN = 4  # With fewer messages there is no telling how it goes on.
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
        return "sent alike, but it didn't listen: perhaps it subscribed or left at another time"
    if reason.origin is Origin.PRESENCE:
        return "it takes part in one of the runs only"
    if reason.origin is Origin.END:
        return "one of the runs ends earlier"
    return _guess_of_its_own(reason.parting, headers, later)


def _guess_of_its_own(parting: Parting, headers: Collection[str], later: Later) -> str:
    first, a, b = parting.first, parting.a, parting.b
    if first.reordered:
        return "the same messages in another order: perhaps the order of a set, of threads, or of whoever was first"
    fault = _guess_of_faults(parting)
    if fault:
        return fault
    if first.act is not ActionKind.SENDS:
        return f"it {'begins' if first.act is ActionKind.BEGINS else 'ends'} at another time"
    if a is None or b is None or (a.act, a.topic) != (b.act, b.topic):
        return _otherwise(headers, f"only {'A' if first is a else 'B'} does this")
    message = "" if a.topic in NOTES else " message"
    if a.payload == b.payload:
        text = f"the same{message} at another time" if a.at != b.at else "the same, to somebody else"
        return _otherwise(headers, text)
    if a.at != b.at:
        return _otherwise(headers, f"another{message or ' one'} at another time")
    if is_reordered(a.payload, b.payload):
        return "the same values in another order: perhaps the order of a set, of threads, or of whoever was first"
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
    told = from_json(action.payload) if action.topic == LOG else None
    return str(told.get("text", "")) if isinstance(told, dict) and told.get("kind") == FAULT_LINE else ""


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


def _is_date(value: Any) -> bool:
    return _is_number(value) and any(_DATES[0] <= value / unit <= _DATES[1] for unit in (1, 1e3, 1e6, 1e9))
