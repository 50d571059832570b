"""Faults as texts and structs: each text is read back as it was written, and what is milder is milder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model import ConfigurationError
from worldline.model.faults import (
    ENDED_BY,
    SIGNALS,
    Dropout,
    FaultTrigger,
    ParticipantFault,
    are_milder,
    as_faults,
    as_participant_fault,
    check_boots,
    check_events,
    check_faults,
    dropouts_of,
)
from worldline.model.time import FOREVER

NAMES = st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), codec="utf-8"), min_size=1, max_size=8).filter(
    lambda name: name == name.strip() and name.isprintable()
)
TIMES = st.integers(1, 10**12)


@st.composite
def faults(draw: st.DrawFn) -> ParticipantFault:
    name, verb = draw(NAMES), draw(st.sampled_from(sorted(ENDED_BY)))
    after = None
    if draw(st.booleans()):
        event = draw(st.sampled_from(("sends", "receives")))
        after = FaultTrigger(name, event, draw(NAMES), draw(st.integers(1, 99)))
    return ParticipantFault(
        at=0 if after is not None else draw(st.integers(0, 10**12)),
        verb=verb,
        participant=name,
        delay=draw(TIMES) if verb == "slow" else 0,
        lasts=draw(st.none() | TIMES) if verb != "signal" else None,
        topic=draw(st.none() | NAMES) if verb == "dropout" else None,
        after=after,
        signal=draw(st.sampled_from(SIGNALS)) if verb == "signal" else "",
    )


@given(faults())
def test_a_fault_is_read_as_it_was_written(fault: ParticipantFault) -> None:
    assert as_participant_fault(str(fault)) == fault


@pytest.mark.parametrize(
    "text", ["", "crash a", "1s crash", "1s crash a b", "1s slow a", "a sends: crash a", '1s crash "']
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="isn't a fault"):
        as_participant_fault(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("20ms crsh mill 5ms", "there is no 'crsh' (did you mean 'crash'? Write one of crash, recover, hang,"),
        ("20ms explode mill", "there is no 'explode' (write one of crash, "),
        ("15 hang guard 3ms", '15 needs a unit, such as 15ms (write "1s hang camera 200ms")'),
        ("15ms hang guard 3", '3 needs a unit, such as 3ms (write "1s hang camera 200ms")'),
        ("15ms hang guard soon", "'soon' isn't a time (write"),
        ("15ms hang guard 3ms 4ms", "4ms is one time too many"),
        ("15ms recover guard 3ms", '3ms is one time too many (write "3s recover planner")'),
        ("15ms slow guard", 'it doesn\'t say by how much it is slow (write "1s slow planner 20ms 3s")'),
        ("15ms hang", "it doesn't say to whom the hang happens"),
        ("15ms", "it doesn't say what happens"),
        ("hang guard 3ms", "it doesn't begin with a time or an event"),
        ("feeder sends part 0: crash feeder", "'0' doesn't say which message: they count from 1 (write"),
        ("feeder sends part crash feeder", 'no colon after the event (write "planner sends commit 3: crash planner'),
        ("feeder made part: crash feeder", "what is before the colon isn't an event"),
        ('1s crash "a', "a quotation mark is missing"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        as_participant_fault(text)
    assert f"{text!r} isn't a fault: " in str(refused.value)
    assert said in str(refused.value)


def test_an_end_of_what_ends_by_itself_is_refused_with_that_reason() -> None:
    with pytest.raises(ConfigurationError, match=r"could end: '20ms crash zed 5ms' has an end of its own \(leave out"):
        check_faults(as_faults(["20ms crash zed 5ms", "22ms recover zed"]), ["zed"], None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "zed sends a: recover zed",
            "a recover can't wait for an event: it ends a crash (say how long the crash lasts)",
        ),
        ("zed sends a: dropout zed", "a dropout can't wait for an event (give it a time)"),
        ("zed sends a: partition zed", "a partition can't wait for an event (give it a time)"),
    ],
)
def test_what_cant_wait_for_an_event(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_faults(as_faults([text]), ["zed"], None)
    assert str(refused.value).endswith(said)


def test_what_ends_something_needs_something_to_end() -> None:
    check_faults(as_faults(["1s crash a", "2s recover a", "3s crash a 1s"]), ["a"], None)
    with pytest.raises(ConfigurationError, match="there is no hang before"):
        check_faults(as_faults(["1s hang a 2s", "2s resume a"]), ["a"], None)


@pytest.mark.parametrize(
    "texts",
    [
        ["1s hang a", "2s hang a 5s", "3s resume a"],
        ["1s slow a 1ms 9s", "2s slow a 2ms", "3s fast a"],
        ["1s dropout a", "1s dropout a image 1s", "3s restore a"],
        ["1s partition a", "1s partition a 1s", "3s repair a"],
        ["1s hang a", "2s hang a", "3s resume a", "4s hang a", "5s resume a"],
        ["1s crash a", "1500ms recover a", "2s hang a 1s"],
        ["1s hang a 5s", "2s crash a"],
        ["2s crash a", "3s dropout a"],
    ],
)
def test_whatever_is_open_can_be_ended(texts: list[str]) -> None:
    check_faults(as_faults(texts), ["a"], None)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1s hang a", "2s resume a", "3s resume a"], "3s resume a: there is no hang before"),
        (["1s hang a 9s", "2s hang a", "3s resume a", "4s resume a"], "4s resume a: there is no hang before"),
        (["1s slow a 1ms 9s", "3s fast a"], "3s fast a: there is no slow before"),
        (["1s crash a 9s", "2s crash a"], "2s crash a: it is down then already, because of '1s crash a 9s'"),
        (["1s crash a", "2s hang a 1s"], "2s hang a 1s: it has crashed for good by then, because of '1s crash a'"),
        (["1s crash a", "1s slow a 1ms"], "1s slow a 1ms: it has crashed for good by then"),
    ],
)
def test_what_can_have_no_effect_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_faults(as_faults(texts), ["a"], None)


def test_nobody_crashes_before_it_can_have_booted() -> None:
    check_boots(as_faults(["2s crash a", "a sends x: crash a", "1s hang a 2s"]), {"a": 2 * 10**9})
    with pytest.raises(ConfigurationError, match="1s crash a: a boots until 2s, and is down then already"):
        check_boots(as_faults(["1s crash a"]), {"a": 2 * 10**9})


def test_a_message_that_nobody_else_publishes_is_never_received() -> None:
    faults = as_faults(["a receives go: hang a 1s"])
    for possible in ({"a": [], "b": ["go"]}, {"a": [], "b": None}, {"a": [], "b": [], "c": None}):
        check_events(faults, possible)
    with pytest.raises(ConfigurationError, match=r"no other participant publishes 'go' \(others publish stop\)"):
        check_events(faults, {"a": ["go"], "b": ["stop"]})


def test_a_dropout_lasts_until_it_is_restored() -> None:
    assert dropouts_of(as_faults(["1s dropout a image", "2s restore a"])) == (Dropout(10**9, 2 * 10**9, "a", "image"),)
    assert dropouts_of(as_faults(["1s dropout a"]))[0].end == FOREVER


def test_fewer_shorter_and_lesser_faults_are_milder() -> None:
    slow = ["1s slow a 5ms 4s", "2s slow a 9ms 1s", "b sends x: slow b 3ms 1s"]  # The second is over before the first.
    harsh = as_faults(["1s crash a 5s", "2s hang b", "a sends x: crash a 2s", *slow])
    for mild in ([], ["1s crash a 5s"], ["2s crash a 1s"], ["3s hang b 1s"], ["a sends x: crash a 1s"]):
        assert are_milder(as_faults(mild), harsh)
    for mild in (slow, ["4s slow a 5ms 1s"], ["2s slow a 8ms 1s"], ["1s slow a 1ms 4s"], ["b sends x: slow b 2ms 1s"]):
        assert are_milder(as_faults(mild), harsh)
    for other in (["1s crash b 5s"], ["1s crash a 6s"], ["1s crash a"], ["a sends y: crash a 2s"]):
        assert not are_milder(as_faults(other), harsh)
    for other in (["2s slow a 6ms 2s"], ["1s slow a 5ms 5s"], ["b sends x: slow b 4ms 1s"]):
        assert not are_milder(as_faults(other), harsh)


@pytest.mark.parametrize(
    "parts",
    [
        ["1s hang a 2s", "2s hang a 2s"],
        ["1s hang a 3s", "2s hang a 1s"],
        ["1s hang a 1s", "2s hang a 2s"],
        ["1s hang a", "2s hang a 1s", "4s resume a"],
    ],
)
def test_spans_that_overlap_or_touch_are_one(parts: list[str]) -> None:
    whole = as_faults(["1s hang a 3s"])
    assert are_milder(as_faults(parts), whole)
    assert are_milder(whole, as_faults(parts))


def test_what_is_over_at_once_is_not_what_never_ends() -> None:
    over = as_faults(["1s crash a", "1s recover a"])
    assert are_milder(over, over)
    assert not are_milder(as_faults(["1s crash a"]), over)


def test_spans_after_one_event_are_the_longest() -> None:
    short, long = "a sends x: hang a 1s", "a sends x: hang a 2s"
    assert are_milder(as_faults([long]), as_faults([long, short]))
    assert are_milder(as_faults([short, long]), as_faults([long]))
    assert not are_milder(as_faults([short, long]), as_faults([short]))
