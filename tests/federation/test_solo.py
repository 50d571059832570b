"""A participant alone, fed from a recording: it can't tell, and whatever it does otherwise is noticed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.federation.test_inprocess_strands import acting
from tests.lock.worlds import make_world
from tests.soaking import later
from worldline import Federation, Network, Participant, Program, link, run
from worldline.federation.participant.solo import SoloReplay, reach_in, replay_alone, rules_alone
from worldline.history.replay import RecordedParts, RetoldDifference
from worldline.lock.feeding import Feeding
from worldline.model import WorldlineError
from worldline.model.lifecycle import lifecycle_of
from worldline.recording import Recorder, Recording
from worldline.recording.reader import intact, recorded_account


def recorded(federation: Federation, path: Path) -> Recording:
    """Run a federation and record it; if it fails, as far as it goes."""
    recorder = Recorder(path, federation.plan(), federation="solo", overwrite=True)
    try:
        outcome = run(federation, observer=recorder)
    except WorldlineError as error:
        recorder.abandon(error.problem, participant=error.participant, at=error.at)
    else:
        recorder.close(dropped=outcome.dropped)
    return intact(Recording(path))


def alone(recording: Recording, federation: Federation, name: str, **options: Any) -> SoloReplay:
    plan = federation.plan()
    joins = {each: program.join() for each, program in federation.programs.items()}

    def feed(take: Callable[[RetoldDifference], None]) -> Feeding:
        parts = RecordedParts(recorded_account(recording), take, [name])
        return Feeding(
            name,
            parts,
            recording.header.plan(),
            reach=reach_in(plan, joins, name),
            rules_alone=rules_alone(joins, name),
        )

    return replay_alone(federation.programs[name], feed, **options)


def said(replay: SoloReplay) -> list[str]:
    return [str(difference) for difference in replay.differences]


# --- The same ---


@pytest.mark.long
@pytest.mark.parametrize(("batch", "first"), [(1, 0), (512, 0), *later([(1, 60), (512, 60), (1, 120), (512, 120)])])
def test_everybody_of_random_federations_does_the_same_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, first: int
) -> None:
    """Every operation, every kind of link and buffer, guests, stops, ends: it is the lock's own generator."""
    monkeypatch.setattr("worldline.lock.feeding._GRANTED_AT_ONCE", batch)
    compared = strayed = 0
    for seed in range(first, first + 60):
        world = make_world(Random(seed))
        peeks: dict[str, list[tuple[int, int, int]]] = {name: [] for name in world.members}
        made = Federation(
            {name: acting(world, name, peeks[name]) for name in world.members},
            network=world.plan.network,
            seed=world.plan.seed,
            until=world.plan.end,
        )
        recording = recorded(made, tmp_path / "run.mcap")
        assert recording.outcome is not None
        for name, part in recording.outcome.participants.items():
            then = peeks[name].copy()
            peeks[name].clear()
            done = alone(recording, made, name)
            now = peeks[name]
            if done.differences:
                strayed += 1
                assert_saw_in_vain(recording, name, then, now)
                continue
            assert said(done) == [], f"seed {seed}, {name}"
            assert done.digest.hex() == part.digest, f"seed {seed}, {name}"
            assert (done.now, done.is_whole, done.sent) == (part.left, True, done.compared)
            compared += done.compared
    assert compared > 150
    assert strayed < 10


def assert_saw_in_vain(
    recording: Recording, name: str, then: list[tuple[int, int, int]], now: list[tuple[int, int, int]]
) -> None:
    """The first peek that differs saw something come that it never received, and so isn't recorded (F3)."""
    before, after = next((before, after) for before, after in zip(then, now, strict=False) if before != after)
    assert before[:2] == after[:2]
    assert before[2] < after[2]
    assert before[2] < before[1], "it was answered by an arrival"
    assert not list(recording.arrivals(receivers=[name], start=before[2], end=before[2] + 1))


@pytest.mark.parametrize("program", ["at once", "later"])
def test_that_an_incarnation_fails_and_when(tmp_path: Path, program: str) -> None:
    def enduring(me: Participant) -> None:
        while True:
            me.advance(by="10ms")

    def failing(me: Participant) -> None:
        if program == "later":
            me.advance(by="3ms")
        if me.incarnation:
            raise ValueError("no")
        enduring(me)

    def made(entry: Callable[[Participant], object]) -> Federation:
        programs = {"clock": Program(ticking), "frail": Program(entry, subscribes=["count"])}
        return Federation(programs, until="100ms", faults=["20ms crash frail 25ms"])

    recording = recorded(made(enduring), tmp_path / "run.mcap")
    plan = made(enduring).plan()
    done = alone(recording, made(failing), "frail", life=lifecycle_of("frail", plan.network, plan.faults))
    assert said(done)[0].startswith("before it goes on, and now it raises ValueError: no, in test_solo.py, line ")
    assert [done.now, done.differences[0].first.at] == [45_000_000 + 3_000_000 * (program == "later")] * 2


def test_a_crash_waits_for_a_message_that_it_loses(tmp_path: Path) -> None:
    def frail(me: Participant) -> None:
        me.publish("said", b"%d" % me.incarnation)
        for message in me.messages():
            me.publish("said", message.payload)

    programs = {"clock": Program(ticking), "frail": Program(frail, subscribes=["count"])}
    made = Federation(programs, until="50ms", faults=["frail receives count 3: crash frail 7ms"])
    recording = recorded(made, tmp_path / "run.mcap")
    plan = made.plan()
    done = alone(recording, made, "frail", life=lifecycle_of("frail", plan.network, plan.faults))
    assert (said(done), done.is_whole) == ([], True)


@pytest.mark.parametrize("estop", ["2ms", "20ms"])
def test_who_peeks_sees_as_far_as_an_emergency_stop_lets_it(tmp_path: Path, estop: str) -> None:
    def peeking(me: Participant) -> None:
        while me.now < 30_000_000:
            seen = me.peek(me.now + 12_000_000)
            me.publish("seen", b"%d" % seen)
            me.advance(to=max(seen, me.now + 1))

    programs = {"ticking": Program(ticking), "peeking": Program(peeking, subscribes=["count"], publishes=["seen"])}
    made = Federation(programs, network=Network(default=link("uniform(3ms, 8ms)")), estop=estop, until="50ms")
    recording = recorded(made, tmp_path / "run.mcap")
    done = alone(recording, made, "peeking", life=lifecycle_of("peeking", made.plan().network, ()))
    assert (said(done), done.is_whole) == ([], True)


def ticking(me: Participant) -> None:
    """Publish what it has heard of so far, with draws of its own and lines in its log."""
    heard = 0
    while me.now < 40_000_000:
        me.log(f"{heard} heard")
        heard += len(me.advance(by="2ms"))
        me.publish("count", b"%d %d" % (heard, me.random.randrange(100)))


def talking(me: Participant) -> None:
    me.publish("word", b"later", at="7ms")
    for _ in range(10):
        me.next(until=me.now + 3_000_000)
        me.publish("word", b"%d" % me.random.randrange(1000))


def pair(ticks: Callable[[Participant], object] = ticking, **options: Any) -> Federation:
    return Federation(
        {
            "clock": Program(ticks, publishes=["count"], subscribes=["word"]),
            "speaker": Program(talking, publishes=["word"], subscribes=["count"]),
        },
        network=Network(default=link("uniform(1ms, 3ms)")),
        **{"seed": 3, **options},
    )


def test_numbers_of_messages_are_those_that_its_receivers_saw_though_lines_of_logs_are_recorded_too(
    tmp_path: Path,
) -> None:
    """The digest hashes them."""
    recording = recorded(pair(), tmp_path / "run.mcap")
    assert recording.outcome is not None
    done = alone(recording, pair(), "speaker")
    assert (said(done), done.digest.hex()) == ([], recording.outcome.participants["speaker"].digest)


# --- Not the same ---


def silent(*steps: str) -> Callable[[Participant], object]:
    """Do as `ticking`, in these steps, and log nothing."""

    def program(me: Participant) -> None:
        heard = 0
        while me.now < 40_000_000:
            heard += sum(len(me.advance(by=step)) for step in steps)
            me.publish("count", b"%d %d" % (heard, me.random.randrange(100)))

    return program


def failing(me: Participant) -> None:
    me.advance(by="2ms")
    raise ValueError("no")


RAISES = "before it goes on, and now it raises"
CHANGED: dict[str, tuple[Callable[[Participant], object], str]] = {
    "it sends more": (
        lambda me: (ticking(me), me.publish("count", b"more")),
        "now it sends count at 40ms: more, and before it said nothing more",
    ),
    "it leaves too early": (
        lambda me: me.advance(by="2ms"),
        "before it sends count at 2ms: 0 35, and now it says nothing more",
    ),
    # All that it sends is the same, and its history isn't.
    "it takes what it is given at other times": (silent("1ms", "1ms"), "receives what it is given: digest"),
    "it fails": (failing, f"{RAISES} ValueError: no, in test_solo.py, line "),
    "it exits": (lambda me: (me.advance(by="2ms"), sys.exit(3)), f"{RAISES} SystemExit: 3, in test_solo.py, line "),
}


def test_what_it_logs_may_change(tmp_path: Path) -> None:
    assert said(alone(recorded(pair(), tmp_path / "run.mcap"), pair(silent("2ms")), "clock")) == []


@pytest.mark.parametrize("change", CHANGED)
def test_another_program_is_found_out(tmp_path: Path, change: str) -> None:
    program, expected = CHANGED[change]
    done = alone(recorded(pair(), tmp_path / "run.mcap"), pair(program), "clock")
    (found,) = said(done)
    assert found.startswith(expected)
    if RAISES in expected:
        assert (done.now, done.is_whole) == (2_000_000, False)


def test_the_first_message_that_differs_stops_it_there(tmp_path: Path) -> None:
    recording = recorded(pair(), tmp_path / "run.mcap")
    went_on: list[int] = []

    def edited(me: Participant) -> None:
        heard = 0
        while me.now < 40_000_000:
            heard += len(me.advance(by="2ms"))
            draw = me.random.randrange(100)
            try:
                me.publish("count", b"%d %d" % (heard, draw + (me.now >= 20_000_000)))
            except Exception:  # A program that catches everything doesn't notice.
                went_on.append(me.now)

    done = alone(recording, pair(edited), "clock")
    difference = done.differences[0]
    assert len(done.differences) == 1
    assert (difference.member, difference.first.at, difference.first.number) == ("clock", 20_000_000, 9)
    assert (done.now, done.is_whole, went_on) == (20_000_000, False, [])


def test_it_goes_on_if_that_is_wanted(tmp_path: Path) -> None:
    recording = recorded(pair(), tmp_path / "run.mcap")

    def edited(me: Participant) -> None:
        heard = 0
        while me.now < 40_000_000:
            heard += len(me.advance(by="2ms"))
            me.publish("count", b"%d %d" % (heard, me.random.randrange(100) + (me.now == 20_000_000)))

    done = alone(recording, pair(edited), "clock", differs=lambda _: False)
    assert [each.first.at for each in done.differences] == [20_000_000, 40_000_000]  # And the digest, in the end.
    assert done.is_whole


def test_that_it_goes_on_where_it_had_left(tmp_path: Path) -> None:
    """The other went on for longer, so the run hadn't ended."""

    def brief(me: Participant) -> None:
        me.advance(to="4ms")

    def longer(me: Participant) -> None:
        me.advance(to="4ms")
        me.advance(to="6ms")

    recording = recorded(pair(brief), tmp_path / "run.mcap")
    assert said(alone(recording, pair(longer), "clock")) == ["before it leaves now 4ms, and now it goes on until 6ms"]


def test_that_it_stops_the_run_or_invites_somebody(tmp_path: Path) -> None:
    recording = recorded(pair(), tmp_path / "run.mcap")

    def acting_up(act: Callable[[Participant], object]) -> Federation:
        made = pair()
        program = Program(act, publishes=["count"], subscribes=["word"], controls=True)
        return replace(made, programs={**made.programs, "clock": program})

    stops = alone(recording, acting_up(lambda me: me.stop("9ms")), "clock")
    assert said(stops) == ["before it goes on until 40ms, and now it stops the run at 9ms"]
    invites = alone(recording, acting_up(lambda me: me.invite("guest", "9ms")), "clock")
    assert said(invites) == ["now it invites newcomer guest, at 9ms, and before it said nothing more"]


def ruled(rule: Callable[[Participant], object]) -> Federation:
    """One that may invite and stop, one that lives on, and a guest."""

    def stays(me: Participant) -> None:
        me.advance(to="50ms")

    programs = {
        "ruler": Program(rule, publishes=[], controls=True),
        "other": Program(stays, publishes=[]),
        "guest": Program(stays, publishes=[], guest=True),
    }
    return Federation(programs, network=Network(default=link("1ms")), until="60ms")


def ruling(invites: str = "", stops: str = "") -> Callable[[Participant], object]:
    def rule(me: Participant) -> None:
        if invites:
            me.invite("guest", invites)
        me.advance(to="10ms")
        if stops:
            me.stop(stops)
        me.advance(to="45ms")

    return rule


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (ruling("20ms", "30ms"), []),
        (ruling("", "30ms"), ["before it invites newcomer guest, at 20ms, and now it says nothing more"]),
        (ruling("25ms", "30ms"), ["invites: at: 20ms → 25ms"]),
        (ruling("20ms"), ["before it ends at 30ms, and now it goes on until 45ms"]),
        (ruling("20ms", "40ms"), ["before it ends at 30ms, and now it stops the run at 40ms"]),
    ],
    ids=["same", "no invitation", "later invitation", "no stop", "later stop"],
)
def test_that_it_no_longer_invites_or_stops_or_does_so_later(
    tmp_path: Path, now: Callable[[Participant], object], expected: list[str]
) -> None:
    """Nobody else may, so it was this one who did."""
    recording = recorded(ruled(ruling("20ms", "30ms")), tmp_path / "run.mcap")
    assert said(alone(recording, ruled(now), "ruler")) == expected


def test_that_it_doesnt_subscribe_any_more(tmp_path: Path) -> None:
    recording = recorded(pair(), tmp_path / "run.mcap")
    made = pair()
    deaf = replace(made, programs={**made.programs, "clock": Program(ticking, publishes=["count"])})
    done = alone(recording, deaf, "clock")
    assert "doesn't subscribe to word" in said(done)[0]
    assert "receives word from speaker" in said(done)[0]


# --- Recordings that end early ---


def test_a_run_that_was_broken_off_is_replayed_as_far_as_it_goes(tmp_path: Path) -> None:
    def failing(me: Participant) -> None:
        for _ in range(5):
            me.advance(by="2ms")
            me.publish("count", b"")
        raise ValueError("no")

    recording = recorded(pair(failing), tmp_path / "run.mcap")
    done = alone(recording, pair(failing), "speaker")
    assert said(done) == []
    assert not done.is_whole
    assert recording.outcome is not None
    assert recording.outcome.until is not None
    assert 0 < done.now <= recording.outcome.until + 1
    failed = alone(recording, pair(failing), "clock")  # As it did then, or where that isn't known any more.
    assert said(failed) == []


def test_a_file_that_was_cut_off_is_replayed_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    whole = Recorder(path, pair().plan(), federation="solo", chunk_size=300)
    run(pair(), observer=whole)
    whole.close()
    path.write_bytes(path.read_bytes()[:2500])
    recording = intact(Recording(path))
    until = recording.verify().until
    assert until
    done = alone(recording, pair(), "clock")
    assert said(done) == []
    assert done.compared > 2
    assert done.now <= until + 1
