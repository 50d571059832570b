"""Who waited for whom, from what was heard: exact, also where sleepers are on the way, and where a run breaks off."""

from __future__ import annotations

from msgspec import msgpack

from tests.lock.why.casts import CELL, cell
from tests.lock.why.theater import Theater, run
from worldline.lock import OPERATOR, Advance, Barrier, CallOff, Invite, Join, Leave, Next, Promise, Subscription
from worldline.lock.why.advice import scripts_of
from worldline.lock.why.heard import Heard, WaitingTally, situation_at, waits_in
from worldline.lock.why.reasons import Hop, situation_of
from worldline.lock.why.words import in_words
from worldline.model import FOREVER, MS, Network, link, plan

PLAN = plan(["a", "b", "c"], network=Network(default=link("5ms")))
A, B, C = (
    Join(("of a",), (Subscription("of b"),)),
    Join(("of b",), (Subscription("of c"),)),
    Join(("of c",), ()),
)
JOINS = [Heard(0, "a", (A,)), Heard(0, "b", (B,)), Heard(10, "c", (C,))]


def test_a_wait_is_for_the_one_whose_word_ends_it() -> None:
    noted = [*JOINS, Heard(20, "a", (Advance(20 * MS),)), Heard(70, "b", (Advance(15 * MS),))]
    noted += [Heard(95, "c", (Promise(40 * MS),))]
    waits = list(waits_in(PLAN, noted))
    assert [(wait.who, wait.holder, wait.length) for wait in waits] == [("a", "b", 50), ("b", "c", 25)]
    assert waits[0].path == (Hop("b", "a", "of b", 5 * MS),)


def test_all_links_of_a_way_over_sleepers_share_in_it() -> None:
    noted = [*JOINS, Heard(20, "b", (Next(FOREVER),)), Heard(30, "a", (Advance(20 * MS),))]
    noted += [Heard(90, "c", (Promise(40 * MS),))]
    tally = WaitingTally(waits_in(PLAN, noted))
    assert (tally.waited, tally.by_participant, tally.by_holder) == (130, {"a": 60, "b": 70}, {"c": 130})
    assert [(each.hop.sender, each.hop.receiver, each.waited, each.waits) for each in tally.links()] == [
        ("c", "b", 130, 2),
        ("b", "a", 60, 1),
    ]


def test_what_an_operator_holds_is_counted_apart() -> None:
    noted = [Heard(0, OPERATOR, (Barrier(5 * MS),)), *JOINS, Heard(20, "c", (Advance(9 * MS),))]
    noted += [Heard(120, OPERATOR, (Barrier(FOREVER),))]
    tally = WaitingTally(waits_in(PLAN, noted))
    assert (tally.waited, tally.held, tally.links()) == (0, 100, [])


def test_waits_that_never_ended_are_counted_up_to_the_last_word() -> None:
    noted = [*JOINS, Heard(20, "a", (Advance(20 * MS),)), Heard(100, OPERATOR, (CallOff("enough"),))]
    (wait,) = waits_in(PLAN, noted)
    assert (wait.who, wait.holder, wait.length) == ("a", "b", 80)


def test_what_was_refused_then_is_refused_again() -> None:
    noted = [*JOINS, Heard(20, "a", (Advance(20 * MS),)), Heard(30, "a", (Advance(30 * MS),))]
    noted += [Heard(50, "b", (Advance(15 * MS),))]
    assert [(wait.who, wait.length) for wait in waits_in(PLAN, noted)] == [("a", 30), ("b", 0)]


def test_guests_are_part_of_scripts_and_tallies() -> None:
    made = plan(["host"], guests=["guest"], network=Network(default=link("5ms"), control_latency=MS))
    noted = [
        Heard(0, "host", (Join((), (Subscription("t"),), controls=True),)),
        Heard(5, "host", (Invite("guest", 10 * MS), Advance(50 * MS))),
        Heard(25, "guest", (Join(("t",), ()),)),
        Heard(95, "guest", (Leave(10 * MS),)),
    ]
    tally = WaitingTally(waits_in(made, noted))
    assert tally.by_participant == {"host": 90}
    assert scripts_of(made, noted)["guest"].late == 25


def test_what_was_heard_can_be_written_and_read() -> None:
    heard = run(cell(until="100ms"), CELL).heard
    assert msgpack.decode(msgpack.encode(heard), type=list[Heard]) == heard


# --- Moments ---


def test_a_moment_of_a_run_that_was_noted() -> None:
    made = cell()
    heard = run(made, CELL).heard
    situation = situation_at(made, "cell", heard, 500 * MS)
    assert situation.time >= 500 * MS
    assert all(standing.now <= 540 * MS for standing in situation.standings)
    lines = in_words(situation)
    assert lines[0] == "cell: at 500ms of 1s"
    assert any(" holds " in line for line in lines)


def test_the_last_moment_of_a_run_that_hangs() -> None:
    noted = [*JOINS, Heard(20 * MS, "a", (Advance(20 * MS),)), Heard(3020 * MS, "b", (Advance(9 * MS),))]
    situation = situation_at(PLAN, "cell", noted)
    assert "c holds all others: 2 participants wait for it, the longest for 3.0 s" in in_words(situation)


# --- Samples ---


def test_samples_come_close_to_what_is_exact() -> None:
    made = cell()
    theater, sample = Theater(made, CELL), WaitingTally()
    looked = 0
    exact = WaitingTally()

    real_go_on = theater.go_on

    def go_on(actor: object) -> None:
        nonlocal looked
        while looked + MS <= theater.wall:  # As it was before this: nothing has happened since.
            looked += MS
            sample.sample(situation_of(theater.arbiter, "cell", {}, events=0, time=0), MS)
        real_go_on(actor)  # type: ignore[arg-type]

    theater.go_on = go_on  # type: ignore[assignment]
    before = theater.run()
    for wait in waits_in(made, before.heard):
        exact.add(wait)
    assert abs(sample.waited - exact.waited) < 0.05 * exact.waited
    assert sample.links()[0].hop == exact.links()[0].hop
    assert sum(sample.by_holder.values()) <= sample.waited
