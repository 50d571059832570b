"""The records of a run that was traced: what happened to whom, where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json

from worldline.history.plain import encoded
from worldline.kernel.packing import PackedCopy
from worldline.spacetime.agent import kind_of
from worldline.spacetime.functions import Closure, name_of

Coordinates = tuple[float, ...]

_ATTACH = "attach"


class AgentRecord(Struct, frozen=True, omit_defaults=True):
    """Something that happened to an agent, at a point. Its number counts the agent's records.

    ========  ===========================================================
    kind      what
    ========  ===========================================================
    born      it began, as a `what`, with a velocity; `peer` made it
    sent      it sent `what` to `peer` on a channel, as number `order`; `given` are
              its arguments, `content` a hash of what can't be shown of it
    absorbed  it absorbed `what` from `peer`, which was emitted at `emitted`
    timer     it woke itself up, to do `what`
    turned    it has another velocity
    jumped    it has come from `emitted`
    crossed   it reached a boundary, `what`
    created   a channel to `peer` was created
    attached  its end of a channel from `peer` was attached
    held      it has got the end of a channel to `peer`
    closed    it closed a channel to `peer`
    died      it ended
    ended     the run was over
    log       it noted a text, `what`
    shown     it is shown as `what` from now on
    waits     it can't go on: it waits for `peer`, for ever
    failed    it can't go on: `what` says why
    ========  ===========================================================
    """

    agent: str
    number: int
    kind: str
    at: Coordinates
    local_time: float
    channel: str = ""
    order: int = -1
    what: str = ""
    peer: str = ""
    emitted: Coordinates | None = None
    velocity: Coordinates | None = None
    given: Any = None
    content: str = ""


def records_of(trace: Iterable[tuple[Any, ...]]) -> list[AgentRecord]:
    """Make records of what a core has kept."""
    return [
        AgentRecord(body.name, number, kind, tuple(point), local_time, **_facts(kind, name, facts))
        for body, number, kind, point, local_time, name, facts in trace
    ]


def in_order(records: Iterable[AgentRecord]) -> list[AgentRecord]:
    """Sort records by lab time, agent and number."""
    return sorted(records, key=lambda record: (record.at[0], record.agent, record.number))


def _facts(kind: str, name: str, facts: Any) -> dict[str, Any]:
    if kind == "sent":
        order, item, peer, function, arguments, content, ends = facts
        carried = _carried(function, arguments, content, ends) if item == 0 else {}
        return {"channel": name, "order": order, "peer": peer, "what": _what(item, function), **carried}
    if kind == "absorbed":
        order, item, peer, emitted, function = facts
        return {"channel": name, "order": order, "peer": peer, "what": _what(item, function), "emitted": tuple(emitted)}
    if kind == "timer":
        return {"channel": name, "order": facts[0], "what": _said(facts[1])}
    if kind == "born":
        velocity, agent = facts
        return {"peer": name, "what": kind_of(agent), "velocity": tuple(velocity)}
    if kind == "turned":
        return {"velocity": tuple(facts)}
    if kind == "jumped":
        return {"emitted": tuple(facts)}
    if kind in ("crossed", "log", "shown", "failed"):
        return {"what": name or facts or ""}
    if kind in ("created", "attached", "held", "closed"):
        return {"channel": name, "peer": facts}
    return {}


def _what(item: int, function: Any) -> str:
    return _said(function) if item == 0 else _ATTACH


def _carried(function: Any, arguments: Any, content: int, ends: Any) -> dict[str, Any]:
    """Return what a function takes along, as JSON has it.

    References can't be looked at on their way, since whoever opens one has it; nor can what a closure has captured. A
    hash stands for these.
    """
    if ends is not None:
        return {"content": f"{content:016x}"}
    given = json.decode(encoded(arguments.open() if isinstance(arguments, PackedCopy) else arguments))
    hashed = {"content": f"{content:016x}"} if isinstance(function, Closure) else {}
    return {"given": given, **hashed} if given else hashed


def _said(function: Any) -> str:
    return function.name if isinstance(function, Closure) else name_of(function)
