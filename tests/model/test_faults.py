"""Faults as texts and structs: each text is read back as it was written, and what is milder is milder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model import ConfigurationError
from worldline.model.faults import (
    ENDED_BY,
    FaultTrigger,
    ParticipantFault,
    are_milder,
    as_faults,
    as_participant_fault,
    check_faults,
    outages_of,
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
        lasts=draw(st.none() | TIMES),
        topic=draw(st.none() | NAMES) if verb == "dropout" else None,
        after=after,
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


def test_what_ends_something_needs_something_to_end() -> None:
    check_faults(as_faults(["1s crash a", "2s recover a", "3s crash a 1s"]), ["a"], None)
    with pytest.raises(ConfigurationError, match="there is no hang before"):
        check_faults(as_faults(["1s hang a 2s", "2s resume a"]), ["a"], None)


def test_a_dropout_is_an_outage_of_all_that_somebody_sends() -> None:
    (outage,) = outages_of(as_faults(["1s dropout a image", "2s restore a"]))
    assert (outage.sender, outage.topic, outage.receiver, outage.start, outage.end) == (
        "a",
        "image",
        None,
        10**9,
        2 * 10**9,
    )
    assert outages_of(as_faults(["1s dropout a"]))[0].end == FOREVER


def test_fewer_and_shorter_faults_are_milder() -> None:
    harsh = as_faults(["1s crash a 5s", "2s hang b", "a sends x: crash a 2s"])
    for mild in ([], ["1s crash a 5s"], ["2s crash a 1s"], ["3s hang b 1s"], ["a sends x: crash a 1s"]):
        assert are_milder(as_faults(mild), harsh)
    for other in (["1s crash b 5s"], ["1s crash a 6s"], ["1s crash a"], ["a sends y: crash a 2s"]):
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


def test_spans_after_one_event_are_the_longest() -> None:
    short, long = "a sends x: hang a 1s", "a sends x: hang a 2s"
    assert are_milder(as_faults([long]), as_faults([long, short]))
    assert are_milder(as_faults([short, long]), as_faults([long]))
    assert not are_milder(as_faults([short, long]), as_faults([short]))
