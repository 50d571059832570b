"""The resident: a participant in its server's own thread, which serves the others whenever it waits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.federation.transports import (
    PATIENCE_S,
    PROMPT_S,
    ServerClock,
    Strand,
    brief,
    eventually,
    nothing_left,
    play,
    states,
)
from worldline import Federation, Network, Participant, Program, Server, connect, link, plan, run
from worldline.federation.participant import connection as connection_module
from worldline.federation.server.limits import Limits
from worldline.federation.server.resident import ResidentParticipant
from worldline.history import Status
from worldline.model import MS, BrokenPromise, Interrupted, LossError, ModelError, Plan, UsageError

CLIENT = """
import sys, worldline
with worldline.connect(sys.argv[1], sys.argv[2], publishes=["ack"], subscribes=["step"]) as me:
    while messages := me.next():
        for message in messages:
            if message.payload == b"9":
                sys.stdin.read()  # It takes long over this one.
            me.publish("ack", message.payload, at_once=False)
"""


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


def two(end: str | None = None) -> Plan:
    return plan(["me", "other"], network=Network(default=link("1ms")), until=end)


def primary(me: Participant) -> None:
    """Ask the others at every step, and go on when all have answered."""
    for step in range(5):
        me.publish("step", str(step).encode(), at_once=step % 2 == 0)
        heard = 0
        while heard < 2:
            heard += len(me.next())
        me.promise(me.now + 2)
        me.advance(by="3ms")
        me.log(f"step {step} is done")


def secondary(me: Participant) -> None:
    for message in me.messages():
        me.publish("ack", message.payload + me.name.encode(), at_once=False)


def lockstep() -> Federation:
    return Federation(
        {
            "me": Program(primary, publishes=["step"], subscribes=["ack"]),
            "first": Program(secondary, publishes=["ack"], subscribes=["step"]),
            "second": Program(secondary, publishes=["ack"], subscribes=["step"]),
        },
        network=Network(default=link("1ms")),
    )


def take_part(server: Server | str, name: str, program: Program) -> None:
    declared: Any = program.as_plain()
    with connect(server, name, **declared) as me:
        play(program, me)


def stay(server: Server | str, name: str = "other") -> None:
    """Wait for messages as long as the run goes on."""
    with connect(server, name, publishes=[], subscribes=["t"]) as me:
        while me.next():
            pass


@contextlib.contextmanager
def held_by_another(server: Server) -> Iterator[Strand[None]]:
    """Have another participant that can send, and computes: so whoever listens to it has to wait."""
    done = threading.Event()

    def compute() -> None:
        with connect(server, "other", publishes=["t"]) as me:
            assert done.wait(PROMPT_S)
            me.advance(to="1h")

    strand = Strand(compute)
    try:
        yield strand
    finally:
        done.set()


def reside(server: Server, act: Callable[[ResidentParticipant], object] = lambda me: None, **given: Any) -> None:
    """Be the server's resident, from the beginning to the end."""
    with server.resident("me", **given) as me:
        act(me)


# --- A run ---


@pytest.mark.parametrize(
    ("address", "given"),
    [
        ("tcp://127.0.0.1:0", {}),
        ("paired", {}),
        ("tcp://127.0.0.1:0", {"pace": 10.0}),
        ("tcp://127.0.0.1:0", {"token": "secret"}),
    ],
    ids=["tcp", "paired", "paced", "with a token"],
)
def test_the_result_is_that_of_any_other_executor(
    address: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLDLINE_TOKEN", given.get("token", ""))
    federation = lockstep()
    server = Server(federation.plan(), **given)
    target = server if address == "paired" else str(server.open())
    others = [
        Strand(lambda name=name: take_part(target, name, federation.programs[name]))  # type: ignore[misc]
        for name in ("first", "second")
    ]
    with server.resident("me", publishes=["step"], subscribes=["ack"]) as me:
        primary(me)
    for other in others:
        other.result()
    assert me.outcome() == server.outcome()
    assert me.outcome().digest == run(federation).digest


def test_the_servers_file_declares_for_a_resident_too() -> None:
    server = Server(two("5ms"), declared={"me": {"subscribes": {"t": "unbounded"}, "period": "1ms"}})
    other = Strand(lambda: stay(server))
    with server.resident("me") as me:
        assert me.subscriptions == ("t",)
        with pytest.raises(BrokenPromise, match="isn't at a multiple of its period"):
            me.publish("x", b"", at=1)
    other.result()


def test_a_resident_that_contradicts_the_servers_file_is_refused() -> None:
    server = Server(two(), declared={"me": {"subscribes": {"t": "unbounded"}}})
    with pytest.raises(UsageError, match=r"it declares subscribes = \[x\], and the federation's file says"):
        reside(server, subscribes=["x"])


def test_it_may_invite_a_guest_who_joins_later() -> None:
    server = Server(plan(["me"], guests=["guest"], network=Network(default=link("1ms"))))
    with server.resident("me", controls=True, publishes=["t"]) as me:
        guest = Strand(lambda: stay(server, "guest"))
        me.invite("guest", at="5ms")
        me.advance(to="10ms")
        assert server.ask(lambda: "guest" in server.host.sessions)
    guest.result()
    assert me.outcome().times["me"] == 10 * MS


def test_what_watches_is_told_in_the_same_thread_and_others_are_answered_while_it_waits() -> None:
    server = Server(two())
    server.hold_at(0)
    watched: list[str] = []
    asked: list[object] = []

    def watch(status: Status) -> None:
        watched.append(threading.current_thread().name)

    def ask() -> None:
        eventually(lambda: states(server)["me"] == "advancing")
        asked.append(server.ask(lambda: threading.current_thread().name))
        eventually(lambda: len(watched) > 2)
        assert server.rest_at("2ms")
        server.hold_at(None)

    other, asker = Strand(lambda: stay(server)), Strand(ask)
    with server.resident("me", publishes=["t"], watch=watch, watch_every_s=0.001) as me:
        me.advance(to="5ms")
    asker.result()
    other.result()
    assert {*watched, *asked} == {threading.current_thread().name}
    assert me.now == 5 * MS


def test_who_watches_may_publish_but_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    server = Server(two())
    resident: list[ResidentParticipant] = []

    def watch(_: Status) -> None:
        for me in resident:
            me.publish("x", b"")
            me.advance(by="1ms")

    def act(me: ResidentParticipant) -> None:
        resident.append(me)
        while True:
            me.publish("x", b"")

    with held_by_another(server) as other, pytest.raises(UsageError, match="me: it can't wait while it serves"):
        reside(server, act, publishes=["x"], subscribes=["t"], watch=watch, watch_every_s=0)
    assert isinstance(other.failure(PROMPT_S), LossError)


def test_one_that_runs_far_ahead_is_held_back_and_serves_the_others_meanwhile() -> None:
    server = Server(two(), limits=Limits(memory_max=2**16))
    go = threading.Event()

    def lag() -> int:
        with connect(server, "other", publishes=["x"], subscribes=["t"]) as me:
            me.advance(to=1)
            go.wait(PROMPT_S)
            return len(me.advance(to="1s"))

    def release() -> None:
        eventually(lambda: server.ask(server.host.flow.ahead) == ["me"])
        go.set()

    other, releaser = Strand(lag), Strand(release)
    with server.resident("me", publishes=["t"]) as me:
        for _ in range(100):
            me.publish("t", bytes(2**12))
            me.advance(by="1ms")
    releaser.result()
    assert other.result() == 100


# --- Where it can't be ---


def test_a_server_has_one_resident_and_is_served_by_nobody_else() -> None:
    server = Server(two())
    server.resident("me")
    with pytest.raises(UsageError, match="a server has one resident, and this one's is me"):
        server.resident("other")
    with pytest.raises(UsageError, match="for its resident, me, to serve this server"):
        server.serve()
    with pytest.raises(UsageError, match="for its resident, me, to serve this server"), server:
        pass
    server.close()


def test_a_server_with_a_thread_of_its_own_has_no_resident() -> None:
    with Server(two("1ms")) as server:
        with pytest.raises(UsageError, match="the server is served already"):
            server.resident("me")
        server.end(LossError("enough"))


def test_a_resident_whom_nobody_expects_is_told_so() -> None:
    server = Server(two())
    with (
        pytest.raises(UsageError, match="unexpected participant 'stranger'; expected: me, other"),
        server.resident("stranger"),
    ):
        pass


def test_it_lives_in_one_thread() -> None:
    server = Server(two())
    resident = server.resident("me", publishes=["t"])
    with pytest.raises(UsageError, match="a resident lives in the thread that has entered it"):
        resident.join()
    other = Strand(lambda: stay(server))
    with resident as me:
        stranger = Strand(lambda: me.advance(by="1ms"))
        assert "a resident lives in the thread that has entered it" in str(stranger.failure())
        with pytest.raises(UsageError, match="the thread that serves can't wait for others"):
            server.rest_at(0)
        me.advance(by="1ms")
    other.result()
    with pytest.raises(UsageError, match="a server serves one run"), resident:
        pass


# --- Ends ---


def test_an_exception_inside_breaks_off_the_run_and_the_others_are_told_the_cause() -> None:
    server = Server(two())
    other = Strand(lambda: stay(server))

    def act(me: ResidentParticipant) -> None:
        me.advance(to="3ms")
        raise ZeroDivisionError("too few")

    with pytest.raises(ZeroDivisionError):
        reside(server, act, publishes=["t"])
    told = other.failure(PROMPT_S)
    assert isinstance(told, LossError)
    assert "me at 3ms: the run was broken off: its program raised ZeroDivisionError: too few" in str(told)
    with pytest.raises(ModelError, match="me at 3ms: its program raised ZeroDivisionError: too few"):
        server.outcome()


def leave_badly(server: Server | str) -> None:
    with connect(server, "other", publishes=["t"]) as me:
        me.advance(to="2ms")
        raise ValueError("it broke")


@pytest.mark.long
@pytest.mark.parametrize("how", ["advance", "publish", "exit"])
def test_whoever_fails_is_named_by_the_next_operation(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_FAREWELL_S", 0.1)  # Nobody reads its last words while the resident waits.
    server = Server(two())
    other = Strand(lambda: leave_badly(server))

    def act(me: ResidentParticipant) -> None:
        me.advance(to="2ms")
        if how == "advance":
            me.advance(to="1s")
        assert isinstance(other.failure(), ValueError)
        while how == "publish":
            me.publish("x", b"")

    with pytest.raises(
        LossError, match="other at 2ms: the run was broken off: its program raised ValueError: it broke"
    ):
        reside(server, act, publishes=["x"], subscribes=["t"])
    assert isinstance(other.failure(), ValueError)
    with pytest.raises(ModelError, match="other at 2ms"):
        server.outcome()


def test_the_others_may_go_on_when_it_has_left_and_what_becomes_of_them_counts() -> None:
    server = Server(two())

    def go_on(*, broken: bool) -> None:
        with connect(server, "other", publishes=["t"]) as me:
            eventually(lambda: states(server)["me"] == "left")
            me.advance(to="7ms")
            if broken:
                raise ValueError("it broke")

    other = Strand(lambda: go_on(broken=False))
    with server.resident("me", publishes=["x"]) as me:
        pass
    other.result()
    assert me.outcome().times == {"me": 0, "other": 7 * MS}

    server = Server(two())
    other = Strand(lambda: go_on(broken=True))
    with pytest.raises(ModelError, match="other at 7ms: its program raised ValueError"):
        reside(server)
    assert isinstance(other.failure(), ValueError)


def test_the_others_may_not_go_on_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    server = Server(two())
    with (
        held_by_another(server) as other,
        pytest.raises(LossError, match=r"other didn't leave within 0\.01 seconds of me"),
    ):
        reside(server, farewell_s=0.01)
    assert "other didn't leave" in str(other.failure())


def test_the_run_ends_at_its_end_for_the_resident_too() -> None:
    server = Server(two("5ms"))
    other = Strand(lambda: stay(server))
    with server.resident("me", publishes=["t"]) as me:
        while True:  # Until it is told that the run has ended.
            me.advance(by="1ms")
    other.result()
    assert me.outcome().times == {"me": 5 * MS, "other": 5 * MS}


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["joining", "advancing", "left"])
def test_an_interruption_while_it_waits_ends_the_run_for_everybody(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    server = Server(plan(["me", "other", *(["third"] if when == "joining" else [])]))
    done = threading.Event()

    def other() -> None:
        with connect(server, "other", publishes=["t"]) as me:
            if when == "left":
                assert done.wait(PROMPT_S)
            me.advance(to="1ms" if when == "advancing" else "1h")
            assert done.wait(PROMPT_S)
            me.advance(to="1h")

    def press() -> None:
        state = {"joining": "joined"}.get(when, when)
        eventually(lambda: server.is_served and states(server)["me"] == state)
        eventually(lambda: states(server)["other"] != "expected")
        server.order(interrupt)

    strand, presser = Strand(other), Strand(press)
    with pytest.raises(KeyboardInterrupt):
        reside(server, lambda me: me.advance(to="1h") if when == "advancing" else None, subscribes=["t"])
    done.set()
    presser.result()
    assert "the run was broken off: the server was interrupted" in str(strand.failure())
    with pytest.raises(Interrupted):
        server.outcome()


def test_ctrl_c_is_such_an_interruption() -> None:
    server = Server(two())
    server.hold_at(0)
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        eventually(lambda: server.is_served and states(server)["me"] == "advancing")
        signal.pthread_kill(main, signal.SIGINT)

    other, presser = Strand(lambda: stay(server)), Strand(press)
    with pytest.raises(KeyboardInterrupt):
        reside(server, lambda me: me.advance(to="1ms"), publishes=["t"])
    presser.result()
    assert "the run was broken off: the server was interrupted" in str(other.failure())


def test_after_an_interruption_that_is_caught_there_is_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brief(monkeypatch)
    server = Server(two())

    def act(me: ResidentParticipant) -> None:
        server.order(interrupt)
        with pytest.raises(KeyboardInterrupt):
            me.advance(to="1h")
        me.advance(to="1h")

    with held_by_another(server) as other, pytest.raises(LossError, match="broken off: the server was interrupted"):
        reside(server, act, subscribes=["t"])
    assert isinstance(other.failure(), LossError)


def test_whoever_doesnt_join_is_waited_for_as_long_as_the_limits_say() -> None:
    clock = ServerClock()
    server = Server(two(), limits=Limits(join_s=30.0), clock=clock)

    def wait() -> None:
        eventually(lambda: server.is_served)
        clock.skip(server, 40.0)

    waiter = Strand(wait)
    with pytest.raises(LossError, match="other didn't join within 30 seconds"):
        reside(server)
    waiter.result()


def test_the_time_in_which_it_computes_is_nobodys_silence() -> None:
    clock = ServerClock()
    server = Server(two(), limits=Limits(silence_s=4.0, handshake_s=4.0, join_s=4.0), clock=clock)
    other = Strand(lambda: stay(server))
    with server.resident("me", publishes=["t"]) as me:
        for _ in range(20):
            clock.leap(0.9)  # It computes for less than a heartbeat's time, and often.
            me.advance(by="1ms")
        clock.leap(100.0)
        me.advance(by="1ms")
    other.result()
    assert me.outcome().times["me"] == 21 * MS


# --- Processes ---


@pytest.mark.long
def test_a_process_that_is_killed_while_the_resident_waits_is_named() -> None:
    server = Server(plan(["me", "first", "second"], network=Network(default=link("1ms"))))
    address = str(server.open())
    with contextlib.ExitStack() as stack:
        children = {}
        for name in ("first", "second"):
            command = [sys.executable, "-c", CLIENT, address, name]
            children[name] = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(children[name].kill)

        residents: list[ResidentParticipant] = []

        def kill() -> None:
            eventually(lambda: residents and residents[0].now == 18 * MS and states(server)["me"] == "awaiting")
            os.kill(children["second"].pid, signal.SIGKILL)

        def act(me: ResidentParticipant) -> None:
            residents.append(me)
            for step in range(10):
                me.publish("step", str(step).encode())
                assert [message.payload for message in me.next()] == [str(step).encode()] * 2

        killer = Strand(kill)
        with pytest.raises(LossError, match="broken off: its connection was closed, and it hadn't left") as lost:
            reside(server, act, publishes=["step"], subscribes=["ack"])
        killer.result()
        assert lost.value.participant == "second"
        _, errors = children["first"].communicate(timeout=PATIENCE_S)
        assert "BrokenOff: second at 19ms: the run was broken off: its connection was closed" in errors
