"""Participants with clocks of their own: what they read and wait for, and what they are told when that can't be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.federation.transports import Strand
from worldline import (
    MS,
    SECOND,
    Federation,
    Participant,
    Program,
    Server,
    check,
    clock,
    connect,
    connect_async,
    plan,
    run,
)
from worldline.federation.participant.declaration import Declaration
from worldline.federation.participant.participant import Participant as Blocking
from worldline.history.journal import Sent
from worldline.lock import Grant, Join, Ledger, StartRun
from worldline.lock.events import Recalled, Snapshot
from worldline.lock.ledger import Wire
from worldline.model import BrokenPromise, ConfigurationError, LocalClock, UsageError
from worldline.model.clock import RunningClock

BILLION = 10**9
FAST = clock(drift="61.8034%")  # It skips most readings.


def alone(program: Callable[[Participant], object], until: str = "10s", **declared: Any) -> list[int]:
    """Run one participant; return when it sent something."""
    federation = Federation({"ann": Program(program, **declared)}, seed=5)
    journal = run(federation, until, keep_journals=True).journals["ann"]
    return [entry.at for entry in journal if isinstance(entry, Sent)]


def test_a_wait_within_a_duration_of_its_own_clock() -> None:
    def program(me: Participant) -> None:
        for shows in (10 * MS, 20 * MS, 30 * MS):
            assert me.next(within="10ms", clock="local") == []
            assert me.clock.now == shows
        assert me.peek(within="10ms", clock="local") == me.clock.true("40ms")
        assert list(me.messages(within="10ms", clock="local")) == []
        assert (me.clock.now, me.now) == (40 * MS, 32 * MS)

    alone(program, clock=clock(drift="25%"))


def test_without_a_clock_it_shows_true_time() -> None:
    def program(me: Participant) -> None:
        assert (me.clock.now, me.clock.local("5ms"), me.clock.true("5ms")) == (0, 5 * MS, 5 * MS)
        me.advance(by="10ms", clock="local")
        assert (me.now, me.clock.now) == (10 * MS, 10 * MS)
        me.advance(to="30ms", clock="local")
        me.next(until="40ms", clock="local")
        me.publish("t", b"", at="50ms", clock="local")
        assert (me.now, me.clock.now) == (40 * MS, 40 * MS)

    assert alone(program) == [50 * MS]


def test_a_clock_shows_offset_and_drift() -> None:
    def program(me: Participant) -> None:
        assert me.clock.now == -3 * MS
        me.advance(to="1s")
        assert me.clock.now == SECOND - 3 * MS + 40_000
        assert me.clock.local("2s") == 2 * SECOND - 3 * MS + 80_000
        assert me.clock.true(me.clock.local("2s")) == 2 * SECOND

    alone(program, clock=clock(offset="-3ms", drift="40ppm"))


@pytest.mark.parametrize("drift", ["1ppb", "1234567ppb", "-1234567ppb", "99%", "-99%"])
def test_steps_of_its_own_clock_do_not_add_up_to_more_than_they_are(drift: str) -> None:
    own = RunningClock(clock(drift=drift), 0, "")

    def program(me: Participant) -> None:
        for step in range(1, 1000):
            me.publish("t", b"")
            me.advance(by=1_000_003, clock="local")
            assert me.clock.now == step * 1_000_003
            assert me.now == own.true(step * 1_000_003, 0)

    sent = alone(program, until="200s", period=1_000_003, clock=clock(drift=drift))
    assert sent == [own.true(step * 1_000_003, 0) for step in range(999)]


@given(st.integers(-BILLION + 1, BILLION - 1), st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_the_clock_shows_what_was_advanced_to(drift: int, steps: list[int]) -> None:
    def program(me: Participant) -> None:
        shown = me.clock.now
        for step in steps:
            me.advance(by=step, clock="local")
            shown += step
            if shown > 0:
                assert me.clock.now in (shown, me.clock.local(me.now))
                shown = me.clock.now

    alone(program, clock=LocalClock(drift=drift))


def test_after_a_jump_it_goes_on_from_there() -> None:
    shown: list[tuple[int, int]] = []

    def program(me: Participant) -> None:
        for _ in range(5):
            me.advance(by="10ms", clock="local")
            shown.append((me.now // MS, me.clock.now // MS))

    alone(program, clock=clock(jumps=[{"at": "15ms", "by": "50ms"}, {"at": "30ms", "by": "-25ms"}]))
    # The jump leads past 20 ms, at 15 ms. What was to be shown 5 ms after the other is shown again 30 ms after it.
    assert shown == [(10, 10), (15, 65), (25, 75), (60, 85), (70, 95)]


def test_multiples_of_a_period_come_again_after_a_jump_back() -> None:
    def program(me: Participant) -> None:
        for multiple in (0, 10, 20):
            me.advance(to=multiple * MS, clock="local")
            me.publish("t", b"")
        me.advance(to="25ms")
        assert me.clock.now == 6 * MS
        me.advance(to="10ms", clock="local")
        me.publish("t", b"")

    jump = [{"at": "24ms", "by": "-19ms"}]
    assert alone(program, period="10ms", clock=clock(jumps=jump)) == [0, 10 * MS, 20 * MS, 29 * MS]


def test_others_go_ahead_on_the_strength_of_a_period_in_local_time() -> None:
    """The promise that follows from it is exact: one nanosecond more would break it."""
    ledger = Ledger("ann", Join(), period=10 * MS, clock=clock(offset="1ms", drift="50%"))
    ledger.take_outbox()
    ledger.receive(StartRun("ann", 0, 0, 1, 1))
    ledger.next("1s")
    assert str(ledger.take_outbox()[0]) == f"Promise(until={6 * MS})"  # 1 ms + 1.5 × 6 ms


# --- What can't be ---


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda me: me.advance(to="-1ms"), "'-1ms' isn't a time"),
        (
            lambda me: me.advance(to="4ms", clock="local"),
            "ann at 20ms: 4ms of its own clock has passed: it shows 25ms",
        ),
        (lambda me: me.advance(to="-4ms", clock="local"), "ann at 20ms: -4ms of its own clock has passed"),
        (lambda me: me.next(until="4ms", clock="local"), "ann at 20ms: 4ms of its own clock has passed"),
        (lambda me: me.publish("t", b"", "24ms", clock="local"), "ann at 20ms: 24ms of its own clock has passed"),
        (lambda me: me.promise(until="1ms", clock="local"), "ann at 20ms: 1ms of its own clock has passed"),
        (lambda me: me.advance(by="-1ms", clock="local"), "'-1ms' isn't a step"),
        (lambda me: me.advance(by="1ms", clock="lokal"), "ann at 20ms: there is no clock 'lokal' (write clock="),
        (lambda me: me.advance(by=0.5, clock="local"), "0.5 isn't a step"),
        (lambda me: me.advance(to="40ppm", clock="local"), "'40ppm' isn't a time of its clock"),
        (lambda me: me.advance(to="1s", by="1s", clock="local"), "advance takes either `to` or `by`"),
        (lambda me: me.clock.true(True), "True isn't a time of its clock"),
        (lambda me: me.advance(to=2**60 - 1, clock="local"), "ann at 20ms: its clock never shows "),
    ],
)
def test_what_cannot_be_waited_for_is_said_and_changes_nothing(act: Callable[[Any], object], text: str) -> None:
    def program(me: Participant) -> None:
        me.advance(to="20ms")
        with pytest.raises(UsageError) as refused:
            act(me)
        assert text in str(refused.value)
        me.advance(by="5ms", clock="local")
        assert me.clock.now == 30 * MS

    described = clock(offset="10ms", drift="-25%")
    assert alone(program, clock=described) == []


def test_a_send_beside_the_local_period_is_refused() -> None:
    def program(me: Participant) -> None:
        me.advance(to="10ms")
        me.publish("t", b"")

    with pytest.raises(BrokenPromise) as refused:
        alone(program, period="10ms", clock=clock(drift="-1%"))
    assert "ann at 10ms: a send at 10ms, when its clock shows 9.9ms, isn't at a multiple of its period" in str(
        refused.value
    )


def test_a_program_cannot_have_another_clock_than_the_file_says() -> None:
    own = Declaration(clock=clock(drift="1ppm"))
    assert own.completed(Join(), 0, clock(drift="1ppm")) == own
    with pytest.raises(
        ConfigurationError, match=r'it declares clock = { drift = "1ppm" }, and .* says { drift = "2ppm" }'
    ):
        own.completed(Join(), 0, clock(drift="2ppm"))
    with pytest.raises(ConfigurationError, match="would stop or reverse"):
        Program(print, clock={"drift": "-100%"})


# --- The same everywhere ---


def wandering() -> Federation:
    def teller(me: Participant) -> None:
        while me.clock.now < 200 * MS:
            me.publish("now", str(me.clock.now).encode())
            me.advance(by="10ms", clock="local")

    def hearer(me: Participant) -> None:
        for message in me.messages(until="200ms", clock="local"):
            me.publish("off", str(me.clock.now - int(message.payload)).encode())

    wander = clock(offset="2ms", wander="walk(1%, every=3ms, within=30%)")
    return Federation(
        {name: Program(teller, subscribes=["off"], clock=wander) for name in ("ann", "bob")}
        | {"eve": Program(hearer, subscribes=["now"], clock=wander)},
        seed=2,
    )


def test_schedules_do_not_show() -> None:
    assert check(wandering(), schedules=8).divergence is None


def test_the_seed_does() -> None:
    assert run(wandering()).digest == run(wandering()).digest != run(replace(wandering(), seed=3)).digest


def test_a_server_tells_a_participant_its_clock() -> None:
    stated = Declaration(clock=clock(offset="5ms"), period="10ms").said()

    def live(server: Server) -> tuple[int, int]:
        with connect(server, "ann") as me:
            me.advance(to="10ms", clock="local")
            me.publish("t", b"")
            return me.now, me.clock.now

    async def live_async(server: Server) -> tuple[int, int]:
        async with await connect_async(server, "bob") as me:
            async for _ in me.messages(until="10ms", clock="local"):
                pass
            await me.peek(until="20ms", clock="local")
            return me.now, me.clock.now

    with Server(plan(["ann", "bob"]), declared={"ann": stated, "bob": stated}) as server:
        ann = Strand(lambda: live(server))
        bob = Strand(lambda: asyncio.run(live_async(server)))
        assert ann.result() == bob.result() == (5 * MS, 10 * MS)
        server.wait(60)


class Willing(Wire):
    """A connection that grants all that is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def tell(self, events: list[Any]) -> None:
        events.clear()

    def is_due(self, urgent: bool) -> bool:
        return False

    def ask(self, events: list[Any]) -> Any:
        self.asked += events
        events.clear()
        return StartRun("ann", 0, 0, 1, 1) if isinstance(self.asked[-1], Join) else Grant("ann", self.asked[-1].to, [])


class Interrupting(Willing):
    """One that is interrupted while the program waits, each time at first."""

    is_broken = False

    def ask(self, events: list[Any]) -> Any:
        answer = super().ask(events)
        self.is_broken = not self.is_broken and not isinstance(answer, StartRun)
        if self.is_broken:
            raise KeyboardInterrupt
        return answer


def test_who_is_restored_from_a_snapshot_reads_the_same() -> None:
    """Also where its clock skips the reading that it has advanced to."""
    skipped = 0
    ledger = Ledger("ann", Join(), clock=FAST)
    ledger.snapshots.at_server = False
    me = Blocking(ledger, Willing())
    me.join()
    assert me.restored is None
    for _ in range(50):
        me.advance(by=1_000_003, clock="local")
        me.snapshot(b"")
        *_, snapshot = ledger.take_outbox()
        assert isinstance(snapshot, Snapshot)
        other = Ledger("ann", Join(), clock=FAST)
        other.take_outbox()
        other.snapshots.at_server = True
        other.receive(StartRun("ann", 0, 0, 1, 1))
        other.receive(Recalled(1, 0, snapshot.state))  # type: ignore[arg-type] # of the server, not the arbiter
        restored = Blocking(other, Willing())
        assert restored.restored == b""
        assert restored.clock.now == me.clock.now
        skipped += me.clock.now < me.clock.local(me.now)
    assert skipped


def test_a_step_that_is_interrupted_is_taken_up_by_the_same_call() -> None:
    me = Blocking(Ledger("ann", Join(), clock=FAST), Interrupting())
    me.join()
    for step in range(1, 200):
        with pytest.raises(KeyboardInterrupt):
            me.advance(by=1_000_003, clock="local")
        me.advance(by=1_000_003, clock="local")
        assert me.clock.now == step * 1_000_003
