"""Faults: written down, checked, and drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nodes.chatter import Listener, pair
from worldline.model.errors import ConfigurationError
from worldline.model.time import MS, SECOND
from worldline.nodes import Fault, as_topology, draw_faults, fault
from worldline.nodes.faults import are_milder, as_fault, check_faults, parse_kinds

RING = as_topology("ring:5")

# -- Written down


@pytest.mark.parametrize(
    "text",
    ["2s crash 1", "3s recover 1", "1s down 0 2", "0s up 0 2", "1.5s add 0 3", "1s partition 0 1 2", "2s repair"],
)
def test_a_fault_is_written_as_it_is_read(text: str) -> None:
    assert str(as_fault(text)) == text
    assert as_fault(as_fault(text)) == as_fault(text)


def test_faults_are_also_made_by_a_call() -> None:
    assert fault("2s", "crash", 1) == as_fault("2s crash 1") == Fault(2 * SECOND, "crash", (1,))


@pytest.mark.parametrize(
    "text",
    ["", "crash", "2s", "2s explode 1", "crash 1 2s", "2s crash one", "2s crash -1", "2s crash 999999999", 5, None],
)
def test_what_is_no_fault_is_refused_with_what_is_one(text: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"isn't a fault .*2s crash 1"):
        as_fault(text)


@pytest.mark.parametrize("text", ["soon crash 1", "-1s crash 1", "2 crash 1"])
def test_the_time_of_a_fault_is_one(text: str) -> None:
    with pytest.raises(ConfigurationError, match="isn't a time"):
        as_fault(text)


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        (["1s crash"], "isn't the number of nodes"),
        (["1s crash 1 2"], "isn't the number of nodes"),
        (["1s down 1"], "isn't the number of nodes"),
        (["1s repair 1"], "isn't the number of nodes"),
        (["1s partition"], "isn't the number of nodes"),
        (["1s crash 5"], "there is no node 5"),
        (["1s partition 0 7"], "there is no node 7"),
        (["1s down 1 1"], "a link has two ends"),
        (["1s down 0 2"], "there is no link between 0 and 2"),
        (["1s up 2 0"], "there is no link between 0 and 2"),
        (["1s remove 0 2"], "there is no link between 0 and 2"),
        (["1s add 1 0"], "there is a link between 0 and 1 already"),
        (["1s remove 0 1", "2s down 0 1"], "2s down 0 1: there is no link"),
        (["1s add 0 2", "2s add 2 0"], "2s add 2 0: there is a link"),
        (["2s add 0 2", "1s down 0 2"], "1s down 0 2: there is no link"),
        ([Fault(0, "explode", (1,))], "there are crash, recover"),  # type: ignore[arg-type]
    ],
)
def test_faults_are_checked_before_the_run(faults: list[Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        check_faults([as_fault(each) for each in faults], RING)


def test_links_may_come_and_go() -> None:
    texts = ["1s remove 0 1", "2s add 0 1", "3s down 0 1", "1s add 0 2", "2s remove 2 0"]
    check_faults([as_fault(text) for text in texts], RING)


def test_the_constructor_checks_too() -> None:
    with pytest.raises(ConfigurationError, match="there is no node 2"):
        pair(Listener, faults=["1s crash 2"])
    with pytest.raises(ConfigurationError, match=r"is one text \(faults are a list\)"):
        pair(Listener, faults="1s crash 1")


# -- Drawn


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", {}),
        ("crash", {"crash": 2}),
        ("crash=3, partition,loss=0.25", {"crash": 3, "partition": 1, "loss": 0.25}),
        ("link=0", {"link": 0}),
        ("loss", {"loss": 0.1}),
        ("loss=1", {"loss": 1}),
    ],
)
def test_kinds_are_read(text: str, kinds: dict[str, float]) -> None:
    assert parse_kinds(text) == kinds


@pytest.mark.parametrize("text", ["crash=x", "crash=", "crash=-1", "crash=1.5", "fire", "loss=2", "loss=-0.1", "=3"])
def test_bad_kinds_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"can't be drawn: .* \(.*crash=2,partition=1"):
        parse_kinds(text)


@pytest.mark.parametrize("text", ["crash=inf", "crash=nan", "loss=nan", "partition=1e999"])
def test_kinds_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_kinds(text)


KINDS = {"crash": 4, "partition": 2, "link": 3}


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from((10, 1000, 20 * MS, SECOND, 3 * SECOND, 3600 * SECOND)))
def test_drawn_faults_are_legal_and_over_before_the_end(seed: int, until: int) -> None:
    faults = draw_faults(KINDS, RING, until, seed)
    check_faults(faults, RING)
    assert [each.at for each in faults] == sorted(each.at for each in faults)
    assert faults == draw_faults(KINDS, RING, until, seed)
    verbs = [each.verb for each in faults]
    assert [verbs.count(verb) for verb in ("crash", "recover", "partition", "repair", "down", "up")] == [
        4,
        4,
        2,
        2,
        3,
        3,
    ]
    assert all(0 <= each.at <= 0.7 * until + 1 for each in faults)
    for node in range(5):
        own = [each.verb for each in faults if each.verb in ("crash", "recover") and each.nodes == (node,)]
        assert not own or own[-1] == "recover"


def test_each_kind_is_drawn_for_itself() -> None:
    crashes = draw_faults({"crash": 4}, RING, SECOND, 1)
    assert set(crashes) < set(draw_faults(KINDS, RING, SECOND, 1))
    assert draw_faults({"loss": 0.5}, RING, SECOND, 1) == ()


def test_where_there_is_nothing_to_cut_nothing_is_cut() -> None:
    alone = as_topology("line:1")
    assert {each.verb for each in draw_faults(KINDS, alone, SECOND, 1)} == {"crash", "recover"}


def test_the_shortest_run_can_have_faults() -> None:
    draw_faults({"crash": 1}, RING, 1, 0)


CRASHES = ("1s crash 0", "3s recover 0")
TWO_CRASHES = ("1s crash 0", "2s recover 0", "5s crash 0", "6s recover 0")
PARTITIONS = ("1s partition 0", "2s repair", "5s partition 1 2", "6s repair")


@pytest.mark.parametrize(
    ("less", "than", "milder"),
    [
        ((), CRASHES, True),
        (CRASHES, CRASHES, True),
        (CRASHES, (), False),
        (("1s crash 0",), CRASHES, False),  # For ever.
        (("3s recover 0",), CRASHES, True),
        (("2s crash 0", "2500ms recover 0"), CRASHES, True),
        (("500ms crash 0", "3s recover 0"), CRASHES, False),
        (("1s crash 0", "4s recover 0"), CRASHES, False),
        (("1s crash 1", "3s recover 1"), CRASHES, False),
        (("1s crash 0", "6s recover 0"), TWO_CRASHES, False),  # One outage out of two.
        (("5s crash 0", "6s recover 0"), TWO_CRASHES, True),
        (("1s partition 0", "6s repair"), PARTITIONS, False),
        (("5s partition 1 2", "6s repair"), PARTITIONS, True),
        (("5s partition 2 1", "6s repair"), PARTITIONS, True),
        (("1s down 0 1", "2s up 0 1"), ("1s down 1 0", "2s up 0 1"), True),
        (("1s down 0 1",), ("1s down 1 0", "2s up 0 1"), False),
        (("1s crash 0",), ("1s crash 0", "2s crash 1"), True),  # It was for ever before.
        (("1s remove 0 1",), ("1s remove 0 1", "2s add 0 1"), False),
        ((), ("1s remove 0 1", "2s add 0 1"), True),
        ((), ("1s add 0 2",), False),  # Then there is a link less.
    ],
)
def test_milder_is_what_has_less_amiss_at_any_time(less: Sequence[str], than: Sequence[str], milder: bool) -> None:
    assert are_milder([as_fault(text) for text in less], [as_fault(text) for text in than]) is milder
