"""What messages carry: copies of what can change, fingerprints of the value alone, and reasons for what they refuse."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import os
import pickle
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.kernel.actors import Actor, error_of, payloads, stage
from worldline.kernel import Entity, Signal, Simulation
from worldline.kernel.packing import PackedCopy, fingerprint, seal, size_of
from worldline.model import ModelError, Network, link


@dataclass
class Order:
    number: int
    items: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Price:
    amount: int
    currency: str


class Reading(Struct):
    value: float
    tags: dict[str, int] = {}


class Frozen(Struct, frozen=True):
    value: int


class Pair(NamedTuple):
    first: int
    second: str


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


def sent(*things: Any) -> list[Any]:
    """Send these from one entity to another, and return what arrives."""
    simulation = stage(lambda me: [me.send("b", "x", thing) for thing in things] and None)
    simulation.run()
    return payloads(simulation["b"])


def digest(thing: Any) -> bytes:
    simulation = stage(lambda me: me.send("b", "x", thing))
    return simulation.run().digest


# -- What arrives

UNCHANGING = [
    None,
    True,
    False,
    0,
    -1,
    2**59,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    2**70,
    -(2**700),
    0.0,
    -0.0,
    1e308,
    5e-324,
    math.inf,
    -math.inf,
    "",
    "text",
    "ünïcödé 風 \0",
    b"",
    b"\x00\xff",
    (),
    (1, "two", 3.0, None, b"5", (True, (6, ()))),
    Price(5, "EUR"),
    Frozen(5),
    Pair(1, "x"),
]
CHANGING = [
    [],
    [1, [2, [3]]],
    {},
    {"a": 1, "b": {"c": [1, 2]}},
    ([1], {"a": 2}),
    {2: "two", 1: "one"},
    [{(1, "x"): [1], None: {3.5: 1}}],
    {1, 2, 3},
    {"a", "b", "c"},
    {1, "mixed", None, (2, "x")},
    {frozenset((1,)), frozenset((2,))},
    frozenset((1.5, 2.5)),
    bytearray(b"abc"),
    Order(1, ["nut", "bolt"]),
    Reading(0.5, {"a": 1}),
    Color.RED,
    Level.HIGH,
    decimal.Decimal("1.50"),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6, datetime.UTC),
    datetime.timedelta(seconds=1),
    uuid.UUID(int=5),
    [Order(1, ["x"]), Reading(1.0), {"p": Price(2, "USD")}],
]


@pytest.mark.parametrize("thing", UNCHANGING, ids=lambda thing: repr(thing)[:40])
def test_what_cannot_change_travels_as_it_is(thing: Any) -> None:
    (arrived,) = sent(thing)
    assert arrived is thing
    assert not isinstance(seal(thing)[1], PackedCopy)


@pytest.mark.parametrize("thing", CHANGING, ids=lambda thing: type(thing).__name__)  # No text depends on luck.
def test_what_can_change_arrives_as_an_equal_copy(thing: Any) -> None:
    (arrived,) = sent(thing)
    assert arrived == thing
    assert type(arrived) is type(thing)
    if not isinstance(thing, enum.Enum):
        assert arrived is not thing


def test_a_receiver_never_sees_what_the_sender_does_later() -> None:
    things: list[Any] = [[1], {"a": [1]}, Order(1, ["nut"]), Reading(1.0, {"a": 1}), ([1],), bytearray(b"x")]

    def act(me: Actor) -> None:
        for thing in things:
            me.send("b", "x", thing)
        things[0].append(2)
        things[1]["a"].append(2)
        things[2].items.append("bolt")
        things[3].tags["b"] = 2
        things[4][0].append(2)
        things[5].extend(b"y")

    simulation = stage(act)
    simulation.run()
    expected = [[1], {"a": [1]}, Order(1, ["nut"]), Reading(1.0, {"a": 1}), ([1],), bytearray(b"x")]
    assert payloads(simulation["b"]) == expected


def test_a_sender_never_sees_what_a_receiver_does_and_no_receiver_what_another_does() -> None:
    original = [1]

    class Vandal(Entity):
        def __init__(self) -> None:
            self.got: list[Any] = []

        def on_x(self, thing: list[int]) -> None:
            self.got.append(list(thing))
            thing.clear()

    simulation = Simulation(network=Network(default=link(1, duplication=1.0)))
    simulation.add("a", Actor(lambda me: [me.send(name, "x", original) for name in "bc"] and None))
    simulation.add("b", Vandal())
    simulation.add("c", Vandal())
    simulation.run()
    assert original == [1]
    assert simulation["b"].got == simulation["c"].got == [[1], [1]]  # Each copy of a duplicated message is its own.


def test_what_is_shared_inside_a_payload_stays_shared() -> None:
    inner = [1]
    (arrived,) = sent([inner, inner])
    assert arrived[0] is arrived[1]


def test_a_message_from_outside_is_copied_when_it_is_sent() -> None:
    simulation = stage()
    thing = [1]
    simulation.send("b", "x", thing)
    thing.append(2)
    simulation.run()
    assert payloads(simulation["b"]) == [[1]]


# -- Fingerprints

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(), st.binary()
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_equal_values_have_equal_fingerprints_whatever_they_are_made_of(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert seal(value)[0] == seal(again)[0]
    assert 0 <= seal(value)[0] < 2**64


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=5))
def test_a_dicts_fingerprint_does_not_depend_on_the_order_it_was_filled_in(value: dict[str, Any]) -> None:
    backwards = dict(reversed(value.items()))
    assert seal(value)[0] == seal(backwards)[0]


@given(
    st.dictionaries(st.integers() | st.text(max_size=2) | st.none() | st.booleans() | st.binary(), PLAIN, max_size=5)
)
def test_that_holds_for_keys_of_every_kind(value: dict[Any, Any]) -> None:
    if any(type(part) is int and not -(2**63) <= part < 2**64 for part in value):
        return
    backwards = dict(reversed(value.items()))
    assert seal([value])[0] == seal([backwards])[0]


def test_other_values_have_other_fingerprints() -> None:
    things = [
        *UNCHANGING[1:],
        math.nan,
        "0",
        "1",
        b"1",
        [0],
        [1],
        {"a": 1},
        {"a": 2},
        {"b": 1},
        {1: 1},
        {2: 1},
        {1: 2},
        "text ",
        (1, 2),
        ((1, 2),),
    ]
    prints = [seal(thing)[0] for thing in things]
    assert len(set(prints)) == len(things)
    assert len({digest(thing) for thing in things}) == len(things)


def test_a_fingerprint_does_not_depend_on_which_parts_are_the_same_object() -> None:
    def letter(number: int, is_shared: bool) -> dict[str, str]:
        made = {f"key {each}": "value" for each in range(200)}
        same = list(made)[number]
        made["again"] = same if is_shared else "".join(list(same))
        return made

    for number in range(200):
        assert seal(letter(number, True))[0] == seal(letter(number, False))[0]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_only_equal_bytes_have_equal_fingerprints(left: bytes, right: bytes) -> None:
    assert (fingerprint(left) == fingerprint(right)) == (left == right)


SEEDED = """
from dataclasses import dataclass
from worldline.kernel.packing import seal
@dataclass
class Holder:
    held: object
words = ["alpha", "beta", "gamma", "delta"]
things = [set(words), frozenset(words), {word: {word, "x"} for word in words}, dict.fromkeys(set(words), 1)]
things += [{(word, 1): word for word in set(words)}, {frozenset(words): set(words), 5: 1}]
print([seal(thing)[0] for thing in (*words, *things, tuple(things))])
sets = {frozenset(("alpha",)), frozenset(("beta",)), frozenset(("gamma", "delta"))}
print([seal(thing)[0] for thing in (sets, [sets], {"a": sets})])
print(seal(Holder(sets))[0])
"""


def test_fingerprints_do_not_depend_on_the_hash_seed() -> None:
    runs = []
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SEEDED], env=environment, capture_output=True, text=True, check=True, timeout=100
        )
        runs.append(done.stdout.splitlines())
    assert runs[0] == runs[1]
    assert len(runs[0]) == 3


@pytest.mark.parametrize("holder", [Order, Reading])
def test_a_dict_may_have_any_keys_wherever_it_is(holder: Any) -> None:
    held = holder(5, {1: "one"})
    assert sent([{1: "one"}]) == [[{1: "one"}]]
    assert sent(held) == [held]


# -- Refusals


class Custom:
    pass


class Number(int):
    pass


def endless() -> list[Any]:
    thing: list[Any] = []
    thing.append(thing)
    return thing


@dataclass
class Secret:
    """Can be encoded, but not copied."""

    value: int

    def __reduce__(self) -> Any:
        raise RuntimeError("it's a secret")


class Local(NamedTuple):
    function: Any


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (object(), "type object is unsupported"),
        (Custom(), "type Custom is unsupported"),
        (Number(5), "type Number is unsupported"),
        (lambda: 1, "unsupported|pickle|others know it by its name"),
        (Local(print), "unsupported"),
        ((x for x in [1]), "unsupported|pickle|others know it by its name"),
        (1j, "type complex is unsupported"),
        (range(3), "type range is unsupported"),
        (Signal(), r"type \S*Signal is unsupported"),
        (Actor(), "unsupported|pickle|others know it by its name"),
        (Actor, "unsupported"),
        (ValueError("x"), "type ValueError is unsupported"),
        ([1, object()], "type object is unsupported"),
        ({object(): 1}, "type object is unsupported"),
        ([{1: object()}], "type object is unsupported"),
        ("\ud800", "surrogates not allowed"),
        (endless(), "recursion"),
        (Secret(1), "it's a secret"),
        (memoryview(b"x"), "pickle"),
        (sys.stderr, "unsupported|pickle"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_what_cannot_be_sent_is_refused_with_the_reason(thing: Any, reason: str) -> None:
    error = error_of(lambda me: me.send("b", "x", thing), ModelError)
    assert "a message can't carry" in str(error)
    assert re.search(reason, str(error))
    assert "send numbers, text, bytes, and tuples, lists, dicts" in str(error)
    assert (error.participant, error.at) == ("a", 0)


def test_a_refused_message_leaves_no_trace() -> None:
    def act(me: Actor) -> None:
        with pytest.raises(ModelError, match="can't carry"):
            me.send("b", "x", object())
        me.send("b", "x", "fine")

    simulation = stage(act)
    assert simulation.run().digest == digest("fine")
    assert payloads(simulation["b"]) == ["fine"]


def test_a_refusal_does_not_print_megabytes() -> None:
    error = error_of(lambda me: me.send("b", "x", [*range(100_000), object()]), ModelError)
    assert len(str(error)) < 1_000


def test_a_number_can_be_as_long_as_it_likes() -> None:
    assert sent(10**5_000) == [10**5_000]


@pytest.mark.parametrize("depth", [100, 600, 5_000])
@pytest.mark.parametrize("wrap", [lambda inner: (inner,), lambda inner: [inner], lambda inner: {"a": inner}])
def test_what_is_nested_deeply_is_sent_or_refused_with_the_reason(wrap: Any, depth: int) -> None:
    deep: Any = ()
    for _ in range(depth):
        deep = wrap(deep)
    try:
        (arrived,) = sent(deep)
    except ModelError as error:
        assert "a message can't carry" in str(error)  # noqa: PT017 - Either is fine.
        assert depth > 100
    else:
        while arrived:
            arrived = arrived["a"] if isinstance(arrived, dict) else arrived[0]


# -- Size


@pytest.mark.parametrize(("thing", "size"), [(None, 1), (5, 1), (2**40, 9), (b"x" * 100, 102), ([1, 2, 3], 4), ("", 1)])
def test_the_size_is_that_of_the_encoding(thing: Any, size: int) -> None:
    assert size_of(seal(thing)[1]) == size


@dataclass(frozen=True)
class Base:
    value: int


class Loose(Base):
    """Derived from a frozen dataclass, and not one itself: other attributes can be set."""


class Accept(Struct, frozen=True):
    pass


class Reject(Struct, frozen=True):
    pass


def test_messages_of_another_kind_have_another_fingerprint() -> None:
    assert seal(Accept())[0] != seal(Reject())[0]
    assert len({seal(thing)[0] for thing in (Base(1), Pair(1, 1), [1], (1,), Frozen(1))}) >= 4


def test_frozen_is_only_who_says_so_itself() -> None:
    loose = Loose(1)
    assert isinstance(seal(loose)[1], PackedCopy)
    assert not isinstance(seal(Base(1))[1], PackedCopy)
