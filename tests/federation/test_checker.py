"""The checker finds what depends on the schedule, says where, and repeats it. Every clean run has a leaky twin."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from worldline import Federation, Message, Network, Participant, Program, check, link
from worldline.federation.inprocess import checker
from worldline.federation.inprocess import run as inprocess
from worldline.federation.inprocess.checker import (
    ChosenSchedule,
    Divergence,
    SampledSchedule,
    check_every_schedule,
    compare,
    parse_schedule,
)
from worldline.federation.inprocess.run import Schedule
from worldline.history.difference import Difference
from worldline.history.observer import Observer
from worldline.history.outcome import Status, WaitReason
from worldline.history.parting import Causes, Partings
from worldline.lock import Action, Arbiter, Event, Publish
from worldline.model import NonDeterminism, Plan, Stuck, UsageError


def talk(self: Participant) -> None:
    for _ in range(3):
        self.publish("news", self.name.encode())
        self.advance(to=self.now + 1_000_000)


def listen(self: Participant) -> None:
    for message in self.messages(until="10ms"):
        self.publish("echo", message.payload)


def clean() -> Federation:
    return Federation(
        {
            "ann": Program(run=talk, publishes=["news"]),
            "bob": Program(run=talk, publishes=["news"]),
            "ear": Program(run=listen, publishes=["echo"], subscribes=["news"]),
        },
        network=Network(default=link("1ms")),
    )


def leaky() -> Federation:
    """The same, but the talkers share a variable outside of their participants."""
    said: list[str] = []

    def chatter(self: Participant) -> None:
        if not said:
            said.append(self.name)
        self.publish("news", f"{said[0]} spoke first".encode())
        self.advance(to="5ms")

    programs = dict(clean().programs)
    programs["ann"] = programs["bob"] = Program(run=chatter, publishes=["news"])

    class Fresh(Federation):
        """Forgets the leak between runs: it must show by the schedule alone."""

        def plan(self) -> Plan:
            said.clear()
            return super().plan()

    return Fresh(programs, network=clean().network)


class StampsOnReceipt(Arbiter):
    """An arbiter as many write it: what comes in later was sent later."""

    def __init__(self, plan: Plan, observer: Observer | None = None) -> None:
        super().__init__(plan, observer)
        self._heard = 0

    def hear(self, who: str, events: list[Event]) -> list[Action]:
        return super().hear(who, [self._stamped(event) for event in events])

    def _stamped(self, event: Event) -> Event:
        if not isinstance(event, Publish):
            return event
        self._heard += 1
        return Publish(event.topic, event.payload, event.at + self._heard)


@pytest.mark.soak  # `make test` tries all schedules of another one: see case 12 of the lock.
def test_a_clean_federation_gives_one_history_in_every_schedule() -> None:
    verdict = check_every_schedule(clean(), split=False)
    assert verdict.complete
    assert verdict.divergence is None
    assert verdict.schedules > 100
    verdict.demand_same()


def running_ahead(see: Callable[[Participant], int]) -> Federation:
    """Two who run as far as they see, and say how far that was."""

    def run_ahead(self: Participant) -> None:
        while self.now < 2_000_000:
            known = min(max(see(self), self.now + 1), 9_000_000)
            self.publish("seen", b"%d" % known, at=known - 1)
            self.next(until=known)

    programs = {name: Program(run=run_ahead, subscribes=["seen"]) for name in ("ann", "bob")}
    return Federation(programs, network=Network(default=link("1ms")))


def test_one_that_peeks_sees_the_same_in_every_schedule() -> None:
    verdict = check_every_schedule(running_ahead(lambda me: me.peek()), split=False)
    assert (verdict.complete, verdict.divergence) == (True, None)
    assert verdict.schedules > 10
    assert check(running_ahead(lambda me: me.peek()), schedules=100).divergence is None


def test_one_that_looks_at_how_far_it_was_granted_is_caught() -> None:
    assert check(running_ahead(lambda me: me._ledger.horizon), schedules=100).divergence is not None


def test_samples_are_taken_where_there_are_too_many_schedules() -> None:
    verdict = check(clean(), schedules=40)
    assert (verdict.schedules, verdict.complete, verdict.divergence) == (40, False, None)


def test_enumeration_refuses_what_it_cannot_finish() -> None:
    with pytest.raises(UsageError, match="more than 50 schedules"):
        check_every_schedule(clean(), schedules_max=50)


def test_a_leaky_participant_is_caught_and_its_run_repeats() -> None:
    verdict = check(leaky(), schedules=200)
    divergence = verdict.divergence
    assert divergence is not None
    assert "spoke first" in str(divergence)
    with pytest.raises(NonDeterminism, match="the history depends on the schedule"):
        verdict.demand_same()
    assert compare(leaky(), parse_schedule(divergence.schedule)) == divergence
    assert divergence.lines()[:2] == ["A  in-order", f"B  {divergence.schedule}"]


def test_a_difference_is_followed_from_its_cause_on() -> None:
    divergence = check(leaky(), schedules=200).divergence
    assert divergence is not None
    assert divergence.difference is not None
    assert divergence.participant in ("ann", "bob")
    assert [step.what for step in divergence.difference.chain()][:2] == [
        "sends news",
        f"receives news from {divergence.participant}",
    ]


def test_another_time_of_receiving_is_a_difference_by_itself() -> None:
    """It is in nobody's messages, only in when the program is given them."""
    turn: list[str] = []

    def listen_late(self: Participant) -> None:
        turn.append(self.name)
        self.advance(to=20_000_000 if turn[0] == self.name else 30_000_000)

    def fresh() -> Federation:
        turn.clear()
        ears = {name: Program(run=listen_late, subscribes=["news"]) for name in ("ear", "eye")}
        return Federation({"ann": Program(run=talk, publishes=["news"]), **ears}, network=clean().network)

    divergence = check(fresh, schedules=100).divergence
    assert divergence is not None
    assert divergence.participant in ("ear", "eye")
    assert "but in B it arrives at" in str(divergence)


def test_an_arbiter_that_goes_by_the_order_of_receipt_is_caught() -> None:
    verdict = check(clean(), schedules=500, arbiter=StampsOnReceipt)
    divergence = verdict.divergence
    assert divergence is not None
    assert divergence.participant == "ear"
    again = compare(clean(), parse_schedule(divergence.schedule), arbiter=StampsOnReceipt)
    assert again == divergence


def test_the_first_divergence_is_the_earliest_in_time() -> None:
    times = {"early": 1_000_000, "late": 2_000_000}
    turn: list[str] = []

    class Fresh(Federation):
        def plan(self) -> Plan:
            turn.clear()
            return super().plan()

    def leak(self: Participant) -> None:
        turn.append(self.name)
        order = turn.index(self.name)
        self.advance(to=times[self.name])
        self.publish("news", b"%d" % order)

    verdict = check(Fresh({name: Program(run=leak) for name in times}), schedules=100)
    assert verdict.divergence is not None
    assert verdict.divergence.participant == "early"


def test_other_losses_alone_are_a_difference_that_nobody_noticed() -> None:
    nothing = Difference(Partings(), Causes({}, []))
    divergence = Divergence("sample:3", nothing)
    assert divergence.lines() == [str(divergence)]
    assert "different messages are lost or dropped" in str(divergence)
    assert divergence.participant is None


def race() -> Federation:
    """Fails only if `b` comes before `a`."""
    flag: list[int] = []

    def first(self: Participant) -> None:
        flag.append(1)
        self.advance(to="1ms")

    def second(self: Participant) -> None:
        if not flag:
            raise ValueError("too early")
        self.advance(to="1ms")

    return Federation({"a": Program(first), "b": Program(second)})


def test_a_program_that_raises_under_some_schedules_is_a_divergence_that_repeats() -> None:
    divergence = check(race, schedules=50).divergence
    assert divergence is not None
    assert "b at 0s: its program raised ValueError: too early" in str(divergence)
    again = compare(race, parse_schedule(divergence.schedule))
    assert again is not None
    assert again.error == divergence.error


def test_what_differs_without_another_schedule_isnt_blamed_on_the_schedule() -> None:
    runs: list[int] = []

    def counter(self: Participant) -> None:
        runs.append(1)
        self.publish("news", b"%d" % len(runs))

    divergence = check(Federation({"a": Program(counter)}), schedules=10).divergence
    assert divergence is not None
    assert divergence.schedule == "in-order"
    assert "state kept between runs" in divergence.reason


def test_a_function_makes_the_federation_anew_for_every_run() -> None:
    class Robot:
        def __init__(self) -> None:
            self.steps = 0

        def run(self, participant: Participant) -> None:
            self.steps += 1
            participant.publish("step", b"%d" % self.steps)

    def fresh() -> Federation:
        return Federation({name: Program(Robot().run) for name in "ab"})

    check(fresh, schedules=20).demand_same()
    with pytest.raises(NonDeterminism, match="state kept between runs"):
        check(fresh(), schedules=20).demand_same()


def test_what_programs_print_isnt_shown(capsys: pytest.CaptureFixture[str]) -> None:
    check(Federation({"a": Program(run=lambda me: print("a is here"))}), schedules=3)
    assert capsys.readouterr().out == ""


def test_a_federation_whose_schedules_change_under_the_checkers_hands_is_non_deterministic() -> None:
    runs: list[int] = []

    def fickle(self: Participant) -> None:
        runs.append(1)
        if self.name == "a" and len(runs) > 4:
            return
        self.promise(until="1ms")
        self.promise(until="2ms")

    assert check(Federation({name: Program(fickle) for name in "ab"}), schedules=30).divergence is not None


def test_depth_first_enumeration_visits_every_schedule_once() -> None:
    # Three steps of two: an invented tree, so that the order can be written down.
    visited = []
    schedule: ChosenSchedule | None = ChosenSchedule()
    while schedule is not None:
        visited.append(tuple(schedule.choose(["x", "y"]) for _ in range(3)))
        schedule = schedule.following()
    assert visited == [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    assert all(earlier < later for earlier, later in pairwise(visited))


@pytest.mark.parametrize("text", ["sample:17", "choices:0.2.1", "frames:1.0"])
def test_a_schedule_is_read_back_from_its_name(text: str) -> None:
    schedule = parse_schedule(text)
    for _ in range(text.count(".") + 1):
        schedule.choose(["a", "b", "c"])
    assert str(schedule) == text


def test_the_plain_schedules_have_names_too() -> None:
    assert type(parse_schedule("in-order")) is Schedule
    assert isinstance(parse_schedule("sample:3"), SampledSchedule)


@pytest.mark.parametrize("text", ["", "sample", "sample:x", "choices:1..2", "choices:-1", "dice:3", "in-order:2"])
def test_nonsense_is_no_schedule(text: str) -> None:
    with pytest.raises(UsageError, match="isn't a schedule"):
        parse_schedule(text)


def test_a_schedule_made_for_another_federation_is_refused() -> None:
    with pytest.raises(UsageError, match="was it made for this federation"):
        compare(clean(), parse_schedule("choices:7"))


def test_what_arrives_at_one_moment_comes_in_one_order() -> None:
    orders: list[list[str]] = []

    def ear(self: Participant) -> None:
        def sender(message: Message) -> str:
            return message.sender

        orders.append([sender(message) for message in self.advance(to="5ms")])

    programs = {**clean().programs, "ear": Program(run=ear, publishes=[], subscribes=["news"])}
    check(Federation(programs, network=clean().network), schedules=60).demand_same()
    assert len(orders) > 50
    assert all(order == ["ann", "bob"] * 3 for order in orders)


def never_waits(me: Participant) -> None:
    me.advance(by="10ms")
    while True:
        pass


@pytest.mark.parametrize(
    "checked", [check, lambda bad, **limits: compare(bad, SampledSchedule(0), **limits)], ids=["check", "compare"]
)
def test_a_run_that_never_ends_is_broken_off_when_time_is_over(
    monkeypatch: pytest.MonkeyPatch, checked: Callable[..., object]
) -> None:
    for name, seconds in (("_WATCH_EVERY_S", 0.001), ("_BUSY_S", 0.0), ("_PATIENCE_S", 0.05)):
        monkeypatch.setattr(inprocess, name, seconds)
    seen: list[WaitReason] = []
    monkeypatch.setattr(checker._Trial, "is_over", lambda _: bool(seen))  # However slow the machine is.

    def watch(status: Status) -> None:
        seen.extend(wait for wait in status.waits if "at 10ms" in wait.why)

    bad = Federation({"bad": Program(never_waits), "good": Program(lambda me: me.advance("20ms"))})
    named = r"^5 seconds are over, and nothing has been compared: the run in order is at \w+: bad has been .* at 10ms"
    with pytest.raises(Stuck, match=named):
        checked(bad, seconds_max=5.0, watch=watch)


def test_what_was_compared_before_time_was_over_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[float] = []

    def third_never_ends() -> Federation:
        is_third = len(runs) == 2
        monkeypatch.setattr(inprocess, "_WATCH_EVERY_S", 0.001 if is_third else 60.0)  # Only the third is looked at.
        runs.append(inprocess._WATCH_EVERY_S)
        return Federation({"a": Program(never_waits if is_third else lambda me: me.advance(by="10ms"))})

    report = check(third_never_ends, seconds_max=0.001)
    assert len(runs) == 3
    assert (report.schedules, report.complete, report.divergence) == (1, False, None)
    assert report.unfinished.startswith("a run under another schedule is at ")
