"""The inbox: arrivals come out in order and once, and losses count only while the topic is subscribed."""

from __future__ import annotations

from random import Random

import pytest

from worldline.lock.member import Inbox
from worldline.model import FOREVER, Message


def message(arrival: int, sequence: int = 0, topic: str = "red", sender: str = "a") -> Message:
    return Message(arrival, arrival - 1, sender, sequence, 0, topic, b"")


def inbox_of(*messages: Message) -> Inbox:
    inbox = Inbox()
    for each in messages:
        inbox.put(each)
    return inbox


def test_equal_arrivals_are_ordered_by_send_time_then_sender_then_sequence() -> None:
    ordered = [
        Message(9, 1, "z", 5, 0, "red", b""),
        Message(9, 2, "a", 3, 0, "red", b""),
        Message(9, 2, "a", 4, 0, "blue", b""),
        Message(9, 2, "a", 4, 1, "blue", b""),
        Message(9, 2, "b", 0, 0, "red", b""),
    ]
    assert inbox_of(*reversed(ordered)).take(10) == ordered


@pytest.mark.parametrize("seed", range(5))
def test_it_behaves_like_a_sorted_list(seed: int) -> None:
    random = Random(seed)
    inbox, model = Inbox(), list[Message]()
    horizon = 0
    for sequence in range(300):
        action = random.random()
        if action < 0.6:
            new = message(horizon + random.randint(0, 30), sequence, random.choice(["red", "blue"]))
            inbox.put(new)
            model.append(new)
        elif action < 0.97:
            horizon += random.randint(0, 10)
            assert inbox.take(horizon) == sorted(each for each in model if each.arrival < horizon)
            model = [each for each in model if each.arrival >= horizon]
        else:
            inbox.close(("red",), horizon)
            model = [each for each in model if each.topic != "red"]
        assert inbox.first == min((each.arrival for each in model), default=FOREVER)
        assert len(inbox) == len(model)


# --- Losses ---


def test_losses_are_counted_by_topic_and_reason() -> None:
    inbox = Inbox()
    for topic, reason in [("red", "fog"), ("blue", "fog"), ("red", "rain"), ("red", "fog")]:
        inbox.put_ghost(1, topic, reason, 0)
    inbox.count(2)
    assert inbox.dropped == {("red", "fog"): 2, ("blue", "fog"): 1, ("red", "rain"): 1}


def test_closing_a_topic_counts_its_losses_up_to_then_and_forgets_the_later_ones() -> None:
    inbox = Inbox()
    for arrival in (4, 5, 6):
        inbox.put_ghost(arrival, "red", "lost", 0)
        inbox.put_ghost(arrival, "blue", "lost", 0)
    inbox.close(("red",), 5)
    assert inbox.dropped == {("red", "lost"): 1}
    inbox.count(100)
    assert inbox.dropped == {("red", "lost"): 1, ("blue", "lost"): 3}


def test_losses_that_are_past_are_counted_from_time_to_time_so_that_they_dont_pile_up() -> None:
    inbox = Inbox()
    for now in range(10_000):
        inbox.put_ghost(now + 5, "red", "lost", now)
        assert len(inbox._ghosts) < 600
    assert 9_000 < inbox.dropped["red", "lost"] < 10_000
    inbox.count(FOREVER)
    assert inbox.dropped == {("red", "lost"): 10_000}


def test_losses_that_may_still_be_forgotten_are_kept_however_many_they_are() -> None:
    inbox = Inbox()
    for _ in range(1_000):
        inbox.put_ghost(50, "red", "lost", 50)
    assert inbox.dropped == {}
    inbox.close(("red",), 50)
    inbox.count(FOREVER)
    assert inbox.dropped == {}
