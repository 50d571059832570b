"""The reel: what it gives the tape is what a recording would have, however a run tells it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import process_time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.watch.test_tape import content
from worldline.history.observer import DOWN, LOG, Observer
from worldline.model.time import FOREVER
from worldline.recording.pending import OrderingObserver
from worldline.watch.reel import Reel
from worldline.watch.tape import Tape

NAMES = ("ann", "bob", "eve")
TOPICS = ("pose", "/scene")
AGAIN = ("lost", "found", "late", "lasts", "held")
MESSAGES = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(TOPICS), st.integers(0, 6), st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 1), st.sampled_from([None, "noise"])),
        max_size=4, unique_by=lambda fate: fate[:2],
    ),
)  # fmt: skip
TELLINGS = st.lists(
    st.one_of(
        MESSAGES.map(lambda drawn: ("sent", *drawn)),
        st.tuples(st.just("noted"), st.sampled_from(NAMES), st.sampled_from([LOG, "/tf"])),
        st.tuples(st.just("closed"), st.sampled_from(NAMES), st.sampled_from(TOPICS), st.integers(0, 6)),
        st.tuples(st.just("again"), st.integers(0, 40), st.sampled_from(AGAIN)),
        st.tuples(st.just("passed"), st.integers(0, 4)),
        st.tuples(st.just("take")),
    ),
    max_size=40,
)


def tell(
    tellings: list[Any], observer: Observer, passed: Callable[[int], None], take: Callable[[], None] = lambda: None
) -> None:
    """Tell an observer of a run in which all is allowed that H1 to H3 of `history.observer` allow."""
    floor, numbers = 0, dict.fromkeys(NAMES, 0)
    open_: list[dict[str, Any]] = []
    for what, *drawn in tellings:
        if what == "sent":
            who, topic, after, takes, fates = drawn
            message = {"who": who, "number": numbers[who], "sent": floor + after, "until": floor + after + 4}
            numbers[who] += 1
            observer.sent(who, message["number"], topic, message["sent"], b"x" * after, message["until"])
            for receiver, copy, lost in fates:
                observer.arrives(who, message["number"], receiver, message["sent"] + takes, copy, lost)
            open_.append({**message, "told": [(fate[0], message["sent"] + takes, fate[1]) for fate in fates]})
        elif what == "noted":
            observer.noted(drawn[0], drawn[1], floor, b"note")
        elif what == "closed":
            observer.closed(drawn[0], drawn[1], floor + drawn[2])
        elif what == "passed":
            floor += drawn[0]
            passed(floor)
            open_ = [each for each in open_ if each["until"] >= floor]
        elif what == "take":
            take()
        elif open_:
            message = open_[drawn[0] % len(open_)]
            who, number = message["who"], message["number"]
            if drawn[1] in ("lost", "found"):
                for receiver, arrival, copy in message["told"][-1:]:
                    observer.arrives(who, number, receiver, arrival, copy, DOWN if drawn[1] == "lost" else None)
            elif drawn[1] == "late":
                observer.arrives(who, number, "bob", message["sent"] + 1, 2, None)
            elif drawn[1] == "lasts":
                message["until"] += 2
                observer.lasts(who, number, message["until"])
            else:
                observer.lasts(who, number, FOREVER)
                observer.lasts(who, number, message["until"])


def drawn(draw: Random) -> list[Any]:
    """Return a telling that is longer than those that `TELLINGS` has mostly, with everything in it."""

    def telling() -> tuple[Any, ...]:
        what = draw.choice(["sent", "sent", "sent", "noted", "closed", "again", "again", "passed", "take"])
        if what == "sent":
            named = [(name, copy, draw.choice([None, "noise"])) for name in NAMES for copy in (0, 1)]
            fates = draw.sample(named, draw.randrange(4))
            return what, draw.choice(NAMES), draw.choice(TOPICS), draw.randrange(7), draw.randrange(1, 5), fates
        if what == "noted":
            return what, draw.choice(NAMES), draw.choice([LOG, "/tf"])
        if what == "closed":
            return what, draw.choice(NAMES), draw.choice(TOPICS), draw.randrange(7)
        if what == "again":
            return what, draw.randrange(40), draw.choice(AGAIN)
        return (what, draw.randrange(3)) if what == "passed" else (what,)

    return [telling() for _ in range(draw.randrange(60))]


@given(TELLINGS)
def test_a_page_has_what_a_recording_would_have_in_the_same_order(tellings: list[Any]) -> None:
    check_page(tellings)


def test_a_page_has_what_a_recording_would_have_after_long_tellings() -> None:
    for seed in range(300):
        check_page(drawn(Random(seed)))


def check_page(tellings: list[Any]) -> None:
    """Check that a page shows what a recording has, in the same order, whenever rows are taken."""
    recorded, shown = OrderingObserver(2**62), Tape(bytes_max=2**30)
    pages, also = Tape(), OrderingObserver(2**62)
    reel = Reel(shown).telling(also)

    def take(publications: list[Any]) -> None:
        pages.add((p.sent, p.sender, p.topic, p.payload, p.fates(), p.sequence) for p in publications)

    def passed_recorded(floor: int) -> None:
        recorded._pending.advance(floor)
        take(recorded._pending.take())

    tell(tellings, recorded, passed_recorded)
    tell(tellings, reel, reel.passed, reel.take)
    take(recorded._pending.finish(8))
    reel.finish(8)
    unhurried = Tape()
    patient = Reel(unhurried)
    tell(tellings, patient, lambda _: None)
    patient.passed(sum(each[1] for each in tellings if each[0] == "passed"))
    patient.finish(8)
    assert content(unhurried) == content(shown)  # Also in the order of a message's receivers.
    rows, notes = content(shown)
    expected_rows, expected_notes = content(pages)
    in_order = [(row[0], row[2], row[5]) for row in rows]  # Of one message, receivers may be in another order.
    assert in_order == sorted(in_order)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected_rows))
    assert notes == expected_notes
    assert len(also._pending) == sum(what in ("sent", "noted") for what, *_ in tellings)  # It was told all of it, too.
    messages = [each for each in shown.sendings() if each[2] != LOG]
    assert [len(each[3] or b"") for each in messages if each[2] != "/tf"] == [
        len(each.payload) for each in sorted(also._pending._order) if each.topic in TOPICS
    ]
    for topic in ("pose", LOG):
        assert list(shown.sendings(topics={topic})) == [each for each in shown.sendings() if each[2] == topic]


def test_what_is_told_after_rows_were_arranged_is_put_in_order_too() -> None:
    tape = Tape()
    reel = Reel(tape)
    for who, at in (("ann", 10), ("bob", 20), ("eve", 5)):
        reel.sent(who, 0, "pose", at, b"", at + 3)
    reel.take()
    reel.sent("dan", 0, "pose", 7, b"", 10)
    reel.finish(100)
    rows, _ = content(tape)
    assert [row[0] for row in rows] == [5, 7, 10, 20]


def test_of_what_is_told_twice_of_the_last_message_the_last_holds() -> None:
    tape = Tape()
    reel = Reel(tape)
    reel.sent("ann", 0, "pose", 1, b"", 9)
    for lost in (None, "noise", None):
        reel.arrives("ann", 0, "bob", 3, 0, lost)
    reel.arrives("ann", 0, "eve", 3, 0, "noise")
    reel.finish(100)
    assert content(tape)[0] == [(1, 3, "ann", "bob", "pose", 0, None), (1, 3, "ann", "eve", "pose", 0, "noise")]


def test_closing_everything_costs_no_walk_over_all_rows_for_each() -> None:
    tape = Tape()
    reel = Reel(tape)
    names = [f"r{number}" for number in range(4000)]
    began = process_time()
    for number, name in enumerate(names):
        reel.sent("ann", number, "pose", number, b"", 10_000)
        reel.arrives("ann", number, name, 9_000, 0, None)
    told = process_time()
    for name in names:
        reel.closed(name, "pose", 8_000)
    closed = process_time()
    reel.finish(10_000)
    assert all(row[3] is None for row in content(tape)[0])
    assert closed - told < 5 * (told - began)  # A walk for each took 20 times that at least.


def test_only_the_latest_payloads_are_kept() -> None:
    tape = Tape(bytes_max=10_000)
    reel = Reel(tape)
    for at in range(1000):
        reel.sent("ann", at, "pose", at, bytes(100), at)
        if at % 10 == 0:
            reel.passed(at)
            reel.take()
    reel.finish(1000)
    first, last = tape.row(0), tape.row(999)
    assert first is not None
    assert last is not None
    assert tape.payload(first) is None
    assert tape.payload(last) == bytes(100)


def test_a_payload_of_many_receivers_is_kept_once() -> None:
    tape = Tape(bytes_max=100_000)
    reel = Reel(tape)
    for number in range(20):
        reel.sent("ann", number, "pose", number, bytes([number]) * 1000, number + 1)
        for receiver in range(50):
            reel.arrives("ann", number, f"r{receiver}", number + 1, 0, None)
    reel.finish(100)
    row = tape.row(0)
    assert row is not None
    assert len(tape) == 1000
    assert tape.payload(row) == bytes(1000)
