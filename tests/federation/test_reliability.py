"""Losses, with real processes that are killed and stopped: who is left hears of it, soon, with name, time and cause.

Also: nobody fills the server's memory, neither by running ahead nor by never reading.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any

import pytest

from tests.federation.transports import (
    PATIENCE_S,
    PROMPT_S,
    Strand,
    eventually,
    held_up,
    impatient,
    in_server,
    make_certificate,
    nothing_left,
    states,
)
from worldline import (
    MS,
    Federation,
    Network,
    Participant,
    Program,
    Server,
    connect,
    connect_async,
    link,
    plan,
    run,
)
from worldline.federation.host import Limits
from worldline.lock import Next, State
from worldline.model import FOREVER, TIME_MAX, LossError
from worldline.wire.codec import encode_events
from worldline.wire.frames import HEARTBEAT

pytestmark = [pytest.mark.timeout(50), pytest.mark.once]

SILENCE_S = 1.0

VICTIM = """
import sys, worldline
with worldline.connect(sys.argv[1], "victim", publishes=["t"], subscribes=["x"]) as me:
    me.advance(to="5ms")
    print("there", flush=True)
    sys.stdin.read()
"""

SERVER = f"""
import sys
from worldline import Network, Server, link, plan
from worldline.federation.host import Limits
server = Server(plan(sys.argv[1:]), limits=Limits(silence_s={SILENCE_S}))
print(server.open(), flush=True)
server.serve()
"""


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


@contextmanager
def process(program: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a Python program, wait for its first line, and see that it is gone in the end."""
    command = [sys.executable, "-c", program, *arguments]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()
            child.wait(PATIENCE_S)


# --- Those who are left, each in its own way ---


def advancing(target: Server | str, name: str) -> None:
    with connect(target, name, publishes=[], subscribes=["t"]) as me:
        me.advance(to="1h")


def awaiting(target: Server | str, name: str) -> None:
    with connect(target, name, publishes=["y"], subscribes=["t"]) as me:
        me.next()


def publishing(target: Server | str, name: str) -> None:
    """It only ever tells, and never asks."""
    pause = threading.Event()
    with connect(target, name, publishes=["z"]) as me:
        while True:
            me.publish("z", b"")
            pause.wait(0.001)


def stepping(target: Server | str, name: str) -> None:
    """It is served from what it was granted in one go, and never asks again."""
    pause = threading.Event()
    with connect(target, name, publishes=["z"]) as me:
        while True:
            me.advance(by="1ms")
            pause.wait(0.001)


def in_a_loop(target: Server | str, name: str) -> None:
    async def wait() -> None:
        async with await connect_async(target, name, publishes=["y"], subscribes=["t"]) as me:
            await me.next()

    asyncio.run(wait())


SURVIVORS: dict[str, Callable[[Server | str, str], None]] = {
    "advancing": advancing,
    "awaiting": awaiting,
    "in a loop": in_a_loop,
    "publishing": publishing,
    "stepping": stepping,
}


def survivors(target: Server | str, *names: str) -> dict[str, Strand[None]]:
    return {
        name: Strand(lambda name=name: SURVIVORS[name](target, name), name)  # type: ignore[misc]
        for name in names or SURVIVORS
    }


# --- A participant is lost ---


@pytest.mark.parametrize(
    ("sign", "cause", "within_s"),
    [
        pytest.param(signal.SIGKILL, "its connection was closed, and it hadn't left", PROMPT_S, id="killed"),
        pytest.param(signal.SIGSTOP, "nothing was heard of it for", SILENCE_S + PROMPT_S, id="stopped"),
    ],
)
def test_a_lost_participant_is_named_to_everybody_with_its_time(sign: int, cause: str, within_s: float) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(Server(plan(["victim", *SURVIVORS]), limits=Limits(silence_s=SILENCE_S)))
        left = survivors(str(server.address))
        victim, _ = stack.enter_context(process(VICTIM, str(server.address)))
        expected = {"advancing": "advancing", "awaiting": "awaiting", "in a loop": "awaiting"}
        eventually(lambda: expected.items() <= states(server).items())
        os.kill(victim.pid, sign)
        begun = time.monotonic()
        with pytest.raises(LossError, match=rf"victim at 5ms: {cause}") as loss:
            server.wait(within_s)
        assert (loss.value.participant, loss.value.at, loss.value.exit_code) == ("victim", 5 * MS, 3)
        for name, strand in left.items():
            told = strand.failure(max(0.1, begun + within_s - time.monotonic()))
            assert isinstance(told, LossError), name
            assert (told.participant, told.at, told.exit_code) == ("victim", 5 * MS, 3), name
            assert f"the run was broken off: {cause}" in str(told), name


def test_a_participant_that_is_killed_before_the_start_is_expected_again() -> None:
    def come(name: str) -> None:
        with connect(server, name) as me:
            assert me.now == 0

    with Server(plan(["victim", "other"])) as server:
        with process(VICTIM.replace("with", 'print("coming", flush=True)\nwith'), str(server.address)) as (victim, _):
            eventually(lambda: states(server)["victim"] == "joined")
            victim.kill()
            eventually(lambda: states(server)["victim"] == "expected")
        other = Strand(lambda: come("other"))
        come("victim")
        other.result(PROMPT_S)
        assert server.wait(PROMPT_S).times == {"victim": 0, "other": 0}


def test_who_never_comes_isnt_waited_for_for_ever() -> None:
    with Server(plan(["a", "b", "c"]), limits=Limits(join_s=0.2, silence_s=2.0)) as server:
        told = Strand(lambda: connect(server, "a").__enter__()).failure(PROMPT_S)
        assert "nothing was seen of b, c in 0.2 seconds" in str(told)
        with pytest.raises(LossError, match=r"nothing was seen of b, c .*here: a; limits.join sets how long"):
            server.wait(PROMPT_S)


# --- The server is lost ---


def holding_up(target: str, name: str, started: threading.Event, release: threading.Event) -> None:
    """It computes, so that others wait for it, and asks when it is told to."""
    with connect(target, name, publishes=["t"]) as me:
        started.set()
        release.wait(PATIENCE_S)
        me.advance(to="1h")


@pytest.mark.parametrize(
    ("sign", "names", "words", "within_s"),
    [
        pytest.param(
            signal.SIGKILL,
            tuple(SURVIVORS),
            ("the server closed the connection", "the connection to the server broke"),
            PROMPT_S,
            id="killed",
        ),
        # Who only tells can't know: see below.
        pytest.param(
            signal.SIGSTOP,
            ("advancing", "awaiting", "in a loop"),
            (f"nothing was heard of the server for {SILENCE_S:.0f} s",),
            SILENCE_S + PROMPT_S,
            id="stopped",
        ),
    ],
)
def test_a_lost_server_is_missed_by_everybody(
    sign: int, names: tuple[str, ...], words: tuple[str, ...], within_s: float
) -> None:
    started, release = threading.Event(), threading.Event()
    with process(SERVER, "computing", *names) as (server, address):
        left = survivors(address, *names)
        left["computing"] = Strand(lambda: holding_up(address, "computing", started, release))
        assert started.wait(PATIENCE_S)
        os.kill(server.pid, sign)
        begun = time.monotonic()
        release.set()
        for name, strand in left.items():
            told = strand.failure(max(0.1, begun + within_s - time.monotonic()))
            assert isinstance(told, LossError), name
            assert any(some in str(told) for some in words), (name, told)


def test_who_only_publishes_misses_a_hung_server_too() -> None:
    def flood(address: str) -> None:
        with connect(address, "flood", publishes=["z"]) as me:
            while True:
                me.publish("z", bytes(2**16))
                started.set()

    started = threading.Event()
    with process(SERVER, "flood") as (server, address):
        flooding = Strand(lambda: flood(address))
        assert started.wait(PATIENCE_S)
        os.kill(server.pid, signal.SIGSTOP)
        told = flooding.failure(SILENCE_S + PROMPT_S)
    assert isinstance(told, LossError)


# --- Memory ---


def test_who_never_reads_is_given_up_before_it_fills_the_memory() -> None:
    """A reader that keeps asking and beating its heart, and leaves every answer unread."""
    limit, size = 2**18, 2**16
    most = 0

    def write(server: Server) -> None:
        with connect(server, "source", publishes=["t"]) as me:
            while True:
                eventually(lambda: server.host.over or reader.state is State.AWAITING)
                me.publish("t", bytes(size))
                me.advance(by="2ms")
                me.catch_up()

    with Server(plan(["source", "reader"]), limits=Limits(unread_max=limit)) as server:
        reader = server.host.arbiter.members["reader"]
        source = Strand(lambda: write(server))
        with suppress(LossError), connect(server, "reader", publishes=[], subscribes=["t"]) as me:
            while not server.host.over:
                granted = reader.granted
                me._wire._write(encode_events([Next(TIME_MAX, FOREVER)]))
                eventually(lambda: server.host.over or reader.granted > granted)  # noqa: B023 - it is called here only.
                most = max([most, *(unread for _, unread in list(server.host.slow()))])
        told = source.failure(PROMPT_S)
        assert "reader" in str(told)
        assert "the run was broken off: it hasn't read " in str(told)
        with pytest.raises(LossError, match=r"reader at .*: it hasn't read [\d,]+ bytes that it was sent"):
            server.wait(PROMPT_S)
    assert limit / 2 < most < 4 * limit


def test_who_reads_nothing_for_too_long_is_given_up() -> None:
    def write(server: Server) -> None:
        with connect(server, "source", publishes=["t"]) as me:
            for _ in range(64):
                me.publish("t", bytes(2**17))
            me.advance(to="1s")
            pause = threading.Event()
            while True:
                me.publish("t", b"")
                pause.wait(0.01)

    with Server(plan(["source", "reader"]), limits=Limits(silence_s=SILENCE_S)) as server:
        source = Strand(lambda: write(server))
        with suppress(LossError), connect(server, "reader", publishes=[], subscribes=["t"]) as me:
            me._wire._write(encode_events([Next(TIME_MAX, FOREVER)]))
            eventually(lambda: server.host.over)
        assert "it hasn't read what it was sent for" in str(source.failure(PROMPT_S))


def ahead(gate: Callable[[], Any]) -> Federation:
    """A source that never has to wait for anybody, and a reader that begins when the gate opens."""

    def source(self: Participant) -> None:
        for number in range(400):
            self.publish("t", bytes([number % 256]) * 2**16)
            self.advance(by="1ms")

    def reader(self: Participant) -> None:
        gate()
        for message in self.messages():
            self.publish("u", message.payload[:1])

    programs = {
        "source": Program(source, publishes=["t"]),
        "reader": Program(reader, publishes=["u"], subscribes=["t"]),
    }
    return Federation(programs, network=Network(default=link("1ms")))


def test_a_source_that_runs_ahead_isnt_read_until_the_others_have_caught_up() -> None:
    expected = run(ahead(lambda: None))
    memory_max = 2**22
    federation = ahead(lambda: eventually(lambda: server.host.ahead() == ["source"]))
    kept: list[int] = []

    def measure() -> None:
        while not server.host.over:
            note_one(threading.Event())

    def note_one(done: threading.Event) -> None:
        def note() -> None:
            kept.append(sum(member.outstanding for member in server.host.arbiter.members.values()))
            done.set()

        server.order(note)
        done.wait(0.1)

    def play(name: str) -> None:
        program: Any = federation.programs[name]
        with connect(server, name, **program.as_plain()) as me:
            program.run(me)

    with Server(federation.plan(), limits=Limits(memory_max=memory_max)) as server:
        measuring = Strand(measure)
        for strand in [Strand(lambda name=name: play(name)) for name in federation.programs]:  # type: ignore[misc]
            strand.result()
        outcome = server.wait(PROMPT_S)
        measuring.result()
    assert outcome.digest == expected.digest
    # What is counted includes what is no longer needed and hasn't been found so yet. In all there were 26 MB.
    assert memory_max / 4 < max(kept) < 2 * memory_max


@pytest.mark.parametrize(
    "kind",
    [
        "tcp",
        "tls",
    ],
)
def test_a_source_that_isnt_read_for_long_isnt_lost(kind: str, tmp_path: Path) -> None:
    """It waits in the middle of a write for longer than anybody may be silent, and goes on as if nothing had been."""
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    silence_s = 1.0

    def gate() -> None:
        eventually(lambda: server.host.ahead() == ["source"])
        until = time.monotonic() + 2.5 * silence_s
        eventually(lambda: server.host.over or time.monotonic() > until)

    def play(name: str) -> None:
        program: Any = federation.programs[name]
        with connect(str(server.address), name, authority=certificate, **program.as_plain()) as me:
            program.run(me)

    federation = ahead(gate)
    limits = Limits(memory_max=2**21, silence_s=silence_s)
    with Server(federation.plan(), f"{kind}://127.0.0.1:0", certificate=certificate, key=key, limits=limits) as server:
        for strand in [Strand(lambda name=name: play(name)) for name in federation.programs]:  # type: ignore[misc]
            strand.result()
        assert server.wait(PROMPT_S).digest == run(ahead(lambda: None)).digest


@pytest.mark.parametrize(
    "kind",
    [
        "tcp",
        "tls",
    ],
)
def test_who_hangs_up_with_something_unread_has_said_all_the_same(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system resets a connection that is closed with something unread, and forgets what it hasn't sent yet."""
    impatient(monkeypatch, 1.0)  # The one that hangs up; the server misses nobody so soon.
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    with Server(plan(["a"]), f"{kind}://127.0.0.1:0", certificate=certificate, key=key) as server:
        call = connect(str(server.address), "a", authority=certificate, publishes=["t"])
        with ExitStack() as until_it_has_gone, call as me:
            me.advance(to="1ms")
            in_server(server, lambda: server.host._put(server.host.sessions["a"], HEARTBEAT))
            eventually(lambda: select([me._wire._socket], [], [], 0)[0])
            until_it_has_gone.enter_context(held_up(server))
            me.publish("t", bytes(2**20))
        assert server.wait(PROMPT_S).times == {"a": MS}


def test_who_was_ended_is_gone() -> None:
    """Nobody who is told of the end in the midst of its work tries to go on."""
    with Server(plan(["stepping"], end="20ms")) as server:
        (walker,) = survivors(server, "stepping").values()
        walker.result()
        assert server.wait(PROMPT_S).times == {"stepping": 20 * MS}
