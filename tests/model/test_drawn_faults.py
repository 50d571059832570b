"""Faults drawn from a seed: possible ones, at times or after events, and the same each time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldline import Program
from worldline.model import ConfigurationError
from worldline.model.faults import (
    as_faults,
    check_boots,
    check_faults,
    draw_participant_faults,
    parse_fault_kinds,
    said_of_undrawn,
)

PARTS = {
    "a": Program(print, publishes=["x"], subscribes=["y"]),
    "b": Program(print, subscribes=["x"]),
    "mute": Program(print, publishes=[]),
}
END = 10**10


@given(st.integers(0, 2**32))
def test_only_programs_of_machines_are_killed(seed: int) -> None:
    kinds = parse_fault_kinds("kill=2,kill-after=2")
    service = Program(print, subscribes=["tcp/service"], is_machine=True)
    drawn = draw_participant_faults(kinds, {**PARTS, "service": service}, END, seed)
    assert len(drawn) == 4
    assert {(each.verb, each.participant) for each in drawn} == {("kill", "service")}
    assert draw_participant_faults(kinds, PARTS, END, seed) == ()
    assert "only the programs of machines" in said_of_undrawn(kinds, ())[0]


@given(st.integers(0, 2**32))
def test_drawn_faults_are_over_in_time_and_possible(seed: int) -> None:
    kinds = parse_fault_kinds("crash=4,hang=2,slow,dropout,partition=2")
    drawn = draw_participant_faults(kinds, PARTS, END, seed)
    check_faults(drawn, tuple(PARTS), END)
    assert all(each.at + (each.lasts or 0) <= 7 * 10**9 for each in drawn)
    assert drawn == draw_participant_faults(kinds, PARTS, END, seed)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_drawn_faults_are_possible_besides_those_that_are_given(seed: int) -> None:
    deaf = Program(print, publishes=[], subscribes=["nothing"], boot="uniform(4s, 5s)")
    parts = {"a": deaf, "b": Program(print, publishes=[])}
    given = as_faults(["4s crash a 1s", "1s crash b"])
    kinds = parse_fault_kinds("crash=4,hang=4,slow=4,hang-after=4")
    drawn = draw_participant_faults(kinds, parts, END, seed, given=given)
    check_faults((*given, *drawn), tuple(parts), END)
    check_boots(drawn, {"a": 4 * 10**9})
    assert all(each.after is None for each in drawn)


@given(st.integers(0, 2**32))
def test_drawn_events_are_of_topics_that_are_declared(seed: int) -> None:
    kinds = parse_fault_kinds("crash-after=4,hang-after,slow-after=2")
    drawn = draw_participant_faults(kinds, PARTS, END, seed)
    check_faults(drawn, tuple(PARTS), END)
    for each in drawn:
        assert each.after is not None
        # b doesn't say what it sends: it may be whatever anybody listens to.
        event = (each.participant, each.after.verb, each.after.topic)
        assert event in [
            *[("a", "sends", "x"), ("a", "receives", "y")],
            *[("b", "sends", "x"), ("b", "sends", "y"), ("b", "receives", "x")],
        ]
        assert 1 <= each.after.count < 32
        assert each.lasts is not None
        assert 0 < each.lasts <= 7 * 10**9


def test_one_kind_of_faults_leaves_the_others_as_they_were() -> None:
    crashes = draw_participant_faults({"crash": 2}, PARTS, END, 3)
    both = draw_participant_faults({"crash": 2, "crash-after": 2}, PARTS, END, 3)
    assert tuple(each for each in both if each.after is None) == crashes


GIVEN = as_faults(
    ("1s crash a", "3s recover a", "2s hang b", "4s resume b", "1s slow a 1ms", "5s fast a", "5s dropout b 1s")
)


@given(st.integers(0, 2**32))
def test_drawn_faults_avoid_the_given_ones(seed: int) -> None:
    kinds = parse_fault_kinds("crash=3,hang=3,slow=3,dropout=3,crash-after=1")
    drawn = draw_participant_faults(kinds, PARTS, END, seed, given=GIVEN)
    check_faults((*GIVEN, *drawn), tuple(PARTS), END)
    assert drawn == draw_participant_faults(kinds, PARTS, END, seed, given=GIVEN)


def test_what_has_no_room_is_drawn_elsewhere_or_left_out() -> None:
    down = as_faults(("0s crash a", "0s crash b"))
    assert all(
        [each.participant for each in draw_participant_faults({"crash": 1}, PARTS, END, seed, given=down)] == ["mute"]
        for seed in range(20)
    )
    assert draw_participant_faults({"crash": 9}, PARTS, END, 0, given=down, lasting=["mute"]) == ()


def test_who_cannot_crash_hangs() -> None:
    kinds = dict.fromkeys(("crash", "crash-after", "hang", "hang-after"), 20)
    drawn = draw_participant_faults(kinds, PARTS, END, 0, lasting=["a"])
    assert {each.participant for each in drawn if each.verb == "crash"} == {"b", "mute"}
    assert {each.participant for each in drawn if each.verb == "hang"} == {"a", "b", "mute"}


def test_without_topics_there_is_nothing_to_wait_for() -> None:
    assert draw_participant_faults({"crash-after": 3}, {"mute": PARTS["mute"]}, END, 0) == ()


def test_drawing_needs_an_end() -> None:
    with pytest.raises(ConfigurationError, match="no end"):
        draw_participant_faults({"crash": 1}, PARTS, None, 0)


def test_a_kind_that_does_not_wait_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'dropout-after=1' can't be drawn"):
        parse_fault_kinds("dropout-after=1")
