"""The participants of one process on one trunk: held, kept waiting by each other, refused and lost."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import msgpack

from tests.federation.transports import PATIENCE_S, PROMPT_S, Strand, eventually, in_server, nothing_left, states
from worldline import Federation, Network, Participant, Program, Server, connect, link, plan, run
from worldline.federation.inprocess.strand import THREADS, ThreadStrand, strand_kind
from worldline.federation.participant import connection as connection_module
from worldline.federation.participant import crew as crews
from worldline.federation.participant.call import Call
from worldline.federation.participant.crew import Circuit, Crew, WorkerTrunk
from worldline.federation.server.limits import Limits
from worldline.lock import State
from worldline.model import MS, LossError, PeerError, UsageError
from worldline.model.errors import BrokenOff
from worldline.model.frames import frame
from worldline.wire.trunk import HoldCircuit, TrunkWord, decode_word

Run = Callable[[Participant], object]


@pytest.fixture(autouse=True, params=["greenlets", "threads"])
def _tidy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "threads":
        monkeypatch.setenv(THREADS, "1")
    with nothing_left():
        yield


def work(
    server: Server, programs: dict[str, Program | Run], **options: object
) -> Strand[dict[str, BaseException | None]]:
    """Have a crew do this in a thread of its own; return how each has ended."""
    made = {name: each if isinstance(each, Program) else Program(each) for name, each in programs.items()}
    calls = [Call(str(server.address), name, **{**each.as_plain(), **options}) for name, each in made.items()]  # type: ignore[arg-type]

    def live_all() -> dict[str, BaseException | None]:
        crew = Crew(calls)
        ends: dict[str, BaseException | None] = {}

        def live(circuit: Circuit) -> None:
            try:
                with crew.participant(circuit) as participant:
                    made[circuit.name].run(participant)
            except Exception as error:
                ends[circuit.name] = error
            else:
                ends[circuit.name] = None

        crew.run(live)
        return ends

    return Strand(live_all, "crew")


@pytest.mark.long
def test_one_that_runs_far_ahead_is_held_and_others_of_its_crew_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def source(me: Participant) -> None:
        for number in range(300):
            me.publish("data", bytes(1000), at=number * MS)
            me.promise((number + 1) * MS)

    def sink(me: Participant) -> None:
        while me.now < 300 * MS:
            me.advance(by=10 * MS)

    words: list[TrunkWord] = []

    def noted(body: bytes) -> TrunkWord:
        words.append(decode_word(body))
        return words[-1]

    monkeypatch.setattr(crews, "decode_word", noted)
    monkeypatch.setattr(crews, "_SEND_AFTER_S", 0.0)
    programs = {
        "source": Program(source, publishes=["data"], subscribes=[]),
        "sink": Program(sink, publishes=[], subscribes=["data"]),
    }
    federation = Federation(programs, network=Network(default=link("1ms")))
    with Server(federation.plan(), limits=Limits(memory_max=20_000)) as server:
        ends = work(server, dict(programs)).result()
        outcome = server.wait(PATIENCE_S)
    assert ends == {"source": None, "sink": None}
    assert outcome.digest == run(federation).digest
    assert HoldCircuit(0) in words


def test_one_that_computes_for_long_is_named_and_what_it_said_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_BUSY_S", 0.02)
    named, released = threading.Event(), threading.Event()

    def compute(me: Participant) -> None:
        me.advance(MS)
        me.publish("t", b"x")
        named.set()
        assert released.wait(PATIENCE_S)

    def wait(me: Participant) -> None:
        me.advance(5 * MS)

    with Server(plan(["a", "b", "c"], network=Network(default=link("1ms")))) as server:
        crew = work(server, {"a": compute, "b": wait})
        other = work(server, {"c": Program(lambda me: me.next(), subscribes=["t"])})
        assert named.wait(PATIENCE_S)
        eventually(lambda: any("a has been running" in remark for remark in in_server(server, server.host.remarks)))
        assert in_server(server, lambda: server.host.arbiter.members["a"].sequence) == 1
        released.set()
        assert crew.result() == {"a": None, "b": None}
        assert other.result() == {"c": None}
    assert server.host.remarks() == []


def test_one_that_is_held_within_an_operation_doesnt_hold_up_the_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_BUSY_S", 0.02)
    released = threading.Event()

    def operate(me: Participant) -> None:
        me.advance(MS)
        with me._lock:  # As every operation does, which may have to wait for the server then.
            assert released.wait(PATIENCE_S)

    with Server(plan(["a", "b"])) as server:
        crew = work(server, {"a": operate, "b": lambda me: me.advance(5 * MS)})
        try:
            eventually(
                lambda: any("a has been running" in remark for remark in in_server(server, server.host.remarks)),
                PROMPT_S,
            )
        finally:
            released.set()
        assert crew.result() == {"a": None, "b": None}


def test_when_the_run_is_broken_off_everybody_in_the_crew_is_told_by_whom() -> None:
    def fail(me: Participant) -> None:
        me.advance(MS)
        raise ValueError("no more")

    with Server(plan(["a", "b", "c"])) as server:
        hears = {
            "a": Program(lambda me: me.next(), subscribes=["t"]),
            "c": Program(lambda me: me.advance(9 * MS), subscribes=["t"]),
        }
        ends = work(server, {**hears, "b": fail}).result()
    assert isinstance(ends["b"], ValueError)
    for name in ("a", "c"):
        error = ends[name]
        assert isinstance(error, BrokenOff)
        assert error.participant == "b"
        assert "its program raised ValueError: no more" in str(error)


def test_whoever_is_refused_is_alone_in_that() -> None:
    def leave(me: Participant) -> None:
        me.leave()

    with Server(plan(["a", "b"])) as server:
        ends = work(server, dict.fromkeys("xayb", leave)).result()
        server.wait(PATIENCE_S)
    assert (ends["a"], ends["b"]) == (None, None)
    for name in ("x", "y"):
        assert isinstance(ends[name], UsageError)
        assert f"unexpected participant '{name}'" in str(ends[name])


class Tick(Exception):  # noqa: N818 - it is no error.
    """What a signal's handler raises."""


@contextmanager
def handling(signum: signal.Signals, handle: Callable[[], None]) -> Iterator[None]:
    before = signal.signal(signum, lambda *_: handle())
    gc.disable()  # What it calls would be interrupted, too, and nobody could know of it.
    try:
        yield
    finally:
        gc.enable()
        signal.signal(signum, before)


def raise_tick() -> None:
    raise Tick


def chatter(me: Participant, patient: Callable[[Callable[[], object]], object]) -> None:
    for turn in range(200):
        me.publish("t", turn.to_bytes(2))
        target = (turn + 1) * MS
        patient(lambda: me.advance(to=target))  # noqa: B023 - called at once.
    patient(lambda: me.next(until=me.now + MS))


CHATTERING = Federation(
    {
        name: Program(lambda me: chatter(me, lambda call: call()), publishes=["t"], subscribes=["t"])
        for name in ("a", "b", "c")
    },
    network=Network(default=link("1ms")),
)


def interrupted_crew(server: Server, play: Callable[[Crew, Participant], None]) -> dict[str, BaseException]:
    """Have two of three do this as a crew in this thread, the one in which handlers run; return who has failed."""
    declared: Any = {"publishes": ["t"], "subscribes": ["t"]}
    crew = Crew([Call(str(server.address), name, **declared) for name in ("a", "b")])
    failures: dict[str, BaseException] = {}

    def live(circuit: Circuit) -> None:
        try:
            with crew.participant(circuit) as me:
                play(crew, me)
        except Exception as error:
            failures[circuit.name] = error

    crew.run(live)
    return failures


def calm(server: Server) -> None:
    with connect(server, "c", publishes=["t"], subscribes=["t"]) as me:
        chatter(me, lambda call: call())


@pytest.fixture
def greenlets() -> None:
    if strand_kind() is ThreadStrand:
        pytest.skip("programs aren't in the thread that handlers run in")


@pytest.mark.usefixtures("greenlets")
def test_a_handler_that_raises_while_all_wait_interrupts_the_wait_of_the_one_that_went_on_last() -> None:
    ticks: list[str] = []
    main = threading.main_thread().ident
    assert main is not None

    def patient(me: Participant, call: Callable[[], object]) -> object:
        while True:
            try:
                return call()
            except Tick:
                ticks.append(me.name)

    def interrupt(server: Server) -> None:
        for times in range(3):
            eventually(lambda: len(ticks) == times)  # noqa: B023 - called at once.
            eventually(lambda: set(states(server).values()) == {State.ADVANCING.value})
            signal.pthread_kill(main, signal.SIGUSR1)
        eventually(lambda: len(ticks) == 3)
        server.hold_at(None)

    with handling(signal.SIGUSR1, raise_tick), Server(CHATTERING.plan()) as server:
        server.hold_at(0)
        other = Strand(lambda: calm(server))
        interrupting = Strand(lambda: interrupt(server))
        failures = interrupted_crew(server, lambda _, me: chatter(me, lambda call: patient(me, call)))
        interrupting.result()
        other.result()
        assert failures == {}
        assert server.wait(PROMPT_S).digest == run(CHATTERING).digest
    assert len(ticks) == 3
    assert len(set(ticks)) == 1


@pytest.mark.usefixtures("greenlets")
def test_a_crew_may_be_interrupted_anywhere() -> None:
    ticks = 0
    waiting: list[Participant] = []
    crews: list[Crew] = []

    def handle() -> None:
        """Raise only where a program waits: what it does otherwise may be left half done."""
        if len(waiting) < 2 or crews[0]._raised:
            return
        running = crews[0]._trunk.running
        if running is None or crews[0]._participants[running]._waits:
            raise Tick

    def play(crew: Crew, me: Participant) -> None:
        def patient(call: Callable[[], object]) -> object:
            nonlocal ticks
            while True:
                try:
                    waiting.append(me)
                    return call()
                except Tick:
                    ticks += 1
                finally:
                    waiting.remove(me)

        crews[:] = [crew]
        chatter(me, patient)

    with handling(signal.SIGALRM, handle), Server(CHATTERING.plan()) as server:
        other = Strand(lambda: calm(server))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            failures = interrupted_crew(server, play)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        other.result()
        assert failures == {}
        assert server.wait(PROMPT_S).digest == run(CHATTERING).digest
    assert ticks


def trunk_to(*said: bytes) -> tuple[WorkerTrunk, Call]:
    """Return a trunk to a server that says just this, whatever it is told, and goes."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"".join(said))
        theirs.shutdown(socket.SHUT_WR)
        theirs.setblocking(True)
    return WorkerTrunk(ours, lambda _: None), Call("tcp://127.0.0.1:1", "a")


CHALLENGE = frame(msgpack.encode(["challenge", "worldline", 1, bytes(16)]))
OLD = frame(msgpack.encode(["refused", "protocol", "a frame of 8 bytes can't be read"]))
CROWDED = frame(msgpack.encode(["refused", "crowded", "too many"]))


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ([], LossError, "the server closed the connection (a trunk needs the same Worldline on both sides)"),
        ([CHALLENGE, OLD], LossError, "the server refused to go on: a frame of 8 bytes can't be read"),
        ([CROWDED], UsageError, "the server refused the connection: too many"),
        (
            [frame(msgpack.encode(["challenge", "worldline", 2, b""]))],
            PeerError,
            "the server speaks worldline version 2",
        ),
    ],
    ids=["nothing", "old", "crowded", "new"],
)
def test_a_server_that_carries_no_trunk_is_refused_in_clear_words(
    said: list[bytes], kind: type[Exception], text: str
) -> None:
    trunk, call = trunk_to(*said)
    try:
        with pytest.raises(kind) as refused:
            trunk.open([call])[0].ledger()
        assert text in str(refused.value)
    finally:
        trunk.close()


@pytest.mark.parametrize("unsent", [b"", bytes(2**24)], ids=["says nothing", "takes nothing"])
def test_a_server_that_does_nothing_any_more_isnt_waited_for_if_somebody_failed(
    unsent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_WAKE_S", 0.01)
    monkeypatch.setattr(crews, "_FAREWELL_S", 0.05)
    ours, theirs = socket.socketpair()
    with theirs:
        trunk = WorkerTrunk(ours, lambda _: None)
        circuit = Circuit(trunk, 0, Call("tcp://127.0.0.1:1", "a"))
        circuit._send(unsent)
        trunk.hang_up(circuit, patient=False)
        Strand(trunk.close).result(PROMPT_S)


def test_the_end_by_order_is_everybodys() -> None:
    with Server(plan(["a", "b"])) as server:
        server.hold_at(0)
        crew = work(server, {"a": lambda me: me.advance(MS), "b": lambda me: me.advance(MS)})
        eventually(lambda: set(states(server).values()) == {State.ADVANCING.value})
        server.end(LossError("the plug was pulled"))
        ends = crew.result()
    assert {name: str(error) for name, error in ends.items()} == dict.fromkeys(
        "ab", "the run was broken off: the plug was pulled"
    )
