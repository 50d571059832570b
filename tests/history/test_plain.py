"""Payloads as JSON: readable where they can be, and the same in every process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from msgspec import Struct, json

from worldline.history.plain import encoded, plain


class Color(Enum):
    RED = "red"


class Pose(Struct):
    x: float
    tags: set[Any]


class Tagged(Struct, tag=True):
    x: int


@dataclass
class Box:
    what: object


class Thing:
    """One that Python shows by its address."""


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ODD_CYCLE: dict[Any, Any] = {}
ODD_CYCLE[1, 2] = ODD_CYCLE

CASES = [
    (None, b"null"),
    ((1, "x", 2.5, True), b'[1,"x",2.5,true]'),
    (2**80, str(2**80).encode()),
    (float("nan"), b'"NaN"'),
    ([float("inf"), float("-inf"), {float("nan"): -0.0}], b'["Infinity","-Infinity",{"NaN":-0.0}]'),
    (b"\xff", b'"/w=="'),
    (Color.RED, b'"red"'),
    (Pose(1.0, {"b", "a"}), b'{"x":1.0,"tags":["a","b"]}'),
    (Tagged(1), b'{"type":"Tagged","x":1}'),
    ({"b": 1, "a": 2, 3: 4}, b'{"b":1,"a":2,"3":4}'),
    ({(1, 2): {"b", "a"}}, b'{"[1,2]":["a","b"]}'),
    ({1, "b", "a"}, b'["a","b",1]'),
    (Pose(1.0, {1, "a", "b"}), b'{"x":1.0,"tags":["a","b",1]}'),
    ({1: 2, "1": 3}, b'[[1,2],["1",3]]'),
    (Box({None: {1, "a"}}), b'{"what":{"null":["a",1]}}'),
    ([Thing(), {"b", "a"}], b'["<tests.history.test_plain.Thing object>",["a","b"]]'),
    (1 + 2j, b'"(1+2j)"'),
    ("\udc80", b'"\\\\udc80"'),
    (["\udc80", {"b", "a"}], b'["\\\\udc80",["a","b"]]'),
    (Rude(), b'"<Rude>"'),
    (CYCLE, b'"<list>"'),
    (ODD_CYCLE, b'"<dict>"'),
]


@pytest.mark.parametrize(
    ("value", "expected"), CASES, ids=lambda value: str(value)[:20] if isinstance(value, bytes) else ""
)
def test_what_becomes_of_a_value(value: Any, expected: bytes) -> None:
    assert encoded(value) == expected
    assert json.encode(json.decode(expected)) == expected


def test_plain_values_are_those_of_the_json() -> None:
    assert plain({(1, 2): Color.RED}) == {"[1,2]": "red"}


def test_how_deep_the_caller_is_makes_no_difference() -> None:
    def deeper(levels: int) -> bytes:
        return deeper(levels - 1) if levels else encoded(ODD_CYCLE)

    assert deeper(0) == deeper(100) == deeper(200)


def test_the_hash_seed_makes_no_difference() -> None:
    code = (
        "from worldline.history.plain import encoded; print(encoded({(1,): {'x', 'y', 'z', 1}, 'k': {'p', 'q', 'r'}}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=100
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert found == {"""b'{"[1]":["x","y","z",1],"k":["p","q","r"]}'\n"""}
