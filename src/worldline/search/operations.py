"""Operations on something shared, as its clients saw them: what they called, when, and what they were answered.

A client that gets no answer can't know whether its operation took place; it stays open. One that was refused for
certain had no effect, and isn't part of the record.

Operations are recorded where they happen, or read from log lines, which may come from any program. Such a line is a
JSON object with the keys that Jepsen's histories have: `type` is invoke, then ok, fail or info (not known); `f` is the
operation, `value` what it is given or answered, and `key` what it is about. Where `f` is txn, the value of the answer
is a list of reads and writes: ``[["r", "x", 1], ["w", "y", 2]]``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.errors import ModelError, shortened, shown
from worldline.model.text import counted
from worldline.model.time import format_time
from worldline.search.properties import Happening, Story, facts_in

_TYPES = ("invoke", "ok", "fail", "info")
_TRANSACTION = "txn"
_ACCESSES: dict[str, Literal["read", "write"]] = {"r": "read", "read": "read", "w": "write", "write": "write"}


class Operation(Struct, frozen=True, kw_only=True):
    """A process called it, and it returned a result; if `returned` is None, that isn't known, nor whether it happened.

    A process does one thing at a time. `key` says which of many registers, queues or accounts it is about. Where calls
    and returns were recorded in one place, their `numbers` there order those at one time; otherwise, what is called
    when another returns overlaps with it.
    """

    process: str
    name: str
    key: Hashable = None
    argument: Any = None
    result: Any = None
    called: int = 0
    returned: int | None = None
    numbers: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        of = "" if self.key is None else f" of {self.key}"
        given = "" if self.argument is None else f" ({shortened(repr(self.argument))})"
        return f"{self.process}'s {self.name}{of}{given}"

    @property
    def span(self) -> str:
        """When it was under way, in words."""
        return f"from {format_time(self.called)} " + (
            "on" if self.returned is None else f"to {format_time(self.returned)}"
        )


class Access(Struct, frozen=True):
    """A transaction has read or written the value of a key."""

    name: Literal["read", "write"]
    key: Hashable
    value: Any


class Transaction(Struct, frozen=True, kw_only=True):
    """Reads and writes that should take effect together. `is_committed` is None if that isn't known."""

    process: str
    accesses: tuple[Access, ...]
    is_committed: bool | None = True
    called: int = 0
    returned: int | None = None


class OperationCall:
    """An operation that is under way: its caller sets the `result`, or says that it had no effect."""

    def __init__(self) -> None:
        self.result: Any = None
        self.has_failed = False

    def fail(self) -> None:
        """Say that the operation surely had no effect."""
        self.has_failed = True


class OperationLog:
    """A record of operations, in the order in which they were called. `clock` tells the time in nanoseconds."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock
        self._recorded: list[Operation] = []
        self._events = 0  # Calls and returns.

    def __repr__(self) -> str:
        return f"<OperationLog of {counted(len(self), 'operation')}>"

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._recorded)

    def __len__(self) -> int:
        return len(self._recorded)

    @contextmanager
    def call(self, process: str, name: str, key: Hashable = None, argument: Any = None) -> Iterator[OperationCall]:
        """Record an operation while it is under way; if it raises, it isn't known whether it took place.

        The caller sets the `result` of what this yields. ``call.fail()`` says that it had no effect.
        """
        numbers = (self._number(), 0)
        asked = Operation(process=process, name=name, key=key, argument=argument, called=self._now(), numbers=numbers)
        self._recorded.append(asked)
        call = OperationCall()
        try:
            yield call
        except BaseException:
            if call.has_failed:
                self._forget(asked)
            raise
        if call.has_failed:
            self._forget(asked)
        else:
            numbers = (asked.numbers[0], self._number())
            self._recorded[self._place(asked)] = replace(
                asked, result=call.result, returned=self._now(), numbers=numbers
            )

    def _now(self) -> int:
        return (self._clock or time.monotonic_ns)()  # Looked up each time: in a simulation it is the simulated one.

    def _number(self) -> int:
        self._events += 1
        return self._events

    def _place(self, asked: Operation) -> int:
        return next(place for place, each in enumerate(self._recorded) if each is asked)

    def _forget(self, asked: Operation) -> None:
        del self._recorded[self._place(asked)]


def operations_in(story: Story) -> list[Operation]:
    """Return the operations that participants have logged so far, except transactions, in the order of their calls."""
    return [
        Operation(
            process=process,
            name=str(asked["f"]),
            key=_hashable(asked.get("key")),
            argument=_hashable(asked.get("value")),
            result=None if answered is None else _hashable(answered.get("result", answered.get("value"))),
            called=called,
            returned=returned,
        )
        for process, asked, answered, called, returned in _pairs(story)
        if asked["f"] != _TRANSACTION and (answered is None or answered["type"] == "ok")
    ]


def transactions_in(story: Story) -> list[Transaction]:
    """Return the transactions that participants have logged so far, in the order of their calls."""
    found = []
    for process, asked, answered, called, returned in _pairs(story):
        if asked["f"] == _TRANSACTION:
            given = (answered or asked).get("value")
            found.append(
                Transaction(
                    process=process,
                    accesses=tuple(_access(each, asked["f"]) for each in given or ()),
                    is_committed=None if answered is None else answered["type"] == "ok",
                    called=called,
                    returned=returned,
                )
            )
    return found


_Pair = tuple[str, dict[str, Any], "dict[str, Any] | None", int, "int | None"]


def _pairs(story: Story) -> list[_Pair]:
    """Return each call with its process and its answer, None if it isn't known; and when both were."""
    found: list[_Pair] = []
    open_calls: dict[str, int] = {}
    for note in story.noted():
        line = facts_in(note.text) if note.payload.startswith(b"{") else {}
        if line.get("type") not in _TYPES or "f" not in line:
            continue
        process = note.who if "process" not in line else f"{note.who}/{line['process']}"
        if line["type"] == "invoke":
            open_calls[process] = len(found)
            found.append((process, line, None, note.at, None))
            continue
        place = open_calls.pop(process, None)
        if place is None:
            raise _misplaced(note, f"{process} is answered what it hasn't called")
        if line["type"] != "info":
            _, asked, _, called, _ = found[place]
            found[place] = (process, asked, line, called, note.at)
    return found


def _access(given: Any, name: str) -> Access:
    if not (isinstance(given, list) and len(given) == 3 and given[0] in _ACCESSES):
        raise ModelError(f"{shown(given)} isn't an access of a {name}", advice='write ["r", key, value] or ["w", ...]')
    return Access(_ACCESSES[given[0]], _hashable(given[1]), _hashable(given[2]))


def _hashable(value: Any) -> Any:
    """Return lists as tuples: states of models are compared and looked up."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _misplaced(note: Happening, problem: str) -> ModelError:
    return ModelError(f"{problem}: {shortened(note.text)}", participant=note.who, at=note.at)
