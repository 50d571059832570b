"""What workers tell becomes one history, whenever they are heard and however many they are."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.history.notebook import Notebook
from worldline.history.telling import Call, Key, Merging, Teller, merged
from worldline.model.time import FOREVER

MEMBERS = "abcdef"


def happenings(random: Random) -> list[tuple[Key, str, list[tuple[str, Any]]]]:
    """Make up a run: (key, at whose, what is told of it), in the order of keys; messages may be lost on arrival."""
    numbers, due = dict.fromkeys(MEMBERS, 0), [((0, -1, name, 0), name, None) for name in MEMBERS]
    run: list[tuple[Key, str, list[tuple[str, Any]]]] = []
    while due and len(run) < 120:
        due.sort(key=lambda each: each[0])
        key, who, sender = due.pop(0)
        now, told = key[0], list[tuple[str, Any]]()
        if key[1] < 0:
            told.append(("began", (who, now)))
        if sender is not None and random.random() < 0.2:
            told.append(("arrives", (*sender, who, now, 0, "too late")))
        elif random.random() < 0.3:
            told.append(("noted", (who, "timer", now, b"", None)))
        for _ in range(random.randrange(3)):
            receiver, arrival = random.choice(MEMBERS), now + random.choice((1, 1, 2, 5))
            numbers[who] += 1
            told.append(("sent", (who, numbers[who], "x", now, b"", arrival, None)))
            told.append(("arrives", (who, numbers[who], receiver, arrival, 0, None)))
            due.append(((arrival, now, who, numbers[who]), receiver, (who, numbers[who])))
        run.append((key, who, told))
    return run


def calls_of(run: list[tuple[Key, str, list[tuple[str, Any]]]], names: str) -> list[Call]:
    return [(key, how, what) for key, who, told in run if who in names for how, what in told]


@pytest.mark.parametrize("seed", range(60))
def test_any_batches_of_any_workers_give_the_history_of_one(seed: int) -> None:
    random = Random(seed)
    run = happenings(random)
    expected = [(how, *what) for _, how, what in calls_of(run, MEMBERS)]
    count = random.choice((1, 2, 3, 6))
    shares = [calls_of(run, MEMBERS[number::count]) for number in range(count)]
    book = Notebook()
    merging = Merging(count, book)
    while any(shares):
        worker = random.randrange(count)
        size = random.choice((0, 1, 3, 20))
        batch, shares[worker] = shares[worker][:size], shares[worker][size:]
        # It may say the most that is true, or less.
        most = shares[worker][0][0][0] if shares[worker] else FOREVER
        merging.hear(worker, batch, random.choice((most, max(0, most - 3))) if most < FOREVER else most)
        assert book.lines == expected[: len(book.lines)]
    for worker in range(count):
        merging.hear(worker, [], FOREVER)
    assert book.lines == expected
    assert len(merging) == 0
    assert book.passes == sorted(set(book.passes))


def test_nothing_is_passed_on_that_somebody_may_precede() -> None:
    book = Notebook("ab")
    merging = Merging(2, book)
    merging.hear(0, [((t, 0, "a", t), "noted", ("a", "x", t, b"", None)) for t in (1, 2, 3)], 4)
    assert (book.lines, book.passes, len(merging)) == ([], [], 3)
    merging.hear(1, [], 3)
    assert ([line[3] for line in book.lines], book.passes, len(merging)) == ([1, 2], [3], 1)
    merging.hear(1, [((3, 0, "b", 1), "noted", ("b", "x", 3, b"", None))], FOREVER)
    assert ([line[1] for line in book.lines[2:]], book.passes) == (["a", "b"], [3, 4])


def test_what_is_known_without_a_delay_comes_when_one_worker_alone_would_take_it() -> None:
    """`b` makes `a` at the same moment: it acts after `b`, though its key is less, and before `c`."""
    book = Notebook("abc")
    noted = {name: ((5, 5, name, 1), "noted", (name, "x", 5, b"", None)) for name in "abc"}
    merged(book, [([noted["c"]], FOREVER), ([noted["b"], noted["a"]], FOREVER)])
    assert [line[1] for line in book.lines] == ["b", "a", "c"]


def test_a_failure_lets_pass_what_was_before_it_and_what_was_told_until_it() -> None:
    book = Notebook("ab")
    calls: list[Call] = [((t, 0, "a", t), "noted", ("a", "x", t, bytes([n]), None)) for t in (1, 2, 3) for n in (0, 1)]
    merging = merged(book, [(calls, FOREVER), ([((2, 0, "b", 1), "noted", ("b", "x", 2, b"", None))], 2)])
    merging.break_off((2, 0, "a", 2))
    assert [line[1:5] for line in book.lines] == [("a", "x", t, bytes([n])) for t in (1, 2) for n in (0, 1)]
    assert book.passes == [2, 2]


def test_a_teller_keeps_calls_with_the_place_at_which_they_were_made() -> None:
    place = (0, "a")
    teller = Teller(lambda: place)
    teller.began("a", 0)
    place = (7, "b")
    teller.sent("a", 1, "x", 7, b"p", 9, detail={"d": 1})
    teller.arrives("a", 1, "b", 9, 0, None)
    teller.lasts("a", 1, 12)
    teller.closed("b", "x", 8)
    teller.noted("a", "t", 7, None)
    teller.ended("a", 7, b"c")
    teller.passed(7)
    assert len(teller) == 7
    assert teller.take() == [
        ((0, "a"), "began", ("a", 0)),
        ((7, "b"), "sent", ("a", 1, "x", 7, b"p", 9, {"d": 1})),
        ((7, "b"), "arrives", ("a", 1, "b", 9, 0, None)),
        ((7, "b"), "lasts", ("a", 1, 12)),
        ((7, "b"), "closed", ("b", "x", 8)),
        ((7, "b"), "noted", ("a", "t", 7, None)),
        ((7, "b"), "ended", ("a", 7, b"c")),
    ]
    assert teller.take() == []
