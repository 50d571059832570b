"""Any simulator that can run to a time, and take and give messages, can be driven."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metasim.simulators import Counter, Noted
from worldline import MS, Federation, Message, Network, Participant, Program, clock, link, run
from worldline.history.journal import Sent
from worldline.metasim import MessageSimulator, Send, SimulatorEnded, drive
from worldline.model import TIME_MAX, BrokenPromise, LocalClock, ModelError, UsageError
from worldline.model.clock import RunningClock
from worldline.model.links import Rule

END = "200ms"


def driven(simulator: MessageSimulator) -> Callable[[Participant], None]:
    return lambda me: drive(me, simulator)


def pair(a: Counter, b: Counter, forth: int = 10 * MS, back: int = 10 * MS) -> Federation:
    programs = {
        "a": Program(driven(a), publishes=["A"], subscribes=["B"]),
        "b": Program(driven(b), publishes=["B"], subscribes=["A"]),
    }
    return Federation(programs, network=Network(default=link(forth), rules=(Rule(link=link(back), sender="b"),)))


def by_hand(periods: tuple[int, int], latencies: tuple[int, int], end: int) -> list[list[Noted]]:
    """Run two counters in one loop over all times."""
    count, noted, under_way = [0, 0], [[], []], [[], []]  # type: ignore[var-annotated]
    for now in range(0, end + 1, MS):
        for side in (0, 1):
            if now % periods[side] == 0:
                count[side] += 1
                under_way[1 - side].append((now + latencies[side], count[side]))
        for side in (0, 1):
            while now < end and under_way[side] and under_way[side][0][0] == now:
                _, value = under_way[side].pop(0)
                noted[side].append((now, "ba"[side], str(value)))
                count[side] += value % 7
    return noted


@given(
    periods=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    latencies=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    blind=st.tuples(st.booleans(), st.booleans()),
    end=st.integers(1, 150),
)
def test_two_counters_against_a_loop_by_hand(
    periods: tuple[int, int], latencies: tuple[int, int], blind: tuple[bool, bool], end: int
) -> None:
    a, b = (
        Counter(channel, period * MS, blind=is_blind)
        for channel, period, is_blind in zip("AB", periods, blind, strict=True)
    )
    run(pair(a, b, latencies[0] * MS, latencies[1] * MS), end * MS)
    expected = by_hand((periods[0] * MS, periods[1] * MS), (latencies[0] * MS, latencies[1] * MS), end * MS)
    assert [a.noted, b.noted] == expected


@pytest.mark.parametrize("blind", [False, True])
def test_ten_messages_of_one_long_advance_have_ten_times(blind: bool) -> None:
    a, b = Counter("A", 10 * MS, blind=blind), Counter("B", 500 * MS)
    outcome = run(pair(a, b, 100 * MS, 100 * MS), "100ms", keep_journals=True)
    sent = [entry.at for entry in outcome.journals["a"] if isinstance(entry, Sent)]
    assert sent == [step * 10 * MS for step in range(11)]


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("drift", ["1234567ppb", "-1234567ppb", "40%", "-40%"])
def test_a_simulator_lives_in_the_time_of_its_participants_clock(blind: bool, drift: str) -> None:
    """It sends when the clock shows its times, and is given what arrives when the clock shows that."""

    class Ticking(Counter):
        stops: ClassVar[list[int]] = []

        def advance_to(self, time: int) -> None:
            self.stops.append(time)
            super().advance_to(time)

        def receive(self, messages: list[Message]) -> None:
            self.noted += [(self._now, message.sender, str(message.arrival)) for message in messages]

    described = clock(offset="1ms", drift=drift)
    own = RunningClock(described, 0, "a")
    ticking, b = Ticking("A", 10 * MS, blind=blind), Counter("B", 7 * MS)
    federation = pair(ticking, b)
    programs = {**federation.programs, "a": replace(federation.programs["a"], clock=described)}
    outcome = run(replace(federation, programs=programs), END, keep_journals=True)
    sent = [entry.at for entry in outcome.journals["a"] if isinstance(entry, Sent)]
    multiples = [own.true(each, 0) for each in range(10 * MS, 400 * MS, 10 * MS)]
    assert sent == [0, *(each for each in multiples if each <= 200 * MS)]
    assert ticking.stops == sorted(ticking.stops)
    assert len(ticking.noted) > 20
    assert all(0 <= own.local(int(arrival)) - shown <= 1 for shown, _, arrival in ticking.noted)


@pytest.mark.parametrize(
    ("described", "text"),
    [
        (clock(offset="-1ms"), "a at 0s: its clock shows -1ms, and no simulator can stand there"),
        (clock(jumps=[{"at": "1s", "by": "-1ms"}]), "a at 0s: its clock is set back in the run"),
    ],
)
def test_no_simulator_goes_back_or_below_zero(described: LocalClock, text: str) -> None:
    program = Program(driven(Counter("A", 10 * MS)), clock=described)
    with pytest.raises(UsageError, match=re.escape(text)):
        run(Federation({"a": program}), END)


def test_a_jump_forward_is_run_through_at_once() -> None:
    program = Program(driven(Counter("A", 10 * MS)), clock=clock(jumps=[{"at": "25ms", "by": "30ms"}]))
    outcome = run(Federation({"a": program}), "40ms", keep_journals=True)
    sent = [entry.at // MS for entry in outcome.journals["a"] if isinstance(entry, Sent)]
    assert sent == [0, 10, 20, 25, 25, 25, 30, 40]


def test_it_promises_what_it_knows() -> None:
    class Noting:
        name, now, ended = "a", 0, False
        promised: ClassVar[list[int]] = []

        goes_back = False

        @property
        def clock(self) -> object:
            return self  # It shows true time.

        def publish(self, *_: object, at_once: bool, clock: str) -> None: ...

        def next(self, until: int, promise: int | None, clock: str) -> list[Message]:
            assert promise is not None
            self.promised.append(promise)
            self.now, self.ended = until, until == 30 * MS
            return []

    drive(Noting(), Counter("A", 10 * MS))  # type: ignore[arg-type]
    assert Noting.promised == [10 * MS, 20 * MS, 30 * MS]


def test_one_that_nobody_sends_anything_goes_step_by_step() -> None:
    """It would be out of reach of any server that holds it otherwise, and of all who wait for it."""
    stops: list[int] = []

    class Alone(Counter):
        def advance_to(self, time: int) -> None:
            stops.append(time)
            super().advance_to(time)

    a, b = Alone("A", 10 * MS, blind=True), Counter("B", 10 * MS)
    programs = {"a": Program(driven(a), publishes=["A"]), "b": Program(driven(b), publishes=["B"], subscribes=["A"])}
    run(Federation(programs, network=Network(default=link("10ms"))), "250ms")
    assert stops == [100 * MS, 200 * MS, 250 * MS]
    assert len(b.noted) == 24


class Silent:
    """Only listens."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.now = 0

    def begin(self, now: int, send: Send) -> None:
        self.send = send

    def due(self) -> int | None:
        return TIME_MAX

    def advance_to(self, time: int) -> None:
        self.now = time

    def receive(self, messages: list[Message]) -> None:
        self.heard += messages


def with_listener(listener: Any, talker: MessageSimulator | None = None) -> Federation:
    programs = {
        "talker": Program(driven(talker or Counter("A", 10 * MS)), publishes=["A"]),
        "listener": Program(driven(listener), publishes=["B"], subscribes=["A"]),
    }
    return Federation(programs, network=Network(default=link("10ms")))


def test_one_that_only_listens_goes_to_the_end() -> None:
    listener = Silent()
    run(with_listener(listener), "95ms")
    assert [message.arrival for message in listener.heard] == [step * 10 * MS for step in range(1, 10)]
    assert listener.now == 95 * MS


def test_a_send_before_it_is_due_is_refused_where_it_happens() -> None:
    class Rash(Counter):
        def receive(self, messages: list[Message]) -> None:
            self._send("A", b"now", messages[0].arrival)

    rash = Rash("A", 50 * MS)
    text = "a at 10ms: a send at 10ms breaks its promise until 50ms"
    with pytest.raises(BrokenPromise, match=re.escape(text)) as caught:
        run(pair(rash, Counter("B", 10 * MS)), END)
    assert caught.value.facts == {"promise": 50 * MS, "attempt": 10 * MS}


def test_a_send_on_the_way_that_nobody_expected_is_refused_too() -> None:
    class Early(Counter):
        def advance_to(self, time: int) -> None:
            self._send("A", b"early", time - 5 * MS)

    text = "a at 45ms: a send at 45ms breaks its promise until 50ms"
    with pytest.raises(BrokenPromise, match=re.escape(text)):
        run(pair(Early("A", 50 * MS), Counter("B", 100 * MS), 100 * MS, 100 * MS), END)


def test_a_blind_one_may_send_when_something_arrives() -> None:
    class Echo(Silent):
        def due(self) -> int | None:
            return None

        def receive(self, messages: list[Message]) -> None:
            super().receive(messages)
            for message in messages:
                self.send("B", message.payload, message.arrival)

    outcome = run(with_listener(Echo()), "95ms", keep_journals=True)
    sent = [entry.at for entry in outcome.journals["listener"] if isinstance(entry, Sent)]
    assert sent == [step * 10 * MS for step in range(1, 10)]


def test_one_that_ends_itself_leaves_and_the_others_go_on() -> None:
    class Mortal(Counter):
        def advance_to(self, time: int) -> None:
            super().advance_to(time)
            if time >= 50 * MS:
                raise SimulatorEnded

    listener = Silent()
    outcome = run(with_listener(listener, Mortal("A", 10 * MS)), END)
    assert [message.arrival for message in listener.heard] == [step * 10 * MS for step in range(1, 7)]
    assert outcome.members["talker"].at == 50 * MS
    assert outcome.members["listener"].at == 200 * MS


def test_what_a_simulator_raises_names_it_and_the_time() -> None:
    class Broken(Counter):
        def advance_to(self, time: int) -> None:
            if time == 30 * MS:
                raise ValueError("it broke")
            super().advance_to(time)

    with pytest.raises(ModelError, match=r"a at 30ms: its program raised ValueError: it broke, in test_driving.py"):
        run(pair(Broken("A", 10 * MS), Counter("B", 10 * MS)), END)


def test_a_newcomer_begins_when_it_is_invited() -> None:
    begun: list[int] = []

    class Late(Counter):
        def begin(self, now: int, send: Send) -> None:
            begun.append(now)
            super().begin(now, send)

    def inviting(me: Participant) -> None:
        me.invite("late", "35ms")
        me.advance("100ms")

    late = Late("A", 10 * MS)
    programs = {
        "host": Program(inviting, publishes=[], controls=True),
        "late": Program(driven(late), publishes=["A"], guest=True),
    }
    outcome = run(Federation(programs), "100ms", keep_journals=True)
    assert begun == [35 * MS]
    sent = [entry.at for entry in outcome.journals["late"] if isinstance(entry, Sent)]
    assert sent == [35 * MS, *range(40 * MS, 101 * MS, 10 * MS)]


class Stalled:
    """A simulator that is to send now, again and again, and doesn't."""

    def begin(self, now: int, send: Send) -> None: ...

    def due(self) -> int:
        return 20 * MS

    def advance_to(self, time: int) -> None: ...

    def receive(self, messages: list[Message]) -> None: ...


def test_a_simulator_that_doesnt_go_on_is_told_so() -> None:
    with pytest.raises(ModelError, match="a at 20ms: its simulator is to send next at 20ms, which isn't after now"):
        run(Federation({"a": Program(driven(Stalled()))}), until="1s")


class Punctual:
    """A simulator that sends at every multiple of 10 ms that it is told to run to."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self._now = 0

    def begin(self, now: int, send: Send) -> None:
        self._send = send

    def due(self) -> int:
        return (self._now // (10 * MS) + 1) * 10 * MS

    def advance_to(self, time: int) -> None:
        self.told.append(time)
        self._now = time
        if time % (10 * MS) == 0:
            self._send("A", b"1", time)

    def receive(self, messages: list[Message]) -> None: ...


def test_a_simulator_is_told_each_time_once() -> None:
    simulator = Punctual()
    programs = {
        "a": Program(driven(simulator), publishes=["A"], subscribes=["B"]),
        "b": Program(driven(Counter("B", 10 * MS)), publishes=["B"], subscribes=["A"]),
    }
    run(Federation(programs, network=Network(default=link("10ms"))), until="50ms")
    assert simulator.told == [10 * MS, 20 * MS, 30 * MS, 40 * MS, 50 * MS]
