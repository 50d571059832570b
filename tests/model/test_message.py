"""The one order of arrivals, and what can be a name."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model import ConfigurationError, Message
from worldline.model.message import check_name

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
MESSAGES = st.builds(
    Message,
    arrival=st.integers(0, 3),
    sent=st.integers(0, 3),
    sender=st.sampled_from(["a", "b", "B", "é"]),
    sequence=st.integers(0, 3),
    copy=st.integers(0, 1),
    topic=st.sampled_from(["x", "y"]),
    payload=st.binary(max_size=2),
)


SOME = Message(arrival=5, sent=3, sender="m", sequence=4, copy=0, topic="t", payload=b"")


def message(**fields):
    return SOME._replace(**fields)


# Each row says which field decides although every later one speaks against it.
DECIDED = [
    ("arrival", Message(1, 9, "z", 9, 1, "z", b"z"), Message(2, 0, "a", 0, 0, "a", b"a")),
    ("send time", Message(5, 1, "z", 9, 1, "z", b"z"), Message(5, 2, "a", 0, 0, "a", b"a")),
    ("sender", Message(5, 3, "a", 9, 1, "z", b"z"), Message(5, 3, "b", 0, 0, "a", b"a")),
    ("sequence number", Message(5, 3, "m", 9, 1, "z", b"z"), Message(5, 3, "m", 10, 0, "a", b"a")),
    ("copy", Message(5, 3, "m", 4, 0, "z", b"z"), Message(5, 3, "m", 4, 1, "a", b"a")),
]


@pytest.mark.parametrize(("earlier", "later"), [row[1:] for row in DECIDED], ids=[row[0] for row in DECIDED])
def test_arrivals_are_ordered_by(earlier, later):
    assert earlier < later
    assert not later < earlier


def test_three_senders_at_one_time_come_by_send_time_then_name_then_number_in_whatever_order_they_were_seen():
    expected = [
        message(sent=1, sender="carol", sequence=0),
        message(sent=2, sender="alice", sequence=9),
        message(sent=2, sender="alice", sequence=9, copy=1),
        message(sent=2, sender="alice", sequence=10),
        message(sent=2, sender="bob", sequence=0),
    ]
    for seen in permutations(expected):
        assert sorted(seen) == expected


@given(st.lists(MESSAGES, max_size=12, unique_by=lambda made: made[:5]), st.randoms(use_true_random=False))
def test_the_order_is_total(messages, shuffler):
    ordered = sorted(messages)
    assert all(first < second for first, second in combinations(ordered, 2))
    shuffler.shuffle(messages)
    assert sorted(messages) == ordered


@given(st.lists(MESSAGES, max_size=12, unique_by=lambda made: made[:5]), st.text(max_size=2), st.binary(max_size=2))
def test_topic_and_payload_never_decide(messages, topic, payload):
    renamed = [made._replace(topic=topic, payload=payload) for made in sorted(messages)]
    assert sorted(renamed) == renamed


@given(st.sets(NAMES, min_size=2, max_size=6))
def test_names_order_as_ranks_do(names):
    # The design speaks of ranks in the sorted roster; the key holds the name in its place.
    rank = {name: place for place, name in enumerate(sorted(names))}
    by_name = sorted(message(sender=name) for name in rank)
    assert [rank[made.sender] for made in by_name] == list(range(len(rank)))


@pytest.mark.parametrize("name", ["a", "Alice", "left wheel", "/pose/0", "風", "é", "*", "0", "a" * 255, "a.b-c_d"])
def test_any_short_printable_text_is_a_name(name):
    assert check_name(name, "a participant") == name


NOT_NAMES = [
    "", " ", " a", "a ", "a\n", "a\tb", "a\0", "\x7f", "\u200b", "\u00a0a", "\ud800", "a" * 256,
    None, 5, b"a", ("a",), True,
]  # fmt: skip


@pytest.mark.parametrize("name", NOT_NAMES, ids=ascii)
def test_what_cannot_be_shown_in_a_line_is_no_name(name):
    with pytest.raises(ConfigurationError) as refusal:
        check_name(name, "a topic")
    assert repr(name) in str(refusal.value)
    assert "a topic" in str(refusal.value)
    assert "a name" in refusal.value.advice
