"""Records of operations: what is linearizable or serializable by trying all orders is what the checks let pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from worldline.model.errors import ConfigurationError, ModelError
from worldline.search import (
    Access,
    Happening,
    NotLinearizable,
    NotSerializable,
    Operation,
    OperationLog,
    Story,
    Transaction,
    check_linearizable,
    check_serializable,
    operations_in,
    register,
    transactions_in,
)

# -- Linearizability, by trying all orders


def precedes(operations: Sequence[Operation], one: int, other: int) -> bool:
    a, b = operations[one], operations[other]
    if a.returned is None:
        return False
    return a.returned < b.called or (a.process == b.process and one < other and a.returned <= b.called)


def is_explained(operations: Sequence[Operation], order: Sequence[int]) -> bool:
    state: Any = None
    for place, chosen in enumerate(order):
        if any(precedes(operations, later, chosen) for later in order[place + 1 :]):
            return False
        state, result = register(state, operations[chosen])
        if operations[chosen].returned is not None and result != operations[chosen].result:
            return False
    return True


def is_linearizable(operations: Sequence[Operation]) -> bool:
    known = [place for place, each in enumerate(operations) if each.returned is not None]
    unknown = [place for place, each in enumerate(operations) if each.returned is None]
    return any(
        is_explained(operations, order)
        for size in range(len(unknown) + 1)
        for some in combinations(unknown, size)
        for order in permutations((*known, *some))
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Draw what three processes do, one thing at a time each, with few values and times so that much collides."""
    found = []
    for process in "abc":
        now = 0
        for _ in range(draw(st.integers(0, 2))):
            called = now + draw(st.integers(0, 2))
            returned = called + draw(st.integers(0, 3))
            name = draw(st.sampled_from(["read", "write", "cas"]))
            value = draw(st.integers(1, 2))
            is_lost = draw(st.integers(0, 5)) == 0
            found.append(
                Operation(
                    process=process,
                    name=name,
                    argument={"read": None, "write": value, "cas": (value, 3 - value)}[name],
                    result={"read": draw(st.sampled_from([None, 1, 2])), "write": None, "cas": draw(st.booleans())}[
                        name
                    ],
                    called=called,
                    returned=None if is_lost else returned,
                )
            )
            now = returned
            if is_lost:
                break  # The process is gone.
    return sorted(found, key=lambda each: each.called)


@given(histories())
@example(
    [
        Operation(process="b", name="write", argument=2, called=0, returned=1),
        Operation(process="c", name="write", argument=2, called=0, returned=0),
        Operation(process="c", name="write", argument=1, called=0, returned=0),
        Operation(process="b", name="read", result=2, called=1, returned=1),
    ]
)
def test_linearizable_is_what_some_order_explains(operations: list[Operation]) -> None:
    refused = refusal(lambda: check_linearizable(operations))
    assert (refused is None) == is_linearizable(operations)
    if isinstance(refused, NotLinearizable):
        assert refused.operation in operations
        assert refused.operation.result not in refused.possible


def refusal(check: Callable[[], bool]) -> AssertionError | None:
    try:
        check()
    except (NotLinearizable, NotSerializable) as refused:
        return refused
    return None


def op(process: str, name: str, value: Any, called: int, returned: int | None, key: str = "x") -> Operation:
    is_read = name == "read"
    return Operation(
        process=process,
        name=name,
        key=key,
        argument=None if is_read else value,
        result=value if is_read else None,
        called=called,
        returned=returned,
    )


def test_a_stale_read_is_named() -> None:
    with pytest.raises(NotLinearizable) as raised:
        check_linearizable(
            [
                op("ann", "write", 1, 0, 2),
                op("bob", "write", 2, 3, 5),
                op("cai", "read", 1, 6, 8),
                op("cai", "read", 2, 9, 9),
            ]
        )
    assert str(raised.value) == (
        "cai's read of x from 6ns to 8ns returned 1, and only 2 was possible: bob wrote 2, done by 5ns"
    )
    assert raised.value.possible == (2,)


def test_a_read_that_goes_back_is_named_by_the_one_before_it() -> None:
    """While bob writes, one reads the new value, and another the old one afterward."""
    with pytest.raises(NotLinearizable, match="returned 1, and only 2 was possible: cai read 2, done by 5ns"):
        check_linearizable(
            [
                op("ann", "write", 1, 0, 2),
                op("bob", "write", 2, 3, 9),
                op("cai", "read", 2, 4, 5),
                op("dee", "read", 1, 6, 7),
            ]
        )


def test_a_value_out_of_nowhere_is_named() -> None:
    with pytest.raises(NotLinearizable, match="returned 7, and only 1 or None was possible: no operation wrote that"):
        check_linearizable([op("ann", "write", 1, 0, 9), op("bob", "read", 7, 1, 2)])


def test_keys_are_independent_and_a_queue_is_a_model_like_any_other() -> None:
    assert check_linearizable([op("ann", "write", 1, 0, 2, "x"), op("bob", "read", None, 3, 4, "y")])

    def queue(state: tuple[Any, ...], operation: Operation) -> tuple[Any, Any]:
        if operation.name == "put":
            return (*state, operation.argument), None
        return state[1:], state[0] if state else None

    def get(result: Any, called: int, returned: int) -> Operation:
        return Operation(process="bob", name="get", result=result, called=called, returned=returned)

    puts = [Operation(process="ann", name="put", argument=each, called=each, returned=each) for each in (1, 2)]
    assert check_linearizable([*puts, get(1, 3, 4), get(2, 5, 6)], queue, ())
    with pytest.raises(NotLinearizable, match=r"^bob's get from 3ns to 4ns returned 2, and only 1 was possible$"):
        check_linearizable([*puts, get(2, 3, 4)], queue, ())
    with pytest.raises(ConfigurationError, match="a register has no operation 'put'"):
        check_linearizable(puts)
    with pytest.raises(ConfigurationError, match="can't be looked up"):
        check_linearizable(puts, lambda state, each: ([each.argument], None))


def test_long_records_take_little_time() -> None:
    """Five at a time, eighty rounds, and some whose fate isn't known: what is remembered stays small."""
    operations = []
    for number in range(80):
        now = 10 * number
        operations += [op(f"p{process}", "write", (number, process), now, now + 5) for process in range(5)]
        operations.append(op("reader", "read", (number, 3), now + 6, now + 7))
        if number % 30 == 0:
            operations.append(op(f"lost {number}", "write", ("lost", number), now, None))
    assert check_linearizable(operations)
    operations[-1] = op("reader", "read", (7, 3), 796, 797)
    with pytest.raises(NotLinearizable):
        check_linearizable(operations)


# -- Serializability, by trying all orders


def explains(order: Sequence[Transaction], initial: dict[str, Any]) -> bool:
    values: dict[Any, Any] = dict(initial)
    for each in order:
        own = dict(values)
        for access in each.accesses:
            if access.name == "write":
                own[access.key] = access.value
            elif each.is_committed and own.get(access.key) != access.value:
                return False
        values = own
    return True


def is_serializable(transactions: Sequence[Transaction], *, strict: bool) -> bool:
    committed = [each for each in transactions if each.is_committed]
    unknown = [each for each in transactions if each.is_committed is None]
    for size in range(len(unknown) + 1):
        for some in combinations(unknown, size):
            for order in permutations((*committed, *some)):
                if strict and any(
                    later.returned is not None and later.returned < each.called
                    for place, each in enumerate(order)
                    for later in order[place + 1 :]
                ):
                    continue
                if explains(order, {}):
                    return True
    return False


@st.composite
def transactions(draw: st.DrawFn) -> list[Transaction]:
    """Draw transactions with few keys and values; some values are written twice."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        accesses = draw(
            st.lists(
                st.builds(
                    Access,
                    st.sampled_from(["read", "write"]),
                    st.sampled_from(["x", "y"]),
                    st.sampled_from([None, 1, 2, 3]),
                ),
                min_size=1,
                max_size=3,
            )
        )
        called = draw(st.integers(0, 3))
        is_committed = draw(st.sampled_from([True, True, True, True, False, None]))
        found.append(
            Transaction(
                process=f"p{number}",
                accesses=tuple(accesses),
                is_committed=is_committed,
                called=called,
                returned=None if is_committed is None else called + draw(st.integers(0, 2)),
            )
        )
    return found


def reads(key: str, value: Any) -> Access:
    return Access("read", key, value)


def writes(key: str, value: Any) -> Access:
    return Access("write", key, value)


def txn(
    process: str, *accesses: Access, committed: bool | None = True, called: int = 0, returned: int = 0
) -> Transaction:
    return Transaction(process=process, accesses=accesses, is_committed=committed, called=called, returned=returned)


SKEWED = [
    txn("ann", reads("x", None), reads("y", None), writes("x", 1)),
    txn("bob", reads("x", None), reads("y", None), writes("y", 1)),
]


@given(transactions(), st.booleans())
@example(SKEWED, False)
@example([txn("p0", reads("x", 1)), txn("p1", writes("x", 1), committed=None), txn("p2", writes("x", 1))], True)
def test_serializable_is_what_some_order_explains(given: list[Transaction], strict: bool) -> None:
    refused = refusal(lambda: check_serializable(given, strict=strict))
    assert (refused is None) == is_serializable(given, strict=strict)
    if isinstance(refused, NotSerializable):
        assert set(refused.cycle) <= set(given)


def test_a_cycle_is_named() -> None:
    with pytest.raises(NotSerializable) as raised:
        check_serializable(SKEWED)
    assert str(raised.value) == (
        "no order explains it: bob's transaction 1 comes before ann's transaction 1 (it read x = None, and the other"
        " wrote x = 1), ann's transaction 1 comes before bob's transaction 1 (it read y = None, and the other wrote"
        " y = 1)"
    )
    assert raised.value.cycle == (SKEWED[1], SKEWED[0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([txn("a", reads("x", 5))], "a's transaction 1 read x = 5, which no transaction wrote"),
        ([txn("a", reads("x", 5)), txn("b", writes("x", 5), committed=False)], "b's transaction 1 wrote, and that was"),
        ([txn("a", reads("x", 5)), txn("b", writes("x", 5), writes("x", 6))], "b's transaction 1 wrote over itself"),
        ([txn("a", writes("x", 1), reads("x", 2))], "read x = 2, after it had written 1"),
        ([txn("a", reads("x", None), reads("x", 2))], "read x = 2, after it had read None"),
        ([txn("a", reads("x", 5), writes("x", 5))], "which it wrote itself only later"),
        (
            [txn(who, reads("x", None), writes("x", who)) for who in "ab"],
            "b's transaction 1 comes before a's transaction 1",
        ),
    ],
)
def test_what_went_wrong_is_named(given: list[Transaction], said: str) -> None:
    with pytest.raises(NotSerializable) as raised:
        check_serializable(given)
    assert said in str(raised.value)


def test_strict_means_in_the_order_of_time() -> None:
    old = [txn("a", writes("x", 1), called=0, returned=1), txn("b", reads("x", None), called=2, returned=3)]
    assert check_serializable(old)
    with pytest.raises(NotSerializable, match="it was done before the other began"):
        check_serializable(old, strict=True)


def test_hundreds_of_transactions_take_little_time() -> None:
    many = [
        txn(f"p{number % 7}", reads("x", number or None), writes("x", number + 1), reads("y", None))
        for number in range(80)
    ]
    assert check_serializable(many)
    with pytest.raises(NotSerializable):
        check_serializable([*many, txn("late", reads("x", 40), writes("x", 999))])


# -- Records


def test_operations_are_recorded_while_they_are_under_way() -> None:
    times = iter(range(100))
    record = OperationLog(clock=lambda: next(times))
    with record.call("ann", "write", "x", 1) as outer:
        with record.call("bob", "read", "x") as call:
            call.result = 1
        with record.call("cai", "cas", "x", (1, 2)) as refused:
            refused.fail()
        with pytest.raises(TimeoutError), record.call("dee", "write", "x", 3):
            raise TimeoutError
        with suppress(ValueError), record.call("eve", "write", "x", 4) as never:
            never.fail()
            raise ValueError
        outer.result = "ok"
    found = list(record)
    assert [(each.process, each.result, each.called, each.returned) for each in found] == [
        ("ann", "ok", 0, 6),
        ("bob", 1, 1, 2),
        ("dee", None, 4, None),
    ]


def test_what_was_recorded_in_one_place_is_in_order_at_one_time() -> None:
    log = OperationLog(clock=lambda: 5)
    with log.call("ann", "write", "x", 1):
        pass
    with log.call("bob", "read", "x") as read:
        read.result = None
    with pytest.raises(NotLinearizable, match="returned None, and only 1 was possible"):
        check_linearizable(log)
    unordered = [replace(each, numbers=(0, 0)) for each in log]
    assert check_linearizable(unordered)


def told(*lines: tuple[int, str, str]) -> Story:
    story = Story()
    story.judge([Happening(at, who, "noted", "log", text.encode(), who) for at, who, text in lines], [], {})
    return story


def test_operations_are_read_from_logs_as_jepsen_writes_them() -> None:
    story = told(
        (1, "ann", "starting"),
        (2, "ann", '{"type": "invoke", "f": "write", "key": "x", "value": [1, 2]}'),
        (3, "bob", '{"type": "invoke", "f": "read", "key": "x", "process": 4}'),
        (4, "bob", '{"type": "invoke", "f": "txn", "process": 5}'),
        (5, "bob", '{"type": "ok", "f": "read", "value": [1, 2], "process": 4}'),
        (6, "ann", '{"type": "info", "f": "write"}'),
        (7, "bob", '{"type": "ok", "f": "txn", "value": [["r", "x", 1], ["w", "y", 2]], "process": 5}'),
        (8, "ann", '{"type": "invoke", "f": "cas", "key": "x", "value": [1, 2]}'),
        (9, "ann", '{"type": "fail", "f": "cas"}'),
        (9, "ann", '{"type": "invoke", "f": "txn"}'),
    )
    assert operations_in(story) == [
        Operation(process="ann", name="write", key="x", argument=(1, 2), called=2),
        Operation(process="bob/4", name="read", key="x", result=(1, 2), called=3, returned=5),
    ]
    assert transactions_in(story) == [
        txn("bob/5", reads("x", 1), writes("y", 2), called=4, returned=7),
        Transaction(process="ann", accesses=(), is_committed=None, called=9),
    ]
    assert check_linearizable(operations_in(story))


def test_an_answer_without_a_call_is_refused() -> None:
    with pytest.raises(ModelError, match=r"^ann at 3ns: ann is answered what it hasn't called: .*ok"):
        operations_in(told((3, "ann", '{"type": "ok", "f": "read"}')))
