"""Operations on something shared, as its clients saw them, and whether they could be so: linearizable, serializable.

A client that gets no answer can't know whether its operation took place; it stays open. One that was refused for
certain had no effect, and isn't part of the record.

Operations are recorded where they happen, or read from log lines, which may come from any program. Such a line is a
JSON object with the keys that Jepsen's histories have: `type` is invoke, then ok, fail or info (not known); `f` is the
operation, `value` what it is given or answered, and `key` what it is about. Where `f` is txn, the value of the answer
is a list of reads and writes: ``[["r", "x", 1], ["w", "y", 2]]``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.errors import ConfigurationError, ModelError, shortened, shown
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


# Linearizability: whether each operation may have taken effect at one moment between its call and its return.
#
# The check goes from return to return in the order of time, with a configuration that the operations so far allow: a
# state of the model, and which of the operations under way have taken effect (Lowe's just-in-time variant of Wing and
# Gong's search). An operation that returns must have taken effect, and others under way may have before it. Where no
# configuration is left, the check goes back, and tries another one. The operation at which none gets further has a
# result without an explanation.
#
# - A configuration that was tried at a return isn't tried there again, whichever way led to it.
# - A read of a register under way that was answered what is there takes effect at once: no way is lost by it, since it
#   never changes anything. (What changes nothing here may change something later: a write of the same value.)
# - Operations that never return may take effect at any time, or never. Of two configurations that differ in these
#   alone, the one in which fewer have taken effect can do all that the other can.
# - Keys are independent objects, so each is checked by itself.
# - A call and a return at the same time overlap, unless their order was recorded; but a process calls only after its
#   last return.

Model = Callable[[Any, Operation], tuple[Any, Any]]
"""Takes a state and an operation; returns the state after it, which must be hashable, and its result."""


class NotLinearizable(AssertionError):
    """An operation's result has no explanation; `possible` are those that would have one."""

    def __init__(self, operation: Operation, possible: tuple[Any, ...], why: str) -> None:
        super().__init__(f"{operation} {operation.span} returned {_text(operation.result)}, {why}")
        self.operation = operation
        self.possible = possible


def register(state: Any, operation: Operation) -> tuple[Any, Any]:
    """Model a value that is read, written, or replaced if it is what was expected (cas, given old and new)."""
    match operation.name:
        case "read":
            return state, state
        case "write":
            return operation.argument, operation.result
        case "cas":
            old, new = operation.argument
            done = state == old
            return (new if done else state), (operation.result if done == (operation.result is not False) else done)
    raise ConfigurationError(
        f"a register has no operation {shown(operation.name)}",
        advice="it has read, write and cas; for others write a model, and give that to check_linearizable",
    )


def check_linearizable(operations: Iterable[Operation], model: Model = register, initial: Hashable = None) -> bool:
    """Return True, or raise `NotLinearizable` with the first operation whose result no order explains."""
    __tracebackhide__ = True  # pytest shows the test's own lines.
    by_key: dict[Hashable, list[Operation]] = {}
    for each in operations:
        by_key.setdefault(each.key, []).append(each)
    for own in by_key.values():
        refused = _Linearization(own, model, initial).refusal()
        if refused is not None:
            raise refused
    return True


_Configuration = tuple[Hashable, int]
"""A state, and which slots' operations have taken effect, as bits."""


class _UnderWay(NamedTuple):
    """An operation under way, in its slot. `before` has the bit of what its process must have done before, or is 0."""

    bit: int
    operation: Operation
    before: int


class _Return:
    """An operation returns: it has to have taken effect by now, and others under way may have."""

    def __init__(self, slot: int, pending: dict[int, _UnderWay]) -> None:
        self.bit = 1 << slot
        self.operation = pending[slot].operation
        # It comes first: the fewer others take effect before it, the more is left open.
        self.pending = sorted(
            pending.values(), key=lambda each: (each.bit != self.bit, each.operation.returned is None)
        )
        self._optional = sum(each.bit for each in self.pending if each.operation.returned is None)
        self._tried: dict[tuple[Hashable, int], list[int]] = {}

    def is_new(self, configuration: _Configuration) -> bool:
        """Whether nothing was tried here that can do as much: the same, or one in which fewer have taken effect."""
        state, done = configuration
        may = done & self._optional
        alike = self._tried.setdefault((state, done & ~self._optional), [])
        if any(fewer & may == fewer for fewer in alike):
            return False
        alike.append(may)
        return True

    def states(self) -> list[Hashable]:
        """Return the states that were tried in which it could take effect next."""
        (own,) = (each for each in self.pending if each.bit == self.bit)
        return [state for state, done in self._tried if not done & self.bit and done & own.before == own.before]


class _Linearization:
    """The check of one object. An operation under way has a slot, which is free again when it has returned."""

    def __init__(self, operations: list[Operation], model: Model, initial: Hashable) -> None:
        self._operations = operations
        self._model = model
        self._initial = initial

    def refusal(self) -> NotLinearizable | None:
        """Return what is wrong, if anything is."""
        returns = list(self._returns())
        furthest = 0
        left: list[Iterator[_Configuration]] = [iter([(self._initial, 0)])]  # What is to be tried at each return.
        while left:
            level = len(left) - 1
            configuration = next(left[level], None)
            if configuration is None:
                left.pop()
            elif level == len(returns):
                return None
            else:
                furthest = max(furthest, level)
                left.append(self._with_effect(returns[level], configuration))
        return self._refused(returns[furthest])

    def _returns(self) -> Iterator[_Return]:
        """Yield the returns in their order, with all that is under way."""
        events = []
        for place, each in enumerate(self._operations):
            events.append((each.called, each.numbers[0], False, place))
            if each.returned is not None:
                events.append((each.returned, each.numbers[1], True, place))
        pending: dict[int, _UnderWay] = {}
        slots: dict[int, int] = {}
        last_of: dict[str, int] = {}
        for *_, is_return, place in sorted(events):
            operation = self._operations[place]
            if is_return:
                yield _Return(slots[place], pending)
                gone = pending.pop(slots[place])
                for slot, later in pending.items():
                    if later.before == gone.bit:
                        pending[slot] = later._replace(before=0)
                continue
            slot = slots[place] = next(number for number in range(len(pending) + 1) if number not in pending)
            last = last_of.get(operation.process)
            before = 0 if last is None else self._only_just_over(pending.get(slots[last]), last, operation)
            pending[slot] = _UnderWay(1 << slot, operation, before)
            last_of[operation.process] = place

    def _only_just_over(self, pending: _UnderWay | None, last: int, operation: Operation) -> int:
        """Return the bit of what a process did before, if that is under way though it returns by its next call."""
        before = self._operations[last]
        if pending is None or pending.operation is not before or before.returned is None:
            return 0
        return pending.bit if before.returned <= operation.called else 0

    def _with_effect(self, moment: _Return, configuration: _Configuration) -> Iterator[_Configuration]:
        """Yield what there can be after an operation has taken effect."""
        left = [configuration]
        while left:
            state, done = tried = left.pop()
            if not moment.is_new(tried):
                continue
            if done & moment.bit:
                yield state, done & ~moment.bit
            else:
                left += reversed(self._following(moment, tried))

    def _following(self, moment: _Return, configuration: _Configuration) -> list[_Configuration]:
        """Return what a configuration becomes when one more operation takes effect."""
        state, done = configuration
        found = []
        for bit, operation, before in moment.pending:
            if done & bit or done & before != before:
                continue
            after, result = self._step(state, operation)
            if operation.returned is None:
                if after != state:
                    found.append((after, done | bit))
            elif result == operation.result:
                if self._model is register and operation.name == "read":
                    return [(state, done | bit)]
                found.append((after, done | bit))
        return found

    def _step(self, state: Hashable, operation: Operation) -> tuple[Hashable, Any]:
        after, result = self._model(state, operation)
        try:
            hash(after)
        except TypeError:
            raise ConfigurationError(
                f"the model's state {shown(after)} can't be looked up", advice="use tuples and frozensets"
            ) from None
        return after, result

    # -- In words

    def _refused(self, moment: _Return) -> NotLinearizable:
        operation = moment.operation
        results = [self._step(state, operation)[1] for state in moment.states()]
        possible = tuple(sorted(_distinct(results), key=repr))
        only = f"and only {' or '.join(map(_text, possible))} was possible"
        return NotLinearizable(operation, possible, f"{only}{self._why(operation, possible)}")

    def _why(self, read: Operation, possible: tuple[Any, ...]) -> str:
        """Say what makes a read of a register stale, as far as one other operation shows it."""
        if self._model is not register or read.name != "read":
            return ""
        done = [each for each in self._operations if _is_done(each, read)]
        sources = [each for each in self._operations if each.name == "write" and each.argument == read.result]
        if not sources and read.result != self._initial and not any(each.name == "cas" for each in self._operations):
            return ": no operation wrote that"
        for other in reversed(done):
            written = other.argument if other.name == "write" else other.result if other.name == "read" else None
            is_later = all(_is_done(each, other) for each in sources)
            if written in possible and (other.name == "read" or is_later):
                verb = "wrote" if other.name == "write" else "read"
                return f": {other.process} {verb} {_text(written)}, done by {format_time(other.returned or 0)}"
        return ""


def _is_done(one: Operation, other: Operation) -> bool:
    """Whether one had returned when the other was called."""
    if one.returned is None:
        return False
    return one.returned < other.called or (one.returned == other.called and 0 < one.numbers[1] < other.numbers[0])


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found


# Serializability: whether transactions may have been executed one after the other, in some order.
#
# Who comes before whom is a graph with a node for each transaction, and one for the start, which wrote the first
# values. A transaction comes after those from which it read (an edge *wr*). Of each further transaction that wrote the
# same key either it came before the one that was read (*ww*), or after the reader (*rw*); which, isn't known. The check
# tries alternatives and takes those that are forced; it is exact: there is an order if and only if all can be chosen so
# that the graph has no cycle. With `strict`, a transaction that was done before another began comes before it, too.
#
# Of a transaction that may or may not have been committed, the writes count if another one read them.


class NotSerializable(AssertionError):
    """No order explains what was read. `cycle` are the transactions of which each must come before the next."""

    def __init__(self, text: str, cycle: Sequence[Transaction]) -> None:
        super().__init__(text)
        self.cycle = tuple(cycle)


def check_serializable(
    transactions: Iterable[Transaction], *, initial: Mapping[Hashable, Any] | None = None, strict: bool = False
) -> bool:
    """Return True, or raise `NotSerializable` and name a cycle. Keys that `initial` leaves out are None at first."""
    __tracebackhide__ = True  # pytest shows the test's own lines.
    try:
        _Serialization(list(transactions), initial or {}).check(strict)
    except NotSerializable as refused:
        raise refused.with_traceback(None) from None
    return True


class _Edge(NamedTuple):
    """One transaction comes before another, and why. `START` is no transaction."""

    before: int
    after: int
    why: str


_Open = tuple[_Edge, _Edge]
"""One of two edges holds, or both: another transaction came after the reader, or before the writer that was read."""


class _Order:
    """Edges that hold, and who comes before whom by them; `reach` has a bit for each that comes later."""

    def __init__(self, size: int) -> None:
        self.edges: dict[int, list[_Edge]] = {}
        self.reach = [0] * size

    def copy(self) -> _Order:
        made = _Order(0)
        made.edges = {node: list(each) for node, each in self.edges.items()}
        made.reach = list(self.reach)
        return made

    def has(self, before: int, after: int) -> bool:
        return bool(self.reach[before] >> after & 1)

    def add(self, edge: _Edge) -> list[_Edge] | None:
        """Take an edge in; or return the cycle that it would close."""
        if edge.before == edge.after:
            return [edge]
        if self.has(edge.after, edge.before):
            return [edge, *self._path(edge.after, edge.before)]
        self.edges.setdefault(edge.before, []).append(edge)
        if not self.has(edge.before, edge.after):
            later = self.reach[edge.after] | 1 << edge.after
            for node, reached in enumerate(self.reach):
                if node == edge.before or reached >> edge.before & 1:
                    self.reach[node] = reached | later
        return None

    def _path(self, start: int, end: int) -> list[_Edge]:
        """Return the shortest way from one to another."""
        came: dict[int, _Edge] = {}
        left = deque([start])
        while end not in came:
            node = left.popleft()
            for edge in self.edges.get(node, ()):
                if edge.after not in came and edge.after != start:
                    came[edge.after] = edge
                    left.append(edge.after)
        path = [came[end]]
        while path[0].before != start:
            path.insert(0, came[path[0].before])
        return path


_START = 0  # The node of what was there at first; transaction n is node n + 1.


class _Read(NamedTuple):
    """A transaction read this of a key, from another or from what was there at first."""

    reader: int
    key: Hashable
    value: Any


class _Serialization:
    """The check of some transactions."""

    def __init__(self, transactions: list[Transaction], initial: Mapping[Hashable, Any]) -> None:
        self._transactions = transactions
        self._initial = initial
        self._reads: list[_Read] = []
        self._writes: dict[int, dict[Hashable, Any]] = {_START: {}}  # The last of each key.
        self._passing: list[tuple[int, Hashable, Any]] = []  # Writes that their own transaction wrote over.
        for place, each in enumerate(transactions):
            self._take_in(place + 1, each)
        self._leave_out_unread()
        self._writers: dict[Hashable, list[int]] = {}
        for node, written in self._writes.items():
            for key in written:
                self._writers.setdefault(key, []).append(node)
        self._cycle: list[_Edge] = []

    def check(self, strict: bool) -> None:
        order = _Order(len(self._transactions) + 1)
        for node in self._writes:
            if node != _START:
                order.add(_Edge(_START, node, "that is how it began"))
        if strict:
            for edge in self._in_time():
                self._demand(order, edge)
        sources = [(read, self._sources(read)) for read in self._reads]
        if not self._choose(order, sorted(sources, key=lambda each: len(each[1])), []):
            raise self._refusal(self._cycle)

    # -- What the transactions say

    def _take_in(self, node: int, transaction: Transaction) -> None:
        own: dict[Hashable, Any] = {}
        seen: dict[Hashable, Any] = {}
        for name, key, value in ((each.name, each.key, each.value) for each in transaction.accesses):
            if name == "write":
                if key in own:
                    self._passing.append((node, key, own[key]))
                own[key] = value
            elif transaction.is_committed:  # What others have read doesn't matter.
                known = own if key in own else seen
                if key not in known:
                    seen[key] = value
                    self._reads.append(_Read(node, key, value))
                elif known[key] != value:
                    verb = "written" if known is own else "read"
                    text = f"{self._name(node)} read {key} = {_text(value)}, after it had {verb} {_text(known[key])}"
                    raise NotSerializable(text, [transaction])
        self._writes[node] = own

    def _leave_out_unread(self) -> None:
        """Forget those that weren't committed; of those of which it isn't known, the ones that none has read from."""
        read = [(read.key, read.value) for read in self._reads]
        for node, transaction in enumerate(self._transactions, 1):
            if transaction.is_committed is None and any(each in read for each in self._writes[node].items()):
                continue
            if not transaction.is_committed:
                del self._writes[node]

    def _sources(self, read: _Read) -> list[int]:
        """Return from which transactions it may have come."""
        found = [
            node
            for node in self._writers.get(read.key, ())
            if node != read.reader and self._writes[node][read.key] == read.value
        ]
        if self._initial.get(read.key) == read.value:
            found.insert(0, _START)
        if not found:
            raise self._unexplained(read)
        return found

    def _in_time(self) -> Iterator[_Edge]:
        """Yield which was done before which began; those of one process are in order."""
        for first in self._writes:
            for second in self._writes:
                if first != _START != second:
                    one, other = self._transactions[first - 1], self._transactions[second - 1]
                    if one.returned is None:
                        continue
                    is_next = one.process == other.process and first < second and one.returned <= other.called
                    if one.returned < other.called or is_next:
                        yield _Edge(first, second, "it was done before the other began")

    # -- The search for an order

    def _demand(self, order: _Order, edge: _Edge) -> None:
        cycle = order.add(edge)
        if cycle is not None:
            raise self._refusal(cycle)

    def _choose(self, order: _Order, sources: list[tuple[_Read, list[int]]], open_: list[_Open]) -> bool:
        """Whether it can be chosen from where all of these reads came, and the rest. The order may be changed."""
        for place, (read, candidates) in enumerate(sources):
            if len(candidates) > 1:
                return any(
                    self._choose(order.copy(), [(read, [chosen]), *sources[place + 1 :]], list(open_))
                    for chosen in candidates
                )
            (writer,) = candidates
            if not self._adds(order, _Edge(writer, read.reader, f"it wrote the {read.key} = {_text(read.value)} read")):
                return False
            open_ += self._alternatives(read, writer)
        return self._decide(order, open_)

    def _alternatives(self, read: _Read, writer: int) -> Iterator[_Open]:
        for other in self._writers.get(read.key, ()):
            if other not in (writer, read.reader):
                wrote = f"wrote {read.key} = {_text(self._writes[other][read.key])}"
                yield (
                    _Edge(read.reader, other, f"it read {read.key} = {_text(read.value)}, and the other {wrote}"),
                    _Edge(other, writer, f"it {wrote}, and a reader saw {_text(read.value)}"),
                )

    def _decide(self, order: _Order, open_: list[_Open]) -> bool:
        """Take what is forced, as long as there is any; then try both ways of what is left."""
        while True:
            left = []
            for either in open_:
                ways = [
                    edge for edge in either if not (edge.before == edge.after or order.has(edge.after, edge.before))
                ]
                if any(order.has(edge.before, edge.after) for edge in ways):
                    continue
                if len(ways) == 2:
                    left.append(either)
                elif not self._adds(order, ways[0] if ways else either[0]):
                    return False
            if len(left) == len(open_):
                break
            open_ = left
        if not open_:
            return True
        either, *rest = open_
        for edge in either:
            tried = order.copy()
            if self._adds(tried, edge) and self._decide(tried, rest):
                return True
        return False

    def _adds(self, order: _Order, edge: _Edge) -> bool:
        """Add an edge, or remember the cycle if it is shorter than others."""
        cycle = order.add(edge)
        if cycle is not None and (not self._cycle or len(cycle) < len(self._cycle)):
            self._cycle = cycle
        return cycle is None

    # -- In words

    def _unexplained(self, read: _Read) -> NotSerializable:
        transactions = [self._transactions[read.reader - 1]]
        says = f"{self._name(read.reader)} read {read.key} = {_text(read.value)}, which"
        for node, key, value in self._passing:
            if (key, value) == (read.key, read.value) and node != read.reader:
                return NotSerializable(f"{says} {self._name(node)} wrote over itself", transactions)
        for node, other in enumerate(self._transactions, 1):
            wrote = Access("write", read.key, read.value) in other.accesses
            if wrote and node == read.reader:
                return NotSerializable(f"{says} it wrote itself only later", transactions)
            if wrote and other.is_committed is False:
                return NotSerializable(f"{says} {self._name(node)} wrote, and that was aborted", transactions)
        return NotSerializable(f"{says} no transaction wrote", transactions)

    def _refusal(self, cycle: list[_Edge]) -> NotSerializable:
        steps = [f"{self._name(edge.before)} comes before {self._name(edge.after)} ({edge.why})" for edge in cycle]
        return NotSerializable(
            f"no order explains it: {', '.join(steps)}",
            [self._transactions[edge.before - 1] for edge in cycle if edge.before != _START],
        )

    def _name(self, node: int) -> str:
        if node == _START:
            return "the start"
        process = self._transactions[node - 1].process
        number = sum(each.process == process for each in self._transactions[:node])
        return f"{process}'s transaction {number}"


def _text(value: Any) -> str:
    return shortened(repr(value))
