"""A wait that is interrupted is taken up again, and the history is that of the undisturbed run."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Self, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.federation.transports import PROMPT_S, Strand, eventually, held_up, in_server, make_certificate, nothing_left
from worldline import Federation, Network, Participant, Program, Server, connect, connect_async, link, plan, run
from worldline.federation import sockets as encrypted
from worldline.federation.participant.aio import AsyncParticipant
from worldline.federation.participant.client import Client
from worldline.federation.sockets import Encrypted, client_context, server_context
from worldline.lock import Action, Advance, Grant, Join, Ledger, ParticipantEvent, Publish, Reached, StartRun
from worldline.lock.ledger import Wire
from worldline.lock.lifecycle import LifecycleFilter
from worldline.model import MS, LossError, Message, UsageError


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


T = TypeVar("T")

NETWORK = Network(default=link("uniform(1ms, 4ms)"))
DECLARED: Any = {"publishes": ["t"], "subscribes": {"t": "newest(2)"}}


def step(me: Any, turn: int) -> Any:
    """One wait of a program that mixes all of them: the call, to be made as often as it takes."""
    me.publish("t", bytes([turn]))
    if turn % 4 == 0:
        return lambda: me.next(within=3 * MS)
    if turn % 4 == 1:
        return me.peek
    if turn % 4 == 2:
        return lambda: me.advance(by="2ms")
    return lambda: me.advance(to=me.now + MS)


TURNS = 12


def undisturbed(self: Participant) -> None:
    for turn in range(TURNS):
        step(self, turn)()


def federation(*, is_troubled: bool = False) -> Federation:
    """Return two that do the same; in trouble, their waits are made of several."""
    programs = {name: Program(undisturbed, **DECLARED) for name in ("a", "b")}
    trouble: Any = {"faults": ("3ms hang a 4ms", "9ms slow a 1ms 9ms"), "estop": "2ms"} if is_troubled else {}
    return Federation(programs, network=NETWORK, **trouble)


@pytest.mark.parametrize("is_troubled", [False, True])
@given(canceled_after=st.lists(st.lists(st.integers(0, 12), max_size=3), min_size=TURNS, max_size=TURNS))
def test_tasks_may_be_canceled_at_any_point(is_troubled: bool, canceled_after: list[list[int]]) -> None:
    """Each wait of one is canceled after so many steps of the loop, again and again, before it is seen through."""

    async def disturbed(me: AsyncParticipant) -> None:
        for turn in range(TURNS):
            call = step(me, turn)
            for steps in canceled_after[turn]:
                task = asyncio.ensure_future(call())
                for _ in range(steps):
                    await asyncio.sleep(0)
                if task.cancel():
                    await asyncio.wait([task])
                if not task.cancelled():
                    break  # It was quicker.
            else:
                await call()

    async def calm(me: AsyncParticipant) -> None:
        for turn in range(TURNS):
            await step(me, turn)()

    async def play(server: Server, name: str, program: Any) -> None:
        async with await connect_async(server, name, **DECLARED) as me:
            await program(me)

    async def both(server: Server) -> None:
        await asyncio.gather(play(server, "a", disturbed), play(server, "b", calm))

    with Server(federation(is_troubled=is_troubled).plan()) as server:
        asyncio.run(both(server))
        assert server.wait(PROMPT_S).digest == EXPECTED[is_troubled]


EXPECTED = [run(federation(is_troubled=is_troubled)).digest for is_troubled in (False, True)]


class Tick(Exception):  # noqa: N818 - it is no error.
    """What a signal's handler raises."""


@contextmanager
def ticking() -> Iterator[None]:
    def handle(number: int, frame: FrameType | None) -> None:
        raise Tick

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupt_when(happened: Callable[[], object]) -> Strand[None]:
    """Interrupt this thread, the main one, once it is so."""
    main = threading.main_thread().ident
    assert main is not None

    def wait() -> None:
        eventually(happened)
        signal.pthread_kill(main, signal.SIGUSR1)

    return Strand(wait)


ASKED = ("awaiting", "advancing", "peeking")


def state(server: Server, name: str) -> str:
    return in_server(server, lambda: server.host.arbiter.members[name].state.value)


@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
@pytest.mark.parametrize(
    "ask", [lambda me: me.next(until="9ms"), lambda me: me.next(within="9ms"), lambda me: me.advance(to="9ms")]
)
def test_a_handler_that_raises_interrupts_a_wait_which_is_taken_up_again(
    kind: str, ask: Callable[[Participant], list[Message]], tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    address = f"unix://{tmp_path}/socket" if kind == "unix" else f"{kind}://127.0.0.1:0"
    go = threading.Event()

    def other(target: str) -> None:
        with connect(target, "b", authority=certificate, publishes=["t"]) as me:
            assert go.wait(PROMPT_S)
            me.advance(to="5ms")
            me.publish("t", b"late")

    with ticking(), Server(plan(["a", "b"]), address, certificate=certificate, key=key) as server:
        late = Strand(lambda: other(str(server.address)))
        with connect(str(server.address), "a", authority=certificate, publishes=["u"], subscribes=["t"]) as me:
            for _ in range(3):
                interrupting = interrupt_when(lambda: me._waits and state(server, "a") in ASKED)
                with pytest.raises(Tick):
                    ask(me)
                interrupting.result()
            for mistake in (lambda: me.publish("u", b""), lambda: me.advance(to="7ms"), me.next, me.leave):
                with pytest.raises(UsageError, match=r"'9ms'\) was interrupted, and is still asked for: call it again"):
                    mistake()
            go.set()
            assert [message.payload for message in ask(me)] == [b"late"]
            me.publish("u", b"and on")
        late.result()
        assert server.wait(PROMPT_S).digest


def test_an_interrupted_peek_is_taken_up_again() -> None:
    go = threading.Event()

    def other(server: Server) -> None:
        with connect(server, "b", publishes=["t"]) as me:
            assert go.wait(PROMPT_S)
            me.advance(to="5ms")
            me.publish("t", b"late")

    with ticking(), Server(plan(["a", "b"], network=Network(default=link("9ms")))) as server:
        late = Strand(lambda: other(server))
        with connect(server, "a", publishes=["u"], subscribes=["t"]) as me:
            me.advance(to="8ms")
            for _ in range(3):
                interrupting = interrupt_when(lambda: me._waits and state(server, "a") in ASKED)
                with pytest.raises(Tick):
                    me.peek(until="17ms")
                interrupting.result()
            for mistake in (lambda: me.publish("u", b""), lambda: me.peek(until="9ms"), me.next, me.leave):
                with pytest.raises(UsageError, match=r"peek\(until='17ms'\) was interrupted, and is still asked for"):
                    mistake()
            go.set()
            assert me.peek() == 14 * MS  # It sees no further, so that is the same.
            assert me.now == 8 * MS
            assert [message.payload for message in me.next()] == [b"late"]
        late.result()
        assert server.wait(PROMPT_S).times == {"a": 14 * MS, "b": 5 * MS}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_frame_whose_sending_is_interrupted_is_finished_first(kind: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    address = f"{kind}://127.0.0.1:0"

    def undisturbed(self: Participant) -> None:
        self.publish("t", bytes(2**24))
        self.advance(to="3ms")
        self.publish("t", b"more")
        self.advance(to="5ms")

    expected = run(Federation({"a": Program(undisturbed, publishes=["t"])}))
    with ticking(), Server(plan(["a"]), address, certificate=certificate, key=key) as server:
        with connect(str(server.address), "a", authority=certificate, publishes=["t"]) as me:
            with held_up(server):
                # Whoever sends it, the program in either call or its pulse: the program waits for that.
                interrupting = interrupt_when(lambda: me._wire.queued.unsent)
                with pytest.raises(Tick):  # noqa: PT012 - it is one of the two.
                    me.publish("t", bytes(2**24))
                    me.advance(to="3ms")
                interrupting.result()
            me.advance(to="3ms")
            me.publish("t", b"more")
            me.advance(to="5ms")
        assert server.wait(PROMPT_S).digest == expected.digest


class InterruptedCalls:
    """Raises a `Tick` after the given number of C calls in a file, where a signal's handler would run."""

    def __init__(self, file: str, calls: int) -> None:
        self._file = file
        self._left = calls
        self.is_over = False

    def __enter__(self) -> Self:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        if event == "c_return" and frame.f_code.co_filename == self._file and not self.is_over:
            self._left -= 1
            if self._left < 0:
                self.is_over = True
                raise Tick


def tls_pair(folder: Path) -> tuple[Encrypted, ssl.SSLSocket]:
    certificate, key = make_certificate(folder)
    ours, theirs = socket.socketpair()
    serving = server_context(certificate, key)
    other = Strand(lambda: serving.wrap_socket(theirs, server_side=True))
    made = client_context(certificate).wrap_socket(ours, server_hostname="localhost")
    return Encrypted(made, PROMPT_S), other.result()


def test_tls_writes_and_reads_once_whatever_call_is_interrupted(tmp_path: Path) -> None:
    mine, other = tls_pair(tmp_path)

    def seen_through(call: Callable[[], T], interrupted: InterruptedCalls) -> T:
        with interrupted, suppress(Tick):
            return call()
        return call()

    ticks, is_over = 0, True
    while is_over:
        word = b"%d." % ticks
        sending = InterruptedCalls(encrypted.__file__, ticks)
        assert seen_through(lambda: mine.send(word), sending) == len(word)  # noqa: B023 - called at once.
        assert other.recv(100) == word
        other.send(word)
        reading = InterruptedCalls(encrypted.__file__, ticks)
        assert seen_through(lambda: mine.recv(100), reading) == word
        is_over = sending.is_over or reading.is_over
        ticks += 1
    assert ticks > 1
    other.close()
    assert mine.recv(100) == b""
    mine.close()
    with pytest.raises(OSError, match="the connection is closed"):
        mine.send(b"")


class InterruptingTls:
    """TLS as Python has it: if a handler raises in its thread, what it has read or written isn't told to anybody."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.coming = [b"one", b"two"]

    def pending(self) -> int:
        return len(self.coming)

    def write(self, data: bytes) -> int:
        self.sent.append(data)
        self._interrupt()
        return len(data)

    def read(self, size: int) -> bytes:
        data = self.coming.pop(0)
        self._interrupt()
        return data

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGUSR1)


def test_tls_is_interrupted_where_nothing_has_been_read_or_written() -> None:
    tls = InterruptingTls()
    connection: Any = SimpleNamespace(_sslobj=tls, setblocking=lambda _: None, close=lambda: None)
    mine = Encrypted(connection, PROMPT_S)
    with ticking():
        for word in (b"one", b"two"):
            with pytest.raises(Tick):
                mine.send(word)
            assert mine.send(word) == len(word)
            with pytest.raises(Tick):
                mine.recv(100)
            assert mine.recv(100) == word
    assert tls.sent == [b"one", b"two"]
    mine.close()


def test_who_gives_up_an_interrupted_wait_and_leaves_is_told_and_the_others_too() -> None:
    with ticking(), Server(plan(["a", "b"])) as server:
        other = Strand(lambda: waits(server, "b"))
        with pytest.raises(
            UsageError, match=r"a at 0s: leave isn't possible while it is advancing \(advance\(to='1s'\)"
        ):
            _give_up(server)
        assert "a at 0s: the run was broken off: its program raised UsageError: leave isn't possible" in str(
            other.failure()
        )


def _give_up(server: Server) -> None:
    with connect(server, "a", subscribes=["t"]) as me:
        interrupting = interrupt_when(lambda: me._waits and state(server, "a") in ASKED)
        with pytest.raises(Tick):
            me.advance(to="1s")
        interrupting.result()


def waits(server: Server, name: str) -> None:
    with connect(server, name, publishes=["t"]) as me:
        eventually(lambda: server.host.over)
        me.advance(to="1h")  # That the run is over may still be on its way.


def test_only_one_task_waits_at_a_time() -> None:
    async def alone(server: Server) -> None:
        async with await connect_async(server, "a", subscribes=["t"]) as me:
            first = asyncio.create_task(me.advance(to="5ms"))
            while me._ledger.state.value != "advancing":
                await asyncio.sleep(0)
            with pytest.raises(UsageError, match="two of its threads or tasks wait at once"):
                await me.advance(to="5ms")
            server.hold_at(None)
            assert await first == []

    with Server(plan(["a"])) as server:
        server.hold_at(0)
        asyncio.run(alone(server))


# --- Forks ---


def in_a_fork(act: Callable[[], object]) -> tuple[int, bytes]:
    """Do something in a forked process; return its exit code and what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 0
        try:
            act()
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
            code = 9
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


pytest_forks = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest_forks
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_forked_process_doesnt_speak_for_its_parent(kind: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    with Server(plan(["a"]), f"{kind}://127.0.0.1:0", certificate=certificate, key=key) as server:
        with connect(str(server.address), "a", authority=certificate) as me:
            me.advance(to="1ms")
            acts: tuple[Callable[[], object], ...] = (
                lambda: me.publish("t", b""),
                lambda: me.advance(to="2ms"),
                lambda: me.next(),
                lambda: me.peek(),
                lambda: me.leave(),
            )
            for act in acts:
                code, said = in_a_fork(act)
                assert code == 9
                assert b"UsageError: a: this process was forked from the participant's own" in said
            assert in_a_fork(lambda: me.__exit__(None, None, None)) == (0, b"")
            assert in_a_fork(lambda: me.__exit__(SystemExit, SystemExit(0), None)) == (0, b"")
            assert in_a_fork(me.close) == (0, b"")
            me.publish("t", b"still here")
            me.advance(to="2ms")
        assert server.wait(PROMPT_S).times == {"a": 2 * MS}


@pytest_forks
def test_a_forked_process_doesnt_keep_its_parents_connection_open() -> None:
    """The participant hangs up; that its child lives on delays nobody's knowledge of it. The server's too."""
    with Server(plan(["a"])) as server:
        me = connect(str(server.address), "a").__enter__()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # Until its parent lets it go.
            os._exit(0)
        try:
            me._wire.queued.socket.close()
            with pytest.raises(LossError, match="its connection was closed, and it hadn't left"):
                server.wait(PROMPT_S)
        finally:
            os.close(writing)
            os.close(reading)
            os.waitpid(child, 0)
            me.close()


@pytest_forks
def test_a_forked_process_is_no_server(tmp_path: Path) -> None:
    with Server(plan(["a"]), f"unix://{tmp_path}/socket") as server:
        with connect(str(server.address), "a") as me:
            assert in_a_fork(lambda: server.__exit__(None, None, None)) == (0, b"")
            me.advance(to="1ms")
        assert server.wait(PROMPT_S).times == {"a": MS}


@pytest_forks
def test_a_forked_process_doesnt_speak_for_a_resident() -> None:
    server = Server(plan(["a"]))
    with server.resident("a") as me:
        me.advance(to="1ms")
        acts: tuple[Callable[[], object], ...] = (lambda: me.publish("t", b""), lambda: me.advance(to="2ms"), me.leave)
        for act in acts:
            code, said = in_a_fork(act)
            assert code == 9
            assert b"UsageError: a: this process was forked from the participant's own" in said
        assert in_a_fork(lambda: me.__exit__(None, None, None)) == (0, b"")
        me.advance(to="2ms")
    assert me.outcome().times == {"a": 2 * MS}


Waits = Callable[[Callable[[], Any]], Any]
"""How a call that waits is made."""


def by_steps(me: Participant, to: int, wait: Waits) -> list[Message]:
    return wait(lambda: me.advance(to=to))


def by_peeking(me: Participant, to: int, wait: Waits) -> list[Message]:
    got: list[Message] = []
    while me.now < to:
        known = wait(lambda: me.peek(until=to))
        got += wait(me.next) if known == me.now else wait(lambda: me.advance(to=known))  # noqa: B023 - called at once.
    return got


@pytest.mark.parametrize("go_on", [by_steps, by_peeking])
def test_a_busy_wait_may_be_interrupted_anywhere(go_on: Callable[[Participant, int, Waits], list[Message]]) -> None:
    """Answers come at once, so most interruptions come while something is being said or taken in."""
    steps = 300
    waiting: list[Participant] = []
    interrupted = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if waiting and waiting[0]._waits:
            waiting.clear()  # Until it waits again: on a busy machine the next tick comes while this one is handled.
            raise Tick

    def walk(me: Participant, wait: Waits) -> list[bytes]:
        got = []
        for turn in range(steps):
            me.publish("t", turn.to_bytes(2))
            got += [message.payload for message in go_on(me, (turn + 1) * MS, wait)]
        return got

    def calm(server: Server) -> list[bytes]:
        with connect(server, "b", publishes=["t"], subscribes=["t"]) as me:
            assert interrupted.wait(PROMPT_S)  # So one interruption is certain: the other waits meanwhile.
            return walk(me, lambda call: call())

    ticks = 0

    def patient(call: Callable[[], Any]) -> Any:
        nonlocal ticks
        while True:
            waiting[:] = [me]
            try:
                return call()
            except Tick:
                ticks += 1
                interrupted.set()
            finally:
                waiting.clear()

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with Server(plan(["a", "b"])) as server:
            other = Strand(lambda: calm(server))
            with connect(server, "a", publishes=["t"], subscribes=["t"]) as me:
                signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
                try:
                    got = walk(me, patient)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            assert got == other.result() == [turn.to_bytes(2) for turn in range(steps - 1)]
            server.wait(PROMPT_S)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ticks


def test_a_wrong_call_takes_nothing_back() -> None:
    with Server(plan(["a"])) as server, connect(server, "a") as me:
        me.advance(to="1ms")
        for wrong in (lambda: me.advance(by=-1), lambda: me.next(until=0), lambda: me.peek(until=0)):
            with pytest.raises(UsageError):
                wrong()
            assert me.now == MS


def test_what_the_pulse_has_asked_for_is_answered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that the program hadn't handed over when it was interrupted is told by the pulse, not asked for."""
    asks, is_told = LifecycleFilter._move, threading.Event()

    def interrupted(self: LifecycleFilter, target: int, wakes: bool) -> Any:
        monkeypatch.setattr(LifecycleFilter, "_move", asks)
        asks(self, target, wakes)
        raise Tick

    def other(address: str) -> None:
        with connect(address, "b", publishes=["t"]) as me:
            me.advance(to="2ms")
            is_told.wait(PROMPT_S)
            me.publish("t", b"x", at="5ms")

    run = Federation({name: Program(lambda _: None) for name in "ab"}, estop="2ms").plan()
    with Server(run, "tcp://127.0.0.1:0") as server:
        sending = Strand(lambda: other(str(server.address)))
        with connect(str(server.address), "a", subscribes=["t"]) as me:
            assert me.next(until="1ms") == []
            monkeypatch.setattr(LifecycleFilter, "_move", interrupted)
            with pytest.raises(Tick):
                me.next(until="9ms")
            me.catch_up()
            is_told.set()
            assert [message.payload for message in me.next(until="9ms")] == [b"x"]
        sending.result()


class Unsteady(Wire):
    """A connection to somebody who has granted all before 10; a signal's handler raises in it, early or late."""

    def __init__(self) -> None:
        self.heard: list[ParticipantEvent] = []
        self.early = self.late = False

    def participant(self) -> Client:
        ledger = Ledger("a", Join())
        me = Client(ledger, self)
        me.join()
        me.advance(1)
        self.heard.clear()
        return me

    def is_due(self, urgent: bool) -> bool:
        return True

    def tell(self, events: list[ParticipantEvent]) -> None:
        if self.early:
            self.early = False
            raise Tick
        self.heard += events
        del events[:]
        if self.late:
            self.late = False
            raise Tick

    def ask(self, events: list[ParticipantEvent]) -> Action:
        asked = events[-1]
        self.tell(events)
        return Grant("a", max(10, asked.to), []) if isinstance(asked, Advance) else StartRun("a", 0, 7, 5, 10)


def test_a_step_that_the_server_was_told_of_must_be_made_again_before_anything_else() -> None:
    connection = Unsteady()
    me = connection.participant()
    connection.late = True
    with pytest.raises(Tick):
        me.advance(5)
    assert (me.now, connection.heard) == (1, [Reached(5)])
    with pytest.raises(UsageError, match="call it again first"):
        me.publish("t", b"too early")
    me.advance(5)
    me.publish("t", b"x")
    assert connection.heard == [Reached(5), Publish("t", b"x", 5)]


@pytest.mark.parametrize("then", [lambda me: me.catch_up(), lambda me: me.advance(20)])
def test_what_was_published_before_an_interruption_is_told_afterwards(then: Callable[[Participant], object]) -> None:
    connection = Unsteady()
    me = connection.participant()
    connection.early = True
    with pytest.raises(Tick):
        me.publish("t", b"x")
    then(me)
    assert connection.heard[0] == Publish("t", b"x", 1)
