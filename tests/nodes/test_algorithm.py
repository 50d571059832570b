"""What the laboratory knows of an algorithm: its parameters as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.model.errors import ConfigurationError
from worldline.nodes import Node
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import find

BELLMAN_FORD = find("bellman-ford")


class Tunable(Node):
    """Has one of each.

    And more to say.
    """

    def __init__(
        self,
        *given: Any,
        count: int = 3,
        share: float = 0.5,
        name: str = "x",
        fast: bool = False,
        limit: int | None = None,
        needed: int,
    ) -> None:
        super().__init__(*given)


TUNABLE = Algorithm(name="tunable", node=Tunable, topology="ring:3")


def test_the_summary_is_the_first_line() -> None:
    assert TUNABLE.summary == "Has one of each."
    assert BELLMAN_FORD.summary.startswith("Shortest paths")


def test_parameters_are_those_with_a_default() -> None:
    assert TUNABLE.parameters() == {"count": 3, "share": 0.5, "name": "x", "fast": False, "limit": None}
    assert BELLMAN_FORD.parameters() == {}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "7", 7),
        ("count", "-7", -7),
        ("share", "1", 1.0),
        ("name", "7", "7"),
        ("fast", "yes", True),
        ("fast", "True", True),
        ("fast", "0", False),
    ],
)
def test_texts_become_what_their_defaults_are(name: str, text: str, value: Any) -> None:
    found = TUNABLE.parsed({name: text})[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("count", "many", "count can't be 'many' .*like 3"),
        ("count", "1.5", "count can't be"),
        ("count", "9" * 5000, "count can't be"),
        ("share", "half", "share can't be"),
        ("fast", "quickly", "fast can't be 'quickly' .*like False"),
        ("color", "red", "no parameter 'color' .*count=3"),
    ],
)
def test_bad_parameters_are_refused(name: str, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        TUNABLE.parsed({name: text})


def test_an_algorithm_without_parameters_says_so() -> None:
    with pytest.raises(ConfigurationError, match="it has none"):
        BELLMAN_FORD.parsed({"x": "1"})


def test_the_least_of_nodes_and_parameters_can_be_stated() -> None:
    made = Algorithm(name="tunable", node=Tunable, topology="ring:3", least={"nodes": 3, "count": 0})
    assert made.least == {"nodes": 3, "count": 0}
    assert TUNABLE.least == {}


@pytest.mark.parametrize(
    ("least", "problem"),
    [
        ({"color": 1}, "'color' can't have a minimum .only of numbers: nodes, count."),
        ({"share": 1}, "'share' can't have a minimum"),
        ({"fast": 1}, "'fast' can't have a minimum"),
        ({"nodes": 0}, "0 can't be the minimum of nodes"),
        ({"count": 1.5}, "1.5 can't be the minimum of count"),
        ({"count": True}, "True can't be the minimum of count"),
        (3, "3 isn't a dict of minimums"),
    ],
)
def test_other_leasts_are_refused(least: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Algorithm(name="tunable", node=Tunable, topology="ring:3", least=least)
