"""The trace: what happened to whom, as records and as text; and scripts, which say what happens to messages.

A run whose every delivery is written down in a script is the same run. That is what shrinking works on: entries are
taken out, and what isn't written down takes the usual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from worldline.model.text import printable

Kind = Literal["received", "sent", "logged", "dropped", "happened"]

FAULTS = ("Crash", "Recover", "LinkDown", "LinkUp", "NeighborAdded", "NeighborRemoved", "Partition", "Repair")
"""What faults do to nodes and to the network, and what ends them, as `what` of a record names it."""


class NodeRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened. Times are nanoseconds.

    ==========  ====================================================================================================
    received    `node` executes an event: a message of `peer`, sent at `sent`, or (no peer) what the simulator does
    sent        `node` sends to `peer`; it arrives at `arrivals`, its copies too, or not at all, for a `reason`
    logged      `node` has written a line
    dropped     a message has reached `node`, or would have, which doesn't get it, for a `reason`
    happened    something in the network that no node is told of
    ==========  ====================================================================================================

    `what` names the kind of a message or event, and `link` is the node's own number of the link. `data` is a message
    that was sent, as plain values.
    """

    at: int
    kind: Kind
    text: str
    node: int | None = None
    peer: int | None = None
    link: int | None = None
    what: str = ""
    sent: int | None = None
    arrivals: tuple[int, ...] = ()
    reason: str = ""
    data: Any = None

    @property
    def is_fault(self) -> bool:
        """Whether it is a fault, or the end of one; a message may have any name."""
        return self.peer is None and self.kind in ("received", "happened") and self.what in FAULTS

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        if self.kind == "sent":
            return f"{self.node} -> {self.peer}: {self.text}{reason}"
        if self.kind == "logged":
            return f"{self.node}: {self.text}"
        if self.kind == "happened":
            return f"*: {self.text}"
        source = "*" if self.peer is None else self.peer
        return f"{self.node} <- {source}: {self.text}{reason}"


def text_of(records: Iterable[NodeRecord], *, times: bool = False) -> str:
    """Write records as lines, with the time in seconds in front if that is wanted."""
    return "\n".join(line_of(record, times=times) for record in records)


def line_of(record: NodeRecord, *, times: bool = False) -> str:
    """Write a record as one line, whatever a node has written into it."""
    line = printable(str(record))
    return f"{record.at // 10**9:>5}.{record.at % 10**9:09d}  {line}" if times else line


def said(message: Any) -> str:
    """Return a message as text, the same under every hash seed: what is in a set is sorted."""
    has_own = type(message).__str__ is not object.__str__  # type: ignore[comparison-overlap]
    return str(message) if has_own else _text(message)


def _text(value: Any) -> str:
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}" if value else "set()"
    if type(value) is tuple:
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    if type(value) is list:
        return f"[{', '.join(map(_text, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{_text(key)}: {_text(part)}' for key, part in value.items())}}}"
    if isinstance(value, Struct) and type(value).__repr__ is Struct.__repr__:
        parts = ", ".join(f"{name}={_text(getattr(value, name))}" for name in value.__struct_fields__)
        return f"{type(value).__name__}({parts})"
    return repr(value)


# -- Scripts

LINK_DOWN = "the link is down"
PARTITIONED = "sent into a partition"
SWALLOWED = (LINK_DOWN, PARTITIONED)
"""Why a message isn't sent at all."""

MessageId = tuple[int, int, int]
"""Sender, receiver, and which of the sender's messages to this receiver it is, from 0."""

Delays = tuple[int, ...]
"""How long it is under way; a second one is that of its copy; none: it gets lost."""


Deliveries = Callable[[MessageId], Delays]
"""What decides how long messages are under way, in place of what the seed draws for their links."""


class Script:
    """How long messages are under way: the usual time, but for those that are named."""

    def __init__(self, usual: int, exceptions: Mapping[MessageId, Delays]) -> None:
        self.usual = (usual,)
        self.exceptions = dict(exceptions)

    def __call__(self, message: MessageId) -> Delays:
        return self.exceptions.get(message, self.usual)


def script_of(records: Iterable[NodeRecord], usual: int) -> Script:
    """Write down the deliveries of a run that was traced; what a fault has swallowed is left to that fault."""
    exceptions: dict[MessageId, Delays] = {}
    numbers: dict[tuple[int, int], int] = {}
    for record in records:
        if record.kind == "sent":
            assert record.node is not None
            assert record.peer is not None
            way = (record.node, record.peer)
            number = numbers[way] = numbers.get(way, -1) + 1
            if record.reason not in SWALLOWED:
                exceptions[*way, number] = tuple(arrival - record.at for arrival in record.arrivals)
    return Script(usual, exceptions)
