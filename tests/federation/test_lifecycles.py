"""What a program sees of crashes, hangs, slowness and emergency stops, in one process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from worldline import MS, EmergencyStop, Federation, Message, Network, Participant, Program, clock, link, run
from worldline.federation.participant.participant import StableStore
from worldline.history.journal import Befell
from worldline.history.observer import DOWN
from worldline.lock import Crashed
from worldline.lock.arbiter import NEVER_TAKEN
from worldline.model import ConfigurationError, UsageError
from worldline.model.path import CUT_OFF
from worldline.recording import Recorder, Recording


def ticking(self: Participant) -> None:
    for number in range(1, 20):
        self.advance(to=number * 10 * MS)
        self.publish("tick", bytes([number]))


def federation(
    program: Callable[[Participant], object], *faults: str, estop: str | None = None, **declared: Any
) -> Federation:
    programs = {
        "clock": Program(ticking, publishes=["tick"]),
        "me": Program(program, **{"subscribes": ["tick"], **declared}),
    }
    return Federation(programs, until="200ms", faults=faults, estop=estop)


def heard(messages: list[Message]) -> list[int]:
    return [message.payload[0] for message in messages]


def test_a_hang_holds_what_arrives() -> None:
    seen: list[tuple[int, list[int]]] = []

    def program(self: Participant) -> None:
        while batch := self.next(until="95ms"):
            seen.append((self.now // MS, heard(batch)))

    run(federation(program, "30ms hang me 35ms"))
    assert seen == [(11, [1]), (21, [2]), (65, [3]), (65, [4, 5, 6]), (71, [7]), (81, [8]), (91, [9])]


@pytest.mark.parametrize("until", ["40ms", "55ms", "65ms"])
def test_who_is_late_is_given_what_has_arrived_and_goes_on_at_once(until: str) -> None:
    seen: list[tuple[int, int]] = []

    def program(self: Participant) -> None:
        seen.extend((self.now // MS, tick.payload[0]) for tick in self.messages(until))
        seen.append((self.now // MS, -1))
        assert list(self.messages("20ms")) == []  # That would have passed anyway.
        seen.extend((self.now // MS, tick.payload[0]) for tick in self.messages(until="75ms"))

    run(federation(program, "30ms hang me 35ms"))
    assert seen == [(11, 1), (21, 2), (65, 3), (65, 4), (65, 5), (65, 6), (65, -1), (71, 7)]


def test_who_is_late_may_name_a_time_that_its_clock_has_shown_since() -> None:
    times: list[int] = []

    def program(self: Participant) -> None:
        for number in range(1, 10):
            self.advance(to=number * 10 * MS, clock="local")
            times.append(self.now // MS)
        with pytest.raises(UsageError, match="has passed"):
            self.advance(to=0, clock="local")

    run(federation(program, "35ms hang me 30ms", clock=clock(offset="2ms")))
    assert times == [8, 18, 28, 65, 65, 65, 68, 78, 88]


@pytest.mark.parametrize(
    "own_clock", [None, clock(drift="-2%"), clock(drift="3%", jumps=[{"at": "46ms", "by": "-9ms"}])]
)
def test_after_an_emergency_stop_a_step_counts_from_where_the_program_stands(own_clock: Any) -> None:
    times: list[int] = []

    def guard(self: Participant) -> None:
        self.advance(to="42ms")
        self.estop("smoke")

    def program(self: Participant) -> None:
        with pytest.raises(EmergencyStop):
            self.advance(by="100ms", clock="local")
        stood, shown = self.now, self.clock.now
        self.advance(by="20ms", clock="local")
        times.extend((stood // MS, (self.clock.now - shown) // MS))

    made = federation(program, "45ms hang me 10ms", estop="5ms", clock=own_clock)
    run(replace(made, programs={**made.programs, "guard": Program(guard)}))
    assert times == [55, 20]


def test_buffers_apply_to_what_a_hang_has_held() -> None:
    seen: list[list[int]] = []

    def program(self: Participant) -> None:
        seen.extend(heard(self.advance(to=time * MS)) for time in range(20, 120, 20))

    run(federation(program, "35ms hang me 50ms", subscribes={"tick": "mailbox"}))
    assert seen == [[1], [3], [8], [], [9]]


def test_whoever_is_slow_acts_later_each_time() -> None:
    times: list[int] = []

    def program(self: Participant) -> None:
        for _ in range(4):
            self.next()
            times.append(self.now // MS)

    run(federation(program, "15ms slow me 4ms 10ms"))
    assert times == [11, 25, 31, 41]


def sending_each_ms(self: Participant) -> None:
    for number in range(1, 40):
        self.publish("m", bytes([number]), at=(number - 1) * MS)  # It arrives a millisecond later.
        self.publish("d", bytes([number]), at=(number - 1) * MS)


def instants(fault: str, durable: tuple[str, ...] = ()) -> tuple[list[tuple[int, str, list[int]]], list[int]]:
    """Return what a program is given, by time and topic, and when it sends something that is heard."""
    given: list[tuple[int, str, list[int]]] = []
    sent: list[int] = []

    def me(self: Participant) -> None:
        self.publish("said", b"")
        while True:
            batch = self.next(within="1ms")
            topics = sorted({message.topic for message in batch})
            given.extend(
                (self.now // MS, topic, heard([message for message in batch if message.topic == topic]))
                for topic in topics
            )
            self.publish("said", b"")

    def hears(self: Participant) -> None:
        sent.extend(message.sent // MS for message in self.messages())

    programs = {
        "hears": Program(hears, subscribes=["said"]),
        "me": Program(me, subscribes=["m", "d"], durable=durable),
        "sends": Program(sending_each_ms),
    }
    run(Federation(programs, network=Network(default=link("1ms")), until="20ms", faults=(fault,)))
    return [each for each in given if each[0] >= 9], sorted({each for each in sent if 9 <= each <= 16})


def test_a_crash_covers_its_first_instant_and_not_its_last() -> None:
    given, sent = instants("10ms crash me 5ms", durable=("d",))
    assert [each for each in given if each[1] == "m"][:3] == [(9, "m", [9]), (15, "m", [15]), (16, "m", [16])]
    of_durable = [each for each in given if each[1] == "d"]
    assert of_durable[:3] == [(9, "d", [9]), (15, "d", [10, 11, 12, 13, 14]), (15, "d", [15])]
    assert sent == [9, 15, 16]


def test_a_hang_covers_its_first_instant_and_not_its_last() -> None:
    given, sent = instants("10ms hang me 5ms")
    assert [each for each in given if each[1] == "m"][:3] == [
        (9, "m", [9]),
        (15, "m", [10, 11, 12, 13, 14]),
        (15, "m", [15]),
    ]
    assert sent == [9, 15, 16]


def test_a_dropout_covers_its_first_instant_and_not_its_last() -> None:
    assert instants("10ms dropout me 5ms")[1] == [9, 15, 16]


def test_slowness_covers_its_first_instant_and_not_its_last() -> None:
    acted: list[int] = []

    def me(self: Participant) -> None:
        for target in (9, 10, 14, 15):
            self.advance(to=target * MS)
            acted.append(self.now // (MS // 10))

    run(federation(me, "10ms slow me 100us 5ms"))
    assert acted == [90, 101, 141, 150]


def test_what_was_handed_over_for_the_instant_of_a_crash_is_sent() -> None:
    sent: list[int] = []

    def me(self: Participant) -> None:
        self.publish("said", b"", at="10ms")
        self.advance(to="20ms")

    def hears(self: Participant) -> None:
        sent.extend(message.sent // MS for message in self.messages())

    programs = {"hears": Program(hears, subscribes=["said"]), "me": Program(me)}
    run(Federation(programs, until="20ms", faults=("10ms crash me",)))
    assert sent == [10]


def test_a_crash_takes_everything_but_what_is_stable() -> None:
    lives: list[tuple[int, int, list[int]]] = []
    raised: list[str] = []

    def program(self: Participant) -> None:
        mine: list[int] = self.stable.get("heard", [])
        lives.append((self.incarnation, self.now // MS, list(mine)))
        self.subscribe("other")
        try:
            for tick in self.messages():
                mine.append(tick.payload[0])
                self.stable["heard"] = mine[-2:]
        except Exception as error:
            raised.append(repr(error))
        finally:
            if self.now < 100 * MS:
                with pytest.raises(Crashed):
                    self.publish("news", b"never sent")

    outcome = run(federation(program, "45ms crash me 30ms"))
    assert lives == [(0, 0, []), (1, 75, [3, 4])]
    assert not raised
    assert outcome.dropped == {("me", "tick", "lost while its receiver was down"): 3}


def _returns(self: Participant) -> str:
    try:
        self.advance(to="150ms")
    except BaseException:
        return "caught"
    return "lived"


def _exits(self: Participant) -> None:
    try:
        self.advance(to="150ms")
    finally:
        if self.is_crashed:
            sys.exit()


def _goes_on(self: Participant) -> None:
    for _ in range(3):
        with suppress(BaseException):
            self.advance(to="150ms")


def _remembers_a_stop(self: Participant) -> None:
    try:
        self.advance(to="150ms")
    except BaseException:
        if self.is_crashed:
            raise EmergencyStop("me", 0, "made up") from None
        raise


@pytest.mark.parametrize("program", [_returns, _exits, _goes_on, _remembers_a_stop])
@pytest.mark.parametrize(("fault", "lives", "left"), [("45ms crash me 30ms", 2, 150), ("45ms crash me", 1, 45)])
def test_a_program_that_catches_its_crash_has_crashed(
    program: Callable[[Participant], object], fault: str, lives: int, left: int
) -> None:
    begun: list[int] = []

    def counted(self: Participant) -> object:
        begun.append(self.incarnation)
        return program(self)

    outcome = run(federation(counted, fault))
    assert begun == list(range(lives))
    assert outcome.times["me"] == left * MS


def test_what_is_durable_waits_and_the_rest_is_lost() -> None:
    first: list[tuple[int, list[int]]] = []

    def program(self: Participant) -> None:
        batch = self.next()
        first.append((self.now // MS, heard(batch)))
        self.advance(to="190ms")

    faults = ("5ms crash me 40ms",)
    run(federation(program, *faults))
    run(federation(program, *faults, durable=["tick"]))
    run(federation(program, *faults, durable=["tick"], subscribes={"tick": "newest(2)"}))
    assert first == [(51, [5]), (45, [1, 2, 3, 4]), (45, [3, 4])]


@pytest.mark.parametrize(
    ("faults", "given", "down", "untaken"),
    [
        (["35ms crash me 20ms"], [1, 2, 3, 6, 7, 8, 9], [4, 5], 0),
        (["31ms crash me 20ms"], [1, 2, 5, 6, 7, 8, 9], [3, 4], 0),  # At 31 ms it is down, and at 51 ms it is up.
        (["35ms crash me"], [1, 2, 3], [], 0),  # Nobody is there for what comes next.
        (["me receives tick 3: crash me 25ms"], [1, 2, 6, 7, 8, 9], [3, 4, 5], 0),
        (["me receives tick 3: crash me"], [1, 2], [3], 0),
        (["35ms hang me 100ms"], [1, 2, 3], [], 6),  # It is still held at the end.
        (["35ms hang me 30ms", "55ms crash me 20ms"], [1, 2, 3, 8, 9], [6, 7], 2),  # Two had come, and were held.
        (["35ms dropout clock 20ms"], [1, 2, 3, 6, 7, 8, 9], [], 0),
    ],
)
def test_a_recording_has_as_arrived_what_reached_a_participant_that_was_up(
    tmp_path: Path, faults: list[str], given: list[int], down: list[int], untaken: int
) -> None:
    seen: list[int] = []

    def program(self: Participant) -> None:
        seen.extend(tick.payload[0] for tick in self.messages())

    made = replace(federation(program, *faults), until="95ms")
    recorder = Recorder(tmp_path / "run.mcap", made.plan())
    outcome = run(made, observer=recorder)
    recorder.close(dropped=outcome.dropped)
    recording = Recording(tmp_path / "run.mcap")
    arrived = [each.payload[0] for each in recording.arrivals()]
    assert seen == given
    assert [each for each in arrived if each in given] == given
    assert len(arrived) == len(given) + untaken
    assert [each.sequence + 1 for each in recording.losses() if each.reason == DOWN] == down
    assert {(each.receiver, each.topic, each.reason): each.count for each in recording.loss_counts()} == outcome.dropped
    assert outcome.dropped.get(("me", "tick", NEVER_TAKEN), 0) == untaken


def test_a_dropout_is_in_the_log_and_says_what_it_lost() -> None:
    made = federation(lambda self: list(self.messages()), "35ms dropout clock 20ms", "60ms dropout me 5ms")
    outcome = run(made, keep_journals=True)
    assert outcome.dropped == {("me", "tick", "lost in a dropout of its sender"): 2}
    fates = {
        name: [(each.at // MS, each.what) for each in told if isinstance(each, Befell)]
        for name, told in outcome.journals.items()
    }
    assert fates == {"clock": [(40, "35ms dropout clock 20ms")], "me": [(61, "60ms dropout me 5ms")]}


def test_a_partition_cuts_off_in_both_directions() -> None:
    echoed: list[int] = []

    def clock(self: Participant) -> None:
        for number in range(1, 10):
            self.publish("tick", bytes([number]))
            echoed.extend(heard(self.advance(by="10ms")))

    def echo(self: Participant) -> None:
        for tick in self.messages():
            self.publish("echo", tick.payload)

    for cut_off in ("clock", "me"):
        echoed.clear()
        programs = {
            "clock": Program(clock, publishes=["tick"], subscribes=["echo"]),
            "me": Program(echo, publishes=["echo"], subscribes=["tick"]),
        }
        outcome = run(Federation(programs, faults=(f"20500us partition {cut_off} 20ms",), until="200ms"))
        # The third tick is sent before, and its echo afterward.
        assert echoed == [1, 2, 6, 7, 8, 9]
        assert outcome.dropped == {
            ("me", "tick", CUT_OFF): 2,
            ("clock", "echo", CUT_OFF): 1,
        }


def test_a_dropout_is_noted_when_it_has_begun() -> None:
    def program(self: Participant) -> None:
        self.advance(to="10ms")
        self.publish("news", b"", at="40ms")
        self.advance(to="45ms")

    outcome = run(federation(program, "30ms dropout me 20ms"), keep_journals=True)
    fates = [(each.at // MS, each.what) for each in outcome.journals["me"] if isinstance(each, Befell)]
    assert fates == [(45, "30ms dropout me 20ms")]


def test_a_crash_without_recovery_is_the_end() -> None:
    outcome = run(federation(lambda self: self.advance(to="150ms"), "45ms crash me"))
    assert outcome.times["me"] == 45 * MS
    assert outcome.times["clock"] == 190 * MS


def test_a_promise_outlives_a_crash() -> None:
    def program(self: Participant) -> None:
        if not self.incarnation:
            self.promise(until="80ms")
        self.publish("news", b"", at=None if self.incarnation else "80ms")
        self.advance(to="150ms")

    outcome = run(federation(program, "20ms crash me 10ms"), keep_journals=True)
    assert [entry.at // MS for entry in outcome.journals["me"] if hasattr(entry, "payload")] == [80, 80]


def test_a_period_holds_after_a_boot_and_a_hang() -> None:
    times: list[int] = []

    def program(self: Participant) -> None:
        while self.now < 90 * MS:
            times.append(self.now // MS)
            self.publish("news", b"")
            self.advance(by="10ms")

    run(federation(program, "35ms hang me 21ms", boot="7ms", period="10ms"))
    assert times == [10, 20, 30, 60, 70, 80]


@pytest.mark.parametrize(("fault", "starts"), [("8ms crash me", []), ("8ms crash me 15ms", [30])])
def test_a_crash_while_it_waits_for_its_period_after_a_boot(fault: str, starts: list[int]) -> None:
    lives: list[int] = []

    def program(self: Participant) -> None:
        lives.append(self.now // MS)

    outcome = run(federation(program, fault, boot="7ms", period="10ms"))
    assert lives == starts
    assert outcome.times["me"] == (starts[0] if starts else 8) * MS


@pytest.mark.parametrize(("lasts", "back"), [("5ms", 35), ("30ms", 52)])
def test_a_crash_of_somebody_that_is_down_is_in_its_log(lasts: str, back: int) -> None:
    def program(self: Participant) -> None:
        self.publish("news", b"", at="22ms")
        self.advance(to="150ms")

    event = f"me sends news: crash me {lasts}"
    outcome = run(federation(program, "20ms crash me 15ms", event), keep_journals=True)
    assert [
        str(entry.at // MS) + f" {entry.what}" for entry in outcome.journals["me"] if isinstance(entry, Befell)
    ] == [
        "20 20ms crash me 15ms",
        f"{back} {event}, before it was up",
        f"{back} it recovers, and is incarnation 1",
    ]


def test_a_crash_while_it_boots_is_in_its_log() -> None:
    made = federation(lambda self: None, "6ms crash me 20ms", boot="uniform(5ms, 7ms)")
    outcome = run(made, keep_journals=True, draws={"boot/me": "7ms"})
    assert [(entry.at // MS, entry.what) for entry in outcome.journals["me"] if isinstance(entry, Befell)] == [
        (26, "6ms crash me 20ms, before it was up"),
        (26, "it has booted"),
    ]
    with pytest.raises(ConfigurationError, match="4ms crash me: me boots until 5ms"):
        run(replace(made, faults=("4ms crash me",)))


def test_only_topics_that_are_declared_are_durable() -> None:
    with pytest.raises(ConfigurationError, match="me: 'tock' is durable, and it doesn't subscribe to it"):
        run(federation(ticking, durable=["tock"]))


def test_who_is_back_before_it_would_have_sent_sends_at_its_next_period() -> None:
    sent: list[int] = []

    def program(self: Participant) -> None:
        if self.incarnation:
            self.publish("news", b"")
            sent.append(self.now // MS)
        self.advance(to="150ms")

    outcome = run(federation(program, "15ms crash me 21ms", period="10ms"), keep_journals=True)
    assert sent == [40]
    assert [entry.at // MS for entry in outcome.journals["me"] if hasattr(entry, "payload")] == [40]


@pytest.mark.parametrize("estop", [None, "1ms"])
def test_a_wait_that_is_over_at_once_promises_nothing(estop: str | None) -> None:
    def program(self: Participant) -> None:
        assert heard(self.next()) == [1]
        assert self.now == 20 * MS
        assert self.next(until=self.now) == []
        self.publish("news", b"")

    made = federation(program, estop=estop, period="10ms")
    run(replace(made, network=Network(default=link("10ms"))))


def test_a_fault_after_an_event() -> None:
    times: list[int] = []

    def program(self: Participant) -> None:
        times.append(self.now // MS)
        for _ in self.messages():
            self.publish("a", b"")
            self.publish("b", b"")

    outcome = run(federation(program, "me sends a 3: crash me 25ms"), keep_journals=True)
    assert times == [0, 56]
    sent = [entry.topic for entry in outcome.journals["me"] if hasattr(entry, "payload")]
    assert sent[:6] == ["a", "b", "a", "b", "a", "a"]


def test_a_fault_that_waited_in_vain_is_remarked_on() -> None:
    def program(self: Participant) -> None:
        self.next()
        self.publish("a", b"")

    faults = (
        "me sends a 2: crash me",
        "me sends a: hang me 1ms",
        "me receives tick 9: hang me 1ms",
        "me sends b: crash me",
    )
    assert run(federation(program, *faults)).remarks() == [
        "me receives tick 9: hang me 1ms never happened: me was given only 1 message on tick",
        "me sends a 2: crash me never happened: me sent only 1 message on a",
        "me sends b: crash me never happened: me sent nothing on b",
    ]


def test_a_fault_at_a_time_at_which_its_participant_had_left_is_remarked_on() -> None:
    def program(self: Participant) -> None:
        self.advance(to="20ms")
        self.publish("a", b"", at="30ms")

    faults = ("20ms hang me 1ms", "22ms hang me 3ms", "29ms dropout me 5ms", "23ms crash me")
    assert run(federation(program, *faults)).remarks() == [
        "22ms hang me 3ms never happened: me left at 21ms",
        "23ms crash me never happened: me left at 21ms",
    ]
    alone = Federation({"me": Program(program)}, faults=("29ms dropout me 2ms", "32ms dropout me 2ms"))
    assert run(alone).remarks() == ["32ms dropout me 2ms never happened: me left at 20ms"]


def test_a_crash_in_a_hang_before_the_program_has_begun() -> None:
    lives: list[int] = []
    faults = ("10ms crash me 10ms", "15ms hang me 20ms", "30ms crash me 20ms")
    run(federation(lambda self: lives.append(self.now // MS), *faults, boot="1ms"))
    assert lives == [1]

    def program(self: Participant) -> None:
        lives.append(self.now // MS)
        self.advance(to="100ms")

    run(federation(program, *faults))
    assert lives == [1, 0, 50]


def test_peeking_sees_no_further_than_a_crash() -> None:
    seen: list[int] = []

    def program(self: Participant) -> None:
        while self.now < 40 * MS:
            seen.append(self.peek() // MS)
            self.advance(to=seen[-1] * MS)
            self.next(until=self.now + 1)

    made = federation(program, "15ms crash me 10ms", publishes=[])
    run(replace(made, network=Network(default=link("5ms"))))
    assert 15 in seen


@pytest.mark.parametrize("is_changed", ["subscribe", "unsubscribe"])
def test_an_incarnation_peeks_as_far_as_the_first(is_changed: str) -> None:
    reaches: list[int] = []

    def program(self: Participant) -> None:
        reaches.append(self.reach // MS)
        if not self.incarnation and is_changed == "subscribe":
            self.subscribe("other")
        elif not self.incarnation:
            self.unsubscribe("tick")
        else:
            assert self.peek() == 25 * MS
            self.next()
            assert self.peek() == 30 * MS
            self.advance(to="30ms")
            assert self.peek() == 35 * MS
        self.advance(to="150ms")

    made = federation(program, "12ms crash me 10ms", publishes=[])
    run(replace(made, network=Network(default=link("5ms"))))
    assert reaches == [5, 5]


@pytest.mark.parametrize(("declared", "other", "given"), [("newest(1)", "unbounded", 1), ("discard", "unbounded", 0)])
def test_an_incarnation_has_the_buffers_that_were_declared(declared: str, other: str, given: int) -> None:
    seen: list[int] = []

    def program(self: Participant) -> None:
        if not self.incarnation:
            self.unsubscribe("tick")
            self.subscribe("tick", other)
        elif not given:
            assert self.peek() > 90 * MS  # Nothing can reach it.
        seen.append(len(self.advance(by="40ms")))
        self.advance(to="150ms")

    run(federation(program, "45ms crash me 10ms", subscribes={"tick": declared}, publishes=[]))
    assert seen == [3, given]


def test_what_is_durable_waits_also_if_the_program_had_unsubscribed() -> None:
    seen: list[int] = []

    def program(self: Participant) -> None:
        if not self.incarnation:
            self.unsubscribe("tick")
            self.advance(to="150ms")
        seen.extend(heard(self.next()))

    outcome = run(federation(program, "25ms crash me 30ms", durable=["tick"]))
    assert (seen, outcome.dropped) == ([3, 4, 5], {})


def test_messages_arrive_with_a_bit_flipped() -> None:
    found: list[int] = []

    def program(self: Participant) -> None:
        found.extend(bin(tick.payload[0] ^ tick.sequence + 1).count("1") for tick in self.messages())

    run(replace(federation(program), network=Network(default=link("1ms", corruption=1.0))))
    assert found == [1] * 19


def test_an_emergency_stop_reaches_everybody_in_time() -> None:
    told: list[tuple[int, str, int]] = []

    def guard(self: Participant) -> None:
        self.advance(to="42ms")
        assert self.estop("smoke") == 47 * MS
        assert self.estop("again") == 47 * MS
        self.advance(to="60ms")

    def program(self: Participant) -> None:
        with pytest.raises(EmergencyStop) as raised:
            self.advance(to="150ms")
        told.append((self.now // MS, raised.value.reason, raised.value.at // MS))
        assert self.estopped is not None
        self.estop_done("stopped")
        assert heard(self.advance(to="50ms")) == [1, 2, 3, 4]

    made = federation(program, estop="5ms")
    outcome = run(replace(made, programs={**made.programs, "guard": Program(guard)}))
    assert told == [(47, "smoke", 42)]
    assert outcome.times["clock"] == 47 * MS  # It doesn't catch it.
    assert [str(note) for note in outcome.emergency if note.participant != "clock"] == [
        "42ms guard: emergency stop: smoke",
        "47ms me: emergency stop, told by guard: smoke",
        "47ms me: emergency stop, done: stopped",
    ]


@pytest.mark.parametrize(("second", "counts"), [(44, ("bob", 42)), (42, ("ann", 42))])
def test_of_two_emergency_stops_the_earliest_counts_for_everybody(second: int, counts: tuple[str, int]) -> None:
    known: dict[str, list[tuple[str, int] | None]] = {}

    def calling(at: int) -> Callable[[Participant], None]:
        def program(self: Participant) -> None:
            self.advance(to=at * MS)
            self.estop(f"at {at}")
            known[self.name] = [notice(self)]
            self.advance(to="60ms")
            known[self.name].append(notice(self))

        return program

    def program(self: Participant) -> None:
        with pytest.raises(EmergencyStop):
            self.advance(to="150ms")
        self.advance(to="60ms")
        known[self.name] = [notice(self)]

    def notice(self: Participant) -> tuple[str, int] | None:
        return None if self.estopped is None else (self.estopped.by, self.estopped.at // MS)

    made = federation(program, estop="5ms")
    callers = {"bob": Program(calling(42)), "ann": Program(calling(second))}
    outcome = run(replace(made, programs={**made.programs, **callers}))
    assert known == {"bob": [("bob", 42), counts], "ann": [("ann", second), counts], "me": [counts]}
    beaten = "ann" if counts[0] == "bob" else "bob"
    assert f"60ms {beaten}: emergency stop, told by {counts[0]}: at 42" in map(str, outcome.emergency)


@pytest.mark.parametrize("period", ["0ms", "10ms"])
def test_who_is_told_of_an_emergency_sends_as_soon_as_it_may(period: str) -> None:
    def guard(self: Participant) -> None:
        self.advance(to="33ms")
        self.estop("smoke")

    def program(self: Participant) -> None:
        try:
            while True:
                self.promise(self.now + 10 * MS)
                self.advance(by="10ms")
        except EmergencyStop:
            self.publish("brake", b"")

    def brake(self: Participant) -> None:
        with suppress(EmergencyStop):
            self.advance(to="60ms")
        braked.extend(message.sent // MS for message in self.advance(to="60ms"))

    braked: list[int] = []
    programs = {
        "guard": Program(guard),
        "me": Program(program, publishes=["brake"], period=period),
        "brake": Program(brake, subscribes=["brake"]),
    }
    run(Federation(programs, until="90ms", estop="5ms"))
    assert braked == [40]


def test_a_line_of_a_program_is_no_emergency_stop() -> None:
    def program(self: Participant) -> None:
        self.log("emergency stop: only a line")
        self.log("fault: likewise")

    assert run(federation(program, estop="5ms")).emergency == ()


def test_an_emergency_stop_is_no_later_than_it_says() -> None:
    made = federation(lambda self: None, estop="5ms", latency_least="5001us")
    with pytest.raises(ConfigurationError, match=r"me needs at least 5\.001ms for what it sends, and"):
        run(made)
    run(federation(lambda self: None, estop="5ms", latency_least="5ms"))


def test_without_a_latency_there_is_no_emergency_stop() -> None:
    with pytest.raises(UsageError, match="has no emergency stop"):
        run(federation(lambda self: self.estop("smoke")))
    with pytest.raises(UsageError, match="no emergency stop has been called"):
        run(federation(lambda self: self.estop_done("nothing"), estop="1ms"))


def test_faults_can_be_replaced() -> None:
    made = federation(ticking, "10ms crash me", publishes=["x", "tick"])
    assert run(replace(made, faults=())).digest != run(made).digest
    assert run(replace(made, faults=tuple(map(str, made.faults)))).digest == run(made).digest
    with pytest.raises(ConfigurationError, match="there is no participant"):
        run(replace(made, faults=("1s crash nobody",)))


def test_a_fault_that_meets_no_sequence_point_changes_no_digest() -> None:
    quiet = federation(ticking)
    assert run(replace(quiet, faults=("199ms hang me 1ns",))).digest == run(quiet).digest


def test_what_is_stored_is_copied() -> None:
    store, value = StableStore(), [1]
    store["a"] = value
    value.append(2)
    store["a"].append(3)
    assert store["a"] == [1]
    assert (list(store), len(store)) == (["a"], 1)
    del store["a"]
    assert not store
