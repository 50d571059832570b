"""Errors: who acts on them, what they say, and how they travel."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import (
    BrokenPromise,
    ConfigurationError,
    InternalError,
    LossError,
    ModelError,
    NonDeterminism,
    PeerError,
    Stuck,
    UsageError,
    WorldlineError,
    shown,
)
from worldline.model.time import FOREVER, MS

KINDS = [
    WorldlineError, UsageError, ConfigurationError, ModelError, BrokenPromise, Stuck, NonDeterminism, PeerError,
    LossError, InternalError,
]  # fmt: skip
FACTS = st.dictionaries(
    st.sampled_from(["promise", "attempt", "topic", "cause", "kind", "code"]),
    st.none() | st.integers() | st.text(max_size=5) | st.binary(max_size=5) | st.tuples(st.integers(), st.booleans()),
)


class Thing:
    def act(self):
        pass


def helper():
    yield


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (helper, "the function helper"),
        (Thing().act, "the function act"),
        (print, "the function print"),
        (Thing, "the class Thing"),
        (Thing(), f"<{Thing.__module__}.Thing object>"),
        ([helper, 1], "[<function helper>, 1]"),
        (helper(), "<generator object helper>"),
        ("look at 0x10", "'look at 0x10'"),
    ],
)
def test_what_was_given_is_shown_without_its_place_in_memory(value, text):
    assert shown(value) == text


def fields(error):
    return type(error), error.problem, error.participant, error.at, error.advice, error.facts, str(error)


# Who acts is what a caller catches: an error must not be caught by a handler for somebody else.
ACTORS = [UsageError, ModelError, PeerError, LossError, InternalError]
WHO_ACTS = [
    (UsageError, UsageError),
    (ConfigurationError, UsageError),
    (ModelError, ModelError),
    (BrokenPromise, ModelError),
    (Stuck, ModelError),
    (NonDeterminism, ModelError),
    (PeerError, PeerError),
    (LossError, LossError),
    (InternalError, InternalError),
]


@pytest.mark.parametrize(("kind", "actor"), WHO_ACTS)
def test_exactly_one_actor_is_named_by_each_error(kind, actor):
    assert issubclass(kind, WorldlineError)
    assert [each for each in ACTORS if issubclass(kind, each)] == [actor]


TEXTS = [
    ({}, "the reactor is hot"),
    ({"participant": "alice"}, "alice: the reactor is hot"),
    ({"at": 5 * MS}, "at 5ms: the reactor is hot"),
    ({"at": 0}, "at 0s: the reactor is hot"),
    ({"at": FOREVER}, "at forever: the reactor is hot"),
    ({"advice": "cool it"}, "the reactor is hot (cool it)"),
    ({"participant": "alice", "at": 5 * MS, "advice": "cool it"}, "alice at 5ms: the reactor is hot (cool it)"),
]


@pytest.mark.parametrize(("given_fields", "text"), TEXTS)
def test_the_text_says_who_when_what_and_what_to_do(given_fields, text):
    assert str(WorldlineError("the reactor is hot", **given_fields)) == text


def test_facts_are_fields_for_programs():
    error = BrokenPromise("it sent too early", participant="alice", at=40 * MS, promise=50 * MS, attempt=40 * MS)
    assert error.facts == {"promise": 50 * MS, "attempt": 40 * MS}
    assert (error.participant, error.at, error.problem, error.advice) == ("alice", 40 * MS, "it sent too early", None)


@given(
    kind=st.sampled_from(KINDS),
    problem=st.text(max_size=20),
    participant=st.none() | st.text(max_size=5),
    at=st.none() | st.integers(0, FOREVER),
    advice=st.none() | st.text(max_size=20),
    facts=FACTS,
    protocol=st.integers(0, pickle.HIGHEST_PROTOCOL),
)
def test_an_error_travels_between_processes_whole(kind, problem, participant, at, advice, facts, protocol):
    error = kind(problem, participant=participant, at=at, advice=advice, **facts)
    assert fields(pickle.loads(pickle.dumps(error, protocol))) == fields(error)


TRAVELS = [
    copy.copy,
    copy.deepcopy,
    *(lambda error, to=to: pickle.loads(pickle.dumps(error, to)) for to in range(pickle.HIGHEST_PROTOCOL + 1)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("travel", TRAVELS)
def test_the_notes_on_an_error_travel_with_it(kind, travel):
    error = kind("gone", participant="alice", at=7, peer="bob")
    error.add_note("while it was landing")
    error.add_note("in run 12")
    arrived = travel(error)
    assert arrived.__notes__ == ["while it was landing", "in run 12"]
    assert fields(arrived) == fields(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_an_error_can_be_copied_whole(kind, copied):
    error = kind("gone", participant="alice", at=7, advice="look at the cable", peer="bob")
    assert fields(copied(error)) == fields(error)
