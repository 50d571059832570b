"""Programs as strands: what they may do besides calling us, how they are unwound, and that nothing of them is left."""

from __future__ import annotations

import bdb
import contextvars
import gc
import os
import signal
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest

from tests.federation.transports import Strand, eventually, nothing_left
from tests.lock.harness import Harness
from tests.lock.worlds import Op, Result, World, behave, make_world
from worldline import Federation, Network, Participant, Program, link, run
from worldline.federation.inprocess import run as inprocess
from worldline.federation.inprocess.checker import SampledSchedule
from worldline.federation.inprocess.run import Schedule
from worldline.lock import Arbiter
from worldline.model import MS, BrokenPromise, ModelError, UsageError


@pytest.fixture(autouse=True)
def _kinds(either_kind: str) -> Any:
    with nothing_left():
        yield


def federation(until: str | None = None, **programs: Callable[[Participant], object]) -> Federation:
    made = {name: Program(program, publishes=["t"], subscribes=["t"]) for name, program in programs.items()}
    return Federation(made, network=Network(default=link("1ms")), until=until)


def talk(me: Participant) -> None:
    for number in range(5):
        me.publish("t", b"%d" % number)
        me.advance(by="2ms")


# --- The same histories ---


def acting(world: World, name: str, peeks: list[tuple[int, int, int]] | None = None) -> Program:
    """Return a program that does what a participant of a random world does.

    It adds each of its peeks to `peeks`: from when, how far, and the answer.
    """
    member = world.members[name]

    def act(me: Participant) -> None:
        behavior = behave(member, Result(me.now))
        try:
            op = next(behavior)
            while True:
                result = carry_out(me, op)
                if op.kind == "peek" and peeks is not None:
                    peeks.append((result.now, op.time, result.peeked))
                op = behavior.send(result)
        except StopIteration:
            pass

    join = member.join
    return Program(
        act,
        publishes=join.publishes,
        subscribes={subscription.topic: subscription.buffer for subscription in join.subscribes},
        latency_least=join.latency_least,
        controls=join.controls,
        guest=name not in world.plan.roster,
    )


def carry_out(me: Participant, op: Op) -> Result:
    if op.kind == "publish":
        me.publish(op.topic, op.payload, op.time)
    elif op.kind == "break":
        with pytest.raises(BrokenPromise):
            me.publish(op.topic, op.payload, op.time)
        return Result(me.now, refused=True)
    elif op.kind == "subscribe":
        me.subscribe(op.topic, op.buffer)
    elif op.kind == "unsubscribe":
        me.unsubscribe(op.topic)
    elif op.kind == "invite":
        me.invite(op.name, op.time)
    elif op.kind == "peek":
        peeked = me.peek(op.time)
        return Result(me.now, ended=me.ended, peeked=peeked)
    elif op.kind in ("advance", "next"):
        messages = me.advance(op.time) if op.kind == "advance" else me.next(op.time)
        return Result(me.now, messages, me.ended)
    else:
        assert op.kind in ("promise", "stop")
        getattr(me, op.kind)(op.time)
    return Result(me.now)


def test_random_federations_have_the_digests_of_the_lock_alone() -> None:
    for seed in range(30):
        world = make_world(Random(seed))
        plain = Harness(world, Random(0), Counter(), check=False, barriers=False)
        plain.run()
        made = Federation(
            {name: acting(world, name) for name in world.members},
            network=world.plan.network,
            seed=world.plan.seed,
            until=world.plan.end,
        )
        schedules: tuple[Schedule, ...] = (Schedule(), SampledSchedule(seed))
        for schedule in schedules:
            assert run(made, schedule=schedule).digest == plain.digest, f"seed {seed}, {schedule}"


# --- Ends ---


def interrupt(happened: Callable[[], object]) -> Strand[None]:
    def wait() -> None:
        eventually(happened)
        os.kill(os.getpid(), signal.SIGINT)

    return Strand(wait)


def test_a_run_that_is_interrupted_unwinds_everybody_though_they_call_us_on_their_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inprocess, "_PATIENCE_S", 40.0)
    monkeypatch.setattr("worldline.federation.inprocess.strand._PATIENCE_S", 40.0)
    unwound: list[str] = []
    begun: set[str] = set()  # A program that hasn't begun has nothing to unwind.

    def stubborn(me: Participant) -> None:
        try:
            while True:
                try:
                    me.next(until=me.now + MS)
                    begun.add(me.name)
                except Exception:  # As bad programs do.
                    continue
        finally:
            try:
                me.publish("t", b"goodbye")
                me.advance(by="1s")
                unwound.append(f"{me.name} went on")
            finally:
                unwound.append(me.name)

    interrupting = interrupt(lambda: len(begun) == 3)
    with pytest.raises(KeyboardInterrupt):
        run(federation(a=stubborn, b=stubborn, c=stubborn))
    interrupting.result()
    assert sorted(unwound) == ["a", "b", "c"]


def test_a_program_that_never_calls_us_is_interrupted_and_the_others_are_unwound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inprocess, "_PATIENCE_S", 0.01)
    unwound: list[str] = []
    computing = threading.Event()

    def computes(me: Participant) -> None:
        me.advance(by="5ms")
        try:
            computing.set()
            while True:
                pass
        finally:
            unwound.append(me.name)

    def waits(me: Participant) -> None:
        try:
            me.next()
        finally:
            unwound.append(me.name)

    interrupting = interrupt(computing.is_set)
    with pytest.raises(KeyboardInterrupt):
        run(federation(a=waits, b=computes, c=waits))
    interrupting.result()
    eventually(lambda: len(unwound) == 3)
    assert sorted(unwound) == ["a", "b", "c"]


def test_a_program_that_cleans_up_for_long_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_PATIENCE_S", 0.01)
    monkeypatch.setattr("worldline.federation.inprocess.strand._PATIENCE_S", 0.01)
    go, cleaned = threading.Event(), threading.Event()

    def tidy(me: Participant) -> None:
        try:
            me.next()
        finally:
            assert go.wait(60)
            cleaned.set()

    def broken(me: Participant) -> None:
        me.advance(by="5ms")
        raise ZeroDivisionError

    with pytest.raises(ModelError, match="ZeroDivisionError"):
        run(federation(a=tidy, b=broken))
    assert not cleaned.is_set()
    go.set()
    assert cleaned.wait(60)


def test_whoever_watches_may_break_the_run_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_WATCH_EVERY_S", 0.001)

    def endless(me: Participant) -> None:
        while True:
            me.next(until=me.now + MS)

    def enough(status: object) -> None:
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        run(federation(a=endless, b=endless), watch=enough)


def test_what_is_watched_doesnt_change_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_WATCH_EVERY_S", 0.001)
    looked: list[bool] = []

    def endless(me: Participant) -> None:
        while len(looked) < 20:
            me.publish("t", b"")
            me.next(until=me.now + MS)

    def watch(status: Any) -> None:
        before = status.waits, run_arbiter[0].events
        time.sleep(0.002)
        looked.append((status.waits, run_arbiter[0].events) == before)

    run_arbiter: list[Any] = []

    def arbiter(*arguments: Any) -> Any:
        run_arbiter.append(Arbiter(*arguments))
        return run_arbiter[0]

    run(federation(a=endless, b=endless), watch=watch, arbiter=arbiter)
    assert all(looked)


def test_nothing_of_a_run_is_left(either_kind: str) -> None:
    class Thing:
        pass

    things: list[weakref.ref[Thing]] = []

    def holds(me: Participant) -> None:
        thing = Thing()
        things.append(weakref.ref(thing))
        talk(me)
        if me.name == failing:
            raise ValueError(thing)
        me.next()
        del thing

    for failing in ("", "b"):
        try:
            run(federation(a=holds, b=holds, c=holds, until="50ms"))
        except ModelError:
            assert failing
    gc.collect()
    assert len(things) == 6
    assert [thing() for thing in things] == [None] * 6
    if either_kind == "greenlets":
        from greenlet import greenlet

        # By their types: a weak proxy that somebody else has left would look for the class of what is gone.
        left = [each for each in gc.get_objects() if issubclass(type(each), greenlet)]
        assert [each for each in left if each and each.parent] == []


# --- What programs do besides ---


def test_each_program_has_context_variables_of_its_own() -> None:
    variable = contextvars.ContextVar("variable", default="nobody's")
    seen: list[str] = []

    def program(me: Participant) -> None:
        seen.append(variable.get())
        variable.set(me.name)
        talk(me)
        seen.append(variable.get())

    variable.set("the caller's")
    run(federation(a=program, b=program))
    assert Counter(seen) == Counter(["nobody's", "nobody's", "a", "b"])
    assert variable.get() == "the caller's"


def test_a_program_may_recurse_deeply_while_others_do() -> None:
    def down(me: Participant, depth: int) -> None:
        if depth:
            down(me, depth - 1)
        else:
            talk(me)

    def program(me: Participant) -> None:
        down(me, sys.getrecursionlimit() * 6 // 10)

    assert run(federation(a=program, b=program)).digest == run(federation(a=talk, b=talk)).digest


def test_a_thread_of_a_program_may_wait_in_its_stead_or_is_told_that_it_cant(either_kind: str) -> None:
    refused: list[str] = []

    def delegates(me: Participant) -> None:
        def elsewhere() -> None:
            try:
                talk(me)
            except UsageError as error:
                refused.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        if refused:  # What it asked for is still asked for.
            me.advance(by="2ms")

    outcome = run(federation(a=delegates, b=talk))
    if either_kind == "threads":
        assert refused == []
        assert outcome.digest == run(federation(a=talk, b=talk)).digest
    else:
        assert len(refused) == 1
        assert refused[0].startswith("a: it waits in a thread that isn't its program's (let the thread that runs")


def test_a_program_may_have_greenlets_of_its_own() -> None:
    greenlets = pytest.importorskip("greenlet")

    def program(me: Participant) -> None:
        def half(numbers: range) -> None:
            for number in numbers:
                me.publish("t", b"%d" % number)
                me.advance(by="2ms")
                if number == 1:
                    outer.switch()

        outer = greenlets.getcurrent()
        inner = greenlets.greenlet(half)
        inner.switch(range(3))
        inner.switch()
        half(range(3, 5))

    assert run(federation(a=program, b=program)).digest == run(federation(a=talk, b=talk)).digest


def test_what_a_programs_own_greenlet_raises_comes_out_of_the_program() -> None:
    greenlets = pytest.importorskip("greenlet")

    def program(me: Participant) -> None:
        def fails() -> None:
            me.advance(by="2ms")
            raise ZeroDivisionError("inside")

        greenlets.greenlet(fails).switch()

    with pytest.raises(ModelError, match="a at 2ms: its program raised ZeroDivisionError: inside"):
        run(federation(a=program, b=talk))


def test_a_program_may_run_a_federation() -> None:
    inner = run(federation(a=talk, b=talk)).digest

    def outer(me: Participant) -> None:
        me.advance(by="1ms")
        assert run(federation(a=talk, b=talk)).digest == inner
        me.publish("t", inner)
        me.advance(by="5ms")

    def plain(me: Participant) -> None:
        me.advance(by="1ms")
        me.publish("t", inner)
        me.advance(by="5ms")

    assert run(federation(a=outer, b=outer)).digest == run(federation(a=plain, b=plain)).digest


def test_runs_in_several_threads_dont_get_into_each_others_way() -> None:
    runs = [Strand(lambda: run(federation(a=talk, b=talk, c=talk)).digest) for _ in range(6)]
    assert len({each.result() for each in runs}) == 1


class Stepper(bdb.Bdb):
    """A debugger that takes single steps, and writes down which program each is in."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def user_line(self, frame: FrameType) -> None:
        within: FrameType | None = frame
        while within is not None and within.f_code.co_name not in ("debugged", "other"):
            within = within.f_back
        self.seen[within.f_code.co_name if within is not None else "neither"] += 1
        self.set_step()


def test_a_debugger_that_steps_through_a_program_stays_in_it() -> None:
    debugger = Stepper()

    def other(me: Participant) -> None:
        for _ in range(40):
            me.advance(by="1ms")

    def debugged(me: Participant) -> None:
        debugger.set_trace()
        for _ in range(20):
            me.advance(by="1ms")
        debugger.set_continue()

    run(federation(a=debugged, b=other, c=other))
    assert debugger.seen["debugged"] > 40
    assert set(debugger.seen) == {"debugged"}
