"""Losses, with real processes that are killed and stopped: who is left hears of it, soon, with name, time and cause.

Also: nobody fills the server's memory, neither by running ahead nor by never reading.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select
from typing import Any

import pytest

from tests.federation.transports import (
    PATIENCE_S,
    PROMPT_S,
    ServerClock,
    Strand,
    brief,
    eventually,
    held_up,
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
from worldline.federation.participant import connection as connection_module
from worldline.federation.participant.client import Client
from worldline.federation.peer_process import is_stopped
from worldline.federation.server.limits import Limits
from worldline.model import LossError
from worldline.wire.codec import HEARTBEAT

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
from worldline.federation.server.limits import Limits
from worldline.federation.peer_process import is_stopped
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


def peeking(target: Server | str, name: str) -> None:
    with connect(target, name, publishes=["y"], subscribes=["t"]) as me:
        while True:
            known = me.peek()
            me.next() if known == me.now else me.advance(to=known)


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
    "peeking": peeking,
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
    ("sign", "cause"),
    [
        pytest.param(signal.SIGKILL, "its connection was closed, and it hadn't left", id="killed"),
        # Only since there is a limit to silence.
        pytest.param(signal.SIGSTOP, "nothing was heard from it for", id="stopped"),
    ],
)
def test_a_lost_participant_is_named_to_everybody_with_its_time(
    sign: int, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief(monkeypatch)  # One that is stopped doesn't go.
    clock = ServerClock()
    with ExitStack() as stack:
        limits = Limits(silence_s=8.0)
        server = stack.enter_context(Server(plan(["victim", *SURVIVORS]), limits=limits, clock=clock))
        left = survivors(str(server.address))
        victim, _ = stack.enter_context(process(VICTIM, str(server.address)))
        expected = {"advancing": "advancing", "awaiting": "awaiting", "in a loop": "awaiting", "peeking": "peeking"}
        eventually(lambda: expected.items() <= states(server).items())
        os.kill(victim.pid, sign)
        if sign == signal.SIGSTOP:
            wait_stopped(victim)
            clock.skip(server, 9.0)
        begun = time.monotonic()
        with pytest.raises(LossError, match=rf"victim at 5ms: {cause}") as loss:
            server.wait(PROMPT_S)
        assert (loss.value.participant, loss.value.at, loss.value.exit_code) == ("victim", 5 * MS, 3)
        for name, strand in left.items():
            told = strand.failure(max(0.1, begun + PROMPT_S - time.monotonic()))
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
    clock = ServerClock()
    with Server(plan(["a", "b", "c"]), limits=Limits(join_s=60.0), clock=clock) as server:
        waiting = Strand(lambda: connect(server, "a").__enter__())
        eventually(lambda: states(server)["a"] == "joined")
        clock.skip(server, 61.0)
        assert "b, c didn't join within 60 seconds" in str(waiting.failure(PROMPT_S))
        with pytest.raises(LossError, match=r"b, c didn't join .*here: a; limits.join sets how long"):
            server.wait(PROMPT_S)


# --- The server is lost ---


def holding_up(target: str, name: str, started: threading.Event, release: threading.Event) -> None:
    """It computes, so that others wait for it, and asks when it is told to."""
    with connect(target, name, publishes=["t"]) as me:
        started.set()
        release.wait(PATIENCE_S)
        me.advance(to="1h")


def test_a_server_that_is_killed_is_missed_by_everybody() -> None:
    started, release = threading.Event(), threading.Event()
    with process(SERVER, "computing", *SURVIVORS) as (server, address):
        left = survivors(address)
        left["computing"] = Strand(lambda: holding_up(address, "computing", started, release))
        assert started.wait(PATIENCE_S)
        server.kill()
        begun = time.monotonic()
        release.set()
        for name, strand in left.items():
            told = strand.failure(max(0.1, begun + PROMPT_S - time.monotonic()))
            assert isinstance(told, LossError), name
            words = ("the server closed the connection", "the connection to the server broke")
            assert any(some in str(told) for some in words), (name, told)


# --- Nobody is to blame ---

WALKER = """
import sys, worldline
with worldline.connect(sys.argv[1], sys.argv[2], publishes=["t"], subscribes=["t"]) as me:
    print("there", flush=True)
    sys.stdin.readline()
    for _ in range(10):
        me.publish("t", b"")
        me.advance(by="1ms")
"""

BUSY = """
import sys, worldline, ctypes
with worldline.connect(sys.argv[1], "busy", publishes=["t"], subscribes=["t"]) as me:
    me.advance(to="1ms")
    print("there", flush=True)
    ctypes.PyDLL(None).usleep(int(1e6 * 0.4))  # Which keeps the interpreter to itself, as one long call in C does.
    me.advance(to="10ms")
"""


def passed(seconds: float) -> None:
    """Let real time pass, in which nothing may happen."""
    threading.Event().wait(seconds)


def wait_stopped(child: subprocess.Popen[str]) -> None:
    eventually(lambda: is_stopped(child.pid))


@pytest.mark.parametrize(("kind", "silence_s"), [("tcp", None), ("unix", 0.1)])
def test_one_long_call_in_c_is_no_loss(kind: str, silence_s: float | None, tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/socket" if kind == "unix" else "tcp://127.0.0.1:0"
    limits = Limits(silence_s=silence_s, unreachable_s=0.1)
    with Server(plan(["busy", "awaiting"], until="10ms"), address, limits=limits) as server:
        (waiting,) = survivors(str(server.address), "awaiting").values()
        with process(BUSY, str(server.address)) as (busy, _):
            waiting.result(PATIENCE_S)
            assert busy.wait(PATIENCE_S) == 0
        assert server.wait(PROMPT_S).times == {"busy": 10 * MS, "awaiting": 10 * MS}


def test_a_stopped_participant_is_named_and_goes_on_when_it_is_resumed() -> None:
    with Server(plan(["victim", "awaiting"], until="5ms"), limits=Limits(unreachable_s=0.2)) as server:
        (waiting,) = survivors(str(server.address), "awaiting").values()
        with process(VICTIM, str(server.address)) as (victim, _):
            os.kill(victim.pid, signal.SIGSTOP)
            eventually(lambda: in_server(server, server.host.remarks) == ["victim is stopped"])
            assert not server.host.over
            os.kill(victim.pid, signal.SIGCONT)
            eventually(lambda: in_server(server, server.host.remarks) == [])
            assert victim.stdin is not None
            victim.stdin.close()
            assert victim.wait(PATIENCE_S) == 0
        waiting.result()
        assert server.wait(PROMPT_S).digest


@pytest.mark.long
@pytest.mark.parametrize("everybody", [False, True])
def test_a_server_that_is_stopped_and_resumed_blames_nobody_and_is_blamed_by_nobody(everybody: bool) -> None:
    """As Ctrl-Z and `fg` do, to a launcher alone or to all that it has started."""
    names = ("awaiting", "in a loop")
    with ExitStack() as stack:
        server, address = stack.enter_context(process(SERVER, "a", *names))
        left = survivors(address, *names)
        walker, _ = stack.enter_context(process(WALKER, address, "a"))
        stopped = [server, walker] if everybody else [server]
        for child in stopped:
            os.kill(child.pid, signal.SIGSTOP)
            wait_stopped(child)
        passed(1.2 * SILENCE_S)  # Longer than the server was told to put up with.
        assert not any(strand.done for strand in left.values())
        for child in stopped:
            os.kill(child.pid, signal.SIGCONT)
        assert walker.stdin is not None
        walker.stdin.close()
        for strand in left.values():
            strand.result()
        assert (walker.wait(PATIENCE_S), server.wait(PATIENCE_S)) == (0, 0)


# --- A machine is lost ---


@pytest.mark.parametrize(
    ("unreachable_s", "settings"), [(20.0, [1, 8, 4, 3]), (1e6, [1, 32767, 32767, 3])], ids=["usual", "very long"]
)
def test_the_system_asks_a_silent_machine_for_signs_of_life(unreachable_s: float, settings: list[int]) -> None:
    def found(plug: socket.socket) -> list[int]:
        tcp = [plug.getsockopt(socket.IPPROTO_TCP, option) for option in KEEPALIVE]
        return [plug.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *tcp]

    with Server(plan(["a"]), limits=Limits(unreachable_s=unreachable_s)) as server:
        with connect(str(server.address), "a") as me:
            assert found(me._wire.queued.plain) == settings
            (plug,) = server._connections.opened
            assert found(plug._socket) == settings
        assert server.wait(PROMPT_S).digest


KEEPALIVE = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)

ELSEWHERE = """
import sys, time, worldline
with worldline.connect(sys.argv[1], sys.argv[2], token="secret", publishes=["t"], subscribes=["x"]) as me:
    me.advance(to="5ms")
    print("there", flush=True)
    me.next() if sys.argv[2] == "waits" else sys.stdin.read()
"""


def command(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, str]]:
    """Another machine, as far as the network can tell: its name, and our address as it sees it."""
    name, number = f"worldline-{os.getpid()}", os.getpid() % 250 + 1
    here, there = f"10.213.{number}.1", f"10.213.{number}.2"
    if shutil.which("ip") is None or subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        pytest.skip("a network of one's own can't be made here")
    try:
        command("ip", "link", "add", f"wl{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        command("ip", "address", "add", f"{here}/30", "dev", f"wl{number}")
        command("ip", "link", "set", f"wl{number}", "up")
        command("ip", "-n", name, "address", "add", f"{there}/30", "dev", "eth0")
        command("ip", "-n", name, "link", "set", "eth0", "up")
        yield name, here
    finally:
        subprocess.run(["ip", "link", "delete", f"wl{number}"], capture_output=True, timeout=PATIENCE_S)
        command("ip", "netns", "delete", name)


@pytest.mark.long
@pytest.mark.parametrize("how", ["waits", "computes"])
def test_a_machine_that_vanishes_is_missed_at_both_ends(how: str, elsewhere: tuple[str, str]) -> None:
    """No word, no end of the stream: nothing comes from there any more. With something under way and without."""
    name, here = elsewhere
    limits = Limits(unreachable_s=2.0)
    with Server(plan(["here", how]), f"tcp://{here}:0", token="secret", limits=limits) as server, ExitStack() as stack:
        stay = threading.Event()

        def computing() -> None:
            with connect(server, "here", token="secret", publishes=["x"]) as me:
                me.advance(to="5ms")
                me.catch_up()
                stay.wait(PATIENCE_S)

        near = Strand(computing)
        in_there = ["ip", "netns", "exec", name, sys.executable, "-c", ELSEWHERE, str(server.address), how]
        far = subprocess.Popen(
            in_there, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        stack.enter_context(far)
        stack.callback(far.kill)
        assert far.stdout is not None
        if how == "computes":
            assert far.stdout.readline() == "there\n"
        else:
            eventually(lambda: states(server)["waits"] == "awaiting")
        command("ip", "-n", name, "link", "set", "eth0", "down")
        with pytest.raises(LossError, match=rf"{how} at 5ms: (its machine hasn't answered|.*machine doesn't answer)"):
            server.wait(PROMPT_S * 3)
        stay.set()
        near.failure()
        if how == "waits":
            assert far.stderr is not None
            said = far.stderr.read()
            assert far.wait(PATIENCE_S)
            assert "the server's machine hasn't answered" in said or "the other machine doesn't answer" in said


# --- Memory ---


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


@pytest.mark.parametrize("kind", ["tcp", pytest.param("tls", marks=pytest.mark.long)])
def test_a_source_that_isnt_read_for_long_isnt_lost(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits in the middle of a write for longer than anybody may be silent, and goes on as if nothing had been."""
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    clock = ServerClock()
    woken = threading.Semaphore(0)

    def wake(*_: object) -> bool:  # Whoever can't go on asks whether the other machine is there.
        if "source" in clients and clients["source"]._wire.queued.unsent:
            woken.release()
        return False

    clients: dict[str, Client] = {}

    monkeypatch.setattr(connection_module, "_WAKE_S", 0.02)  # So often it looks up from a write.
    monkeypatch.setattr(connection_module, "is_unreachable", wake)

    def gate() -> None:
        eventually(lambda: server.host.flow.ahead() == ["source"])
        clock.skip(server, 20.0)
        for _ in range(3):
            assert woken.acquire(timeout=PATIENCE_S)

    def play(name: str) -> None:
        program: Any = federation.programs[name]
        clients[name] = connect(str(server.address), name, authority=certificate, **program.as_plain())
        with clients[name] as me:
            program.run(me)

    federation = ahead(gate)
    limits = Limits(memory_max=2**21, silence_s=8.0)
    address = f"{kind}://127.0.0.1:0"
    with Server(federation.plan(), address, certificate=certificate, key=key, limits=limits, clock=clock) as server:
        for strand in [Strand(lambda name=name: play(name)) for name in federation.programs]:  # type: ignore[misc]
            strand.result()
        assert server.wait(PROMPT_S).digest == run(ahead(lambda: None)).digest


@pytest.mark.parametrize("kind", ["tcp", pytest.param("tls", marks=pytest.mark.long)])
def test_who_hangs_up_with_something_unread_has_said_all_the_same(kind: str, tmp_path: Path) -> None:
    """The system resets a connection that is closed with something unread, and forgets what it hasn't sent yet."""
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    with Server(plan(["a"]), f"{kind}://127.0.0.1:0", certificate=certificate, key=key) as server:
        me = connect(str(server.address), "a", authority=certificate, publishes=["t"]).__enter__()
        me.advance(to="1ms")
        in_server(server, lambda: server.host.put(server.host.sessions["a"], HEARTBEAT))
        eventually(lambda: select([me._wire.queued.socket], [], [], 0)[0])
        with held_up(server):
            me.publish("t", bytes(2**20))
            leaving = Strand(lambda: me.__exit__(None, None, None))
            eventually(lambda: not select([me._wire.queued.socket], [], [], 0)[0])
        leaving.result()
        assert server.wait(PROMPT_S).times == {"a": MS}


def test_who_was_ended_is_gone() -> None:
    """Nobody who is told of the end in the midst of its work tries to go on."""
    with Server(plan(["stepping"], until="20ms")) as server:
        (walker,) = survivors(server, "stepping").values()
        walker.result()
        assert server.wait(PROMPT_S).times == {"stepping": 20 * MS}
