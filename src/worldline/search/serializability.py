"""Serializability: whether transactions may have been executed one after the other, in some order.

Who comes before whom is a graph with a node for each transaction, and one for the start, which wrote the first values.
A transaction comes after those from which it read (an edge *wr*). Of each further transaction that wrote the same key
either it came before the one that was read (*ww*), or after the reader (*rw*); which, isn't known. The check tries
alternatives and takes those that are forced; it is exact: there is an order if and only if all can be chosen so that
the graph has no cycle. With `strict`, a transaction that was done before another began comes before it, too.

Of a transaction that may or may not have been committed, the writes count if another one read them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from worldline.model.errors import shortened
from worldline.search.operations import Access, Transaction


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


class _Open(NamedTuple):
    """Either of two edges, or both: one that wrote `key` came before the writer that was read, or after the reader."""

    earlier: _Edge
    later: _Edge


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
                yield _Open(
                    _Edge(other, writer, f"it {wrote}, and a reader saw {_text(read.value)}"),
                    _Edge(read.reader, other, f"it read {read.key} = {_text(read.value)}, and the other {wrote}"),
                )

    def _decide(self, order: _Order, open_: list[_Open]) -> bool:
        """Take what is forced, as long as there is any; then try both ways of what is left."""
        while True:
            left = []
            for either in open_:
                ways = [
                    edge
                    for edge in (either.later, either.earlier)
                    if not (edge.before == edge.after or order.has(edge.after, edge.before))
                ]
                if any(order.has(edge.before, edge.after) for edge in ways):
                    continue
                if len(ways) == 2:
                    left.append(either)
                elif not self._adds(order, ways[0] if ways else either.later):
                    return False
            if len(left) == len(open_):
                break
            open_ = left
        if not open_:
            return True
        either, *rest = open_
        for edge in either.later, either.earlier:
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
