"""Linearizability: whether each operation may have taken effect at one moment between its call and its return.

The check goes from return to return in the order of time, with a configuration that the operations so far allow: a
state of the model, and which of the operations under way have taken effect (Lowe's just-in-time variant of Wing and
Gong's search). An operation that returns must have taken effect, and others under way may have before it. Where no
configuration is left, the check goes back, and tries another one. The operation at which none gets further has a result
without an explanation.

- A configuration that was tried at a return isn't tried there again, whichever way led to it.
- A read of a register under way that was answered what is there takes effect at once: no way is lost by it, since it
  never changes anything. (What changes nothing here may change something later: a write of the same value.)
- Operations that never return may take effect at any time, or never. Of two configurations that differ in these alone,
  the one in which fewer have taken effect can do all that the other can.
- Keys are independent objects, so each is checked by itself.
- A call and a return at the same time overlap, unless their order was recorded; but a process calls only after its last
  return.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from worldline.model.errors import ConfigurationError, shortened, shown
from worldline.model.time import format_time
from worldline.search.operations import Operation

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


def _text(value: Any) -> str:
    return shortened(repr(value))
