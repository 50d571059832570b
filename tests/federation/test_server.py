"""The server as a library: how it is opened, served, watched, held and ended, and that no stranger harms it."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import (
    PROMPT_S,
    ServerClock,
    Strand,
    brief,
    eventually,
    held_up,
    impatient,
    in_server,
    make_certificate,
    nothing_left,
    run_over_sockets,
    states,
)
from worldline import Federation, Network, Participant, Program, Server, connect, link, plan, run
from worldline.federation.outcome import FederationOutcome
from worldline.federation.server import connection as connection_module
from worldline.federation.server import server as server_module
from worldline.federation.server.limits import Limits
from worldline.history import Status
from worldline.history.observer import Observer
from worldline.lock import Join
from worldline.model import FOREVER, MS, SECOND, ConfigurationError, LossError, Plan, UsageError, WorldlineError
from worldline.model.errors import ObserverFailure
from worldline.model.frames import frame


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


def two(end: str | None = "10ms") -> Plan:
    return plan(["a", "b"], network=Network(default=link("1ms")), until=end)


def step(server: Server | str, name: str, to: str = "10ms") -> int:
    """Take part until a time."""
    with connect(server, name, subscribes=["t"]) as me:
        me.publish("t", name.encode())
        me.advance(to=to)
        return me.now


def both(server: Server | str) -> None:
    strands = [Strand(lambda name=name: step(server, name)) for name in ("a", "b")]  # type: ignore[misc]
    assert [strand.result() for strand in strands] == [10 * MS, 10 * MS]


# --- Serving ---


def test_a_with_statement_serves_in_a_thread_of_its_own() -> None:
    with Server(two()) as server:
        assert server.address.port > 0
        both(str(server.address))
        outcome = server.wait(PROMPT_S)
    assert outcome.times == {"a": 10 * MS, "b": 10 * MS}
    assert server.outcome() == outcome


def test_it_serves_in_the_callers_thread_and_calls_whoever_watches() -> None:
    server = Server(two())
    address = str(server.open())
    clients = Strand(lambda: both(address))
    watched: list[str] = []
    outcome = server.serve(lambda _: watched.append(threading.current_thread().name), watch_every_s=0.001)
    clients.result()
    assert isinstance(outcome, FederationOutcome)
    assert outcome == server.outcome()
    assert set(watched) == {threading.current_thread().name}


def test_clients_may_be_connected_before_it_serves() -> None:
    server = Server(two())
    clients = Strand(lambda: both(server))
    server.serve()
    clients.result()
    assert server.outcome().times == {"a": 10 * MS, "b": 10 * MS}


def test_who_watches_may_end_it_by_an_exception() -> None:
    server = Server(two())
    address = str(server.open())
    client = Strand(lambda: step(address, "a"))

    def watch(_: Status) -> None:
        if server.host.sessions:
            raise ZeroDivisionError("the watch broke")

    with pytest.raises(ZeroDivisionError, match="the watch broke"):
        server.serve(watch, watch_every_s=0.001)
    failure = client.failure(PROMPT_S)
    assert isinstance(failure, LossError)


def test_waiting_has_a_limit_and_says_for_whom_it_waited() -> None:
    with Server(two()) as server:
        with pytest.raises(LossError, match=r"hasn't ended in 0.01 seconds: waiting for a, b"):
            server.wait(0.01)
        both(server)
        assert server.wait().digest


def test_a_mistake_in_a_question_is_its_askers_and_the_run_goes_on() -> None:
    with Server(two()) as server:
        clients = Strand(lambda: both(server))
        for mistake in (ZeroDivisionError, TimeoutError, KeyboardInterrupt):
            with pytest.raises(mistake, match="a mistake"):
                server.ask(lambda mistake=mistake: _raise(mistake("a mistake")))  # type: ignore[misc]
        clients.result()
        assert server.wait(PROMPT_S).digest
    assert server.ask(lambda: server.host.over)  # When all is over, too.


def _raise(error: BaseException) -> None:
    raise error


def test_a_question_waits_for_a_busy_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_TICK_S", 0.02)
    with Server(two()) as server:
        with held_up(server):
            asked = Strand(lambda: server.ask(lambda: "an answer"))
            asked._thread.join(0.1)
            assert not asked.done
        assert asked.result() == "an answer"
        both(server)


def test_who_watches_may_ask() -> None:
    server = Server(two())
    address = str(server.open())
    clients = Strand(lambda: both(address))
    answers: list[str] = []
    server.serve(lambda _: answers.append(server.ask(server.host.waiting)), watch_every_s=0.001)
    clients.result()
    assert server.outcome().digest


def test_waiting_for_a_server_without_a_thread_is_refused() -> None:
    with pytest.raises(UsageError, match=r"use serve\(\), or `with`"):
        Server(two()).wait()


def test_there_is_no_outcome_before_the_end() -> None:
    with Server(two()) as server:
        with pytest.raises(UsageError, match="the run hasn't ended"):
            server.outcome()
        both(server)
    assert server.outcome().digest


def test_ending_it_tells_everybody_why_also_those_who_still_wait_for_the_start() -> None:
    with Server(two()) as server:
        waiting = Strand(lambda: step(server, "a"))
        eventually(lambda: states(server)["a"] == "joined")
        server.end(LossError("enough of this"))
        assert "enough of this" in str(waiting.failure(PROMPT_S))
        with pytest.raises(LossError, match="enough of this"):
            server.wait(PROMPT_S)
    with pytest.raises(LossError, match="enough of this"):
        server.outcome()


def test_an_exception_in_its_body_is_told_to_everybody_and_comes_through() -> None:
    with pytest.raises(ZeroDivisionError, match="in the body"), Server(two()) as server:  # noqa: PT012 - it is the body.
        waiting = Strand(lambda: step(server, "a"))
        eventually(lambda: states(server)["a"] == "joined")
        raise ZeroDivisionError("in the body")
    assert "the server was closed: in the body" in str(waiting.failure(PROMPT_S))


def test_an_owner_that_goes_on_gives_the_last_ones_a_moment_to_leave() -> None:
    with Server(two()) as server:
        clients = Strand(lambda: both(server))
        eventually(lambda: not server.host.arbiter.missing())
    clients.result()
    assert server.outcome().digest


def test_an_owner_that_goes_on_closes_it_for_those_who_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with Server(two()) as server:
        waiting = Strand(lambda: step(server, "a"))
        eventually(lambda: states(server)["a"] == "joined")
    assert "the server was closed: its owner has gone on" in str(waiting.failure(PROMPT_S))


def test_a_barrier_holds_those_who_would_pass_it() -> None:
    """Case 11 of the lock, over a socket."""
    reached: list[int] = []

    def walk(server: Server) -> None:
        with connect(server, "a", publishes=[]) as me:
            me.advance(to="1.9s")
            reached.append(me.now)
            me.advance(to="3s")
            reached.append(me.now)

    with Server(plan(["a"])) as server:
        server.hold_at(2000 * MS)
        walker = Strand(lambda: walk(server))
        eventually(lambda: states(server)["a"] == "advancing")
        assert reached == [1900 * MS]
        (why,) = in_server(server, server.host.arbiter.why)
        assert "the barrier is at 2s" in str(why)
        server.hold_at(4000 * MS)
        walker.result()
        assert reached == [1900 * MS, 3000 * MS]
        held = server.wait(PROMPT_S)
    with Server(plan(["a"])) as server:
        walk(server)
        assert server.wait(PROMPT_S).digest == held.digest


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_impossible_barrier_is_refused_and_the_run_goes_on() -> None:
    with Server(two()) as server:
        with pytest.raises(UsageError):
            server.hold_at(-1)
        both(server)
        assert server.wait(PROMPT_S).digest


# --- Where it listens ---


def test_what_can_be_reached_from_elsewhere_needs_a_token() -> None:
    for address in ("tcp://0.0.0.0:0", "0.0.0.0:0", "tcp://[::]:0", "tcp://cell.example:7000"):
        with pytest.raises(ConfigurationError, match=r"there is no token \(give a token, or listen on 127.0.0.1\)"):
            Server(two(), address)
    with Server(two(), "tcp://0.0.0.0:0", token="secret") as server:
        both_know = [
            Strand(lambda name=name: connect(f"127.0.0.1:{server.address.port}", name, token="secret").close())  # type: ignore[misc]
            for name in ("a", "b")
        ]
        for strand in both_know:
            strand.result()
        server.end(LossError("enough"))


def test_certificate_and_address_go_together(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with pytest.raises(ConfigurationError, match="a certificate goes with an address tls"):
        Server(two(), "tls://127.0.0.1:0")
    with pytest.raises(ConfigurationError, match="a certificate goes with an address tls"):
        Server(two(), certificate=certificate, key=key)
    with pytest.raises(UsageError, match="can't be used"):
        Server(two(), "tls://127.0.0.1:0", certificate=key)
    with pytest.raises(UsageError, match=r"missing\.pem can't be used"):
        Server(two(), "tls://127.0.0.1:0", certificate=tmp_path / "missing.pem")


def test_a_keyword_that_it_doesnt_have_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokens'"):
        Server(plan(["a"]), tokens="secret")  # type: ignore[call-arg]


@pytest.mark.parametrize("pace", [0, -1.0, float("inf"), float("nan")])
def test_an_impossible_pace_is_refused(pace: float) -> None:
    with pytest.raises(ConfigurationError, match="isn't possible"):
        Server(two(), pace=pace)


def test_the_clock_of_a_pace_waits_for_those_of_whom_only_the_number_is_known() -> None:
    server = Server(plan([], vacancies=1), pace=1.0)
    for now in (5.0, 9.0):
        server._hold.keep_pace(now)
        assert server.host.arbiter.barrier == 0


def test_a_pace_counts_from_where_everybody_is_on_the_way() -> None:
    server = Server(plan(["a"]))
    server.host.arbiter.handle("a", Join((), ()))
    server._hold.hold_at(SECOND)
    server._set_pace(1.0)
    server._hold.keep_pace(5.0)
    server._hold.keep_pace(5.5)
    assert server.host.arbiter.barrier == SECOND // 2 + 1
    server._hold.hold_at(MS)
    assert server.host.arbiter.barrier == MS  # At once, not only when the clock has its turn.


def test_resting_on_a_server_that_nobody_serves() -> None:
    server = Server(plan(["a"]))
    assert not server.rest_at(0)


def test_whoever_stops_waiting_for_rest_is_forgotten() -> None:
    with Server(plan(["a"])) as server:
        assert not server.rest_at(0, within_s=0.0)
        assert in_server(server, lambda: server._hold.resting) == []
        server.end(LossError("enough"))


def test_an_error_without_a_text_has_a_name() -> None:
    server = Server(plan(["a"]))
    with contextlib.suppress(KeyboardInterrupt), server:
        raise KeyboardInterrupt
    assert str(server.host.failure) == "the server was closed: KeyboardInterrupt"


def test_a_port_in_use_is_refused() -> None:
    with Server(two()) as server:
        port = server.address.port
        with pytest.raises(UsageError, match=rf"can't listen on tcp://127.0.0.1:{port}: .*in use .choose another port"):
            Server(two(), server.address).open()
        both(server)


def test_nobodys_address_is_refused() -> None:
    with pytest.raises(UsageError, match=r"can't listen on tcp://192.0.2.1:0: "):
        Server(two(), "tcp://192.0.2.1:0", token="secret").open()


def test_a_socket_that_a_dead_server_has_left_behind_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.is_socket()
    with Server(two(), f"unix://{path}") as server:
        both(str(server.address))
    assert not path.exists()


def test_a_socket_of_a_live_server_is_left_alone(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/socket"
    with Server(two(), address) as server:
        with pytest.raises(UsageError, match=r"can't listen on unix:.*in use"):
            Server(two(), address).open()
        both(address)
        assert server.wait(PROMPT_S).digest


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(UsageError, match=r"can't listen on unix:.*in use"):
        Server(two(), f"unix://{path}").open()
    assert path.read_text() == "data"


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        Server(two(), f"unix://{tmp_path}/{'x' * 200}").open()


# --- Strangers ---

STRANGE = {
    "nothing": b"",
    "half a frame": b"\x00\x00\x01\x00hello",
    "an endless frame": b"\xff\xff\xff\xff" + bytes(1000),
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a frame of noise": frame(bytes(range(256))),
    "heartbeats": bytes(4 * 1000),
    "a hello that isn't one": frame(b"\x96\xa5hello\x01\x00\x00\x00\x00"),
}


@pytest.mark.parametrize("kind", ["tcp", "tls", "unix"])
def test_strangers_dont_disturb_a_run(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    address = f"unix://{tmp_path}/socket" if kind == "unix" else f"{kind}://127.0.0.1:0"
    with Server(two(), address, certificate=certificate, key=key) as server:
        target = server.address.place if kind == "unix" else ("127.0.0.1", server.address.port)
        strangers = []
        for said in STRANGE.values():
            stranger = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
            stranger.connect(target)
            stranger.sendall(said)
            strangers.append(stranger)
        strangers.pop().close()
        clients = [
            Strand(lambda name=name: connect_and_step(str(server.address), name, certificate))  # type: ignore[misc]
            for name in ("a", "b")
        ]
        assert [client.result() for client in clients] == [10 * MS, 10 * MS]
        assert server.wait(PROMPT_S).digest
        for stranger in strangers:
            stranger.close()


def connect_and_step(address: str, name: str, authority: Path | None) -> int:
    with connect(address, name, authority=authority, patience_s=1.0) as me:
        me.advance(to="10ms")
        return me.now


@pytest.mark.parametrize(
    "kind",
    [
        "tcp",
        "tls",
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stranger_that_is_gone_before_it_was_let_in_doesnt_disturb_a_run(kind: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    with Server(two(), f"{kind}://127.0.0.1:0", certificate=certificate, key=key) as server:
        with held_up(server):
            stranger = socket.create_connection(("127.0.0.1", server.address.port))
            stranger.sendall(b"hello")
            # Closed like this, it is reset: nothing of it is left when the server gets round to it.
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.close()
        clients = [
            Strand(lambda name=name: connect_and_step(str(server.address), name, certificate))  # type: ignore[misc]
            for name in ("a", "b")
        ]
        assert [client.result() for client in clients] == [10 * MS, 10 * MS]
        assert server.wait(PROMPT_S).digest


def test_who_says_nothing_is_told_so_and_shown_out() -> None:
    clock = ServerClock()
    with Server(two(), limits=Limits(handshake_s=10.0), clock=clock) as server:
        stranger = socket.create_connection(("127.0.0.1", server.address.port), timeout=PROMPT_S)
        said = stranger.recv(4096)
        clock.skip(server, 11.0)
        while data := stranger.recv(4096):
            said += data
        stranger.close()
        assert b"it didn't say who it was in time" in said
        both(server)
        assert server.wait(PROMPT_S).digest


def test_a_crowd_of_strangers_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with Server(two(), limits=Limits(strangers_max=3)) as server:
        where = ("127.0.0.1", server.address.port)
        crowd = [socket.create_connection(where, timeout=PROMPT_S) for _ in range(8)]
        for early in crowd[:-3]:  # When all of these have been refused, nobody is left to be accepted.
            said = b""
            while data := early.recv(4096):
                said += data
            assert b"too many connections are waiting" in said
        both(server)
        assert server.wait(PROMPT_S).digest
        for stranger in crowd:
            stranger.close()


# --- Within one process ---


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_strangers_leave_files_for_participants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.federation.server.connection.files_left", lambda: 10)
    with Server(two()) as server, contextlib.ExitStack() as held:
        for _ in range(30):
            held.enter_context(socket.create_connection((server.address.place, server.address.port)))
        both(str(server.address))
        assert len(server._connections.opened) <= 6
        assert not server._connections.shortage


def test_if_participants_alone_take_all_files_that_is_said_once() -> None:
    class Listener:
        def __init__(self, listener: Any) -> None:
            self.fileno, self.close = listener.fileno, listener.close

        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    server = Server(two())
    server.open()
    server._connections.listener = Listener(server._connections.listener)  # type: ignore[assignment]
    server._connections.accept()
    said = list(server.host.owner.notices)
    assert len(said) == 1
    told = (
        r"no file is left for a connection, and this process may have [\d,]+ open: raise the limit with `ulimit -n \d+`"
    )
    assert re.match(told, said[0])
    assert server.remarks() == said
    server._tick(0.0)
    assert server.remarks() == []
    server._connections.accept()
    assert list(server.host.owner.notices) == said
    server.close()


def test_connecting_to_a_server_that_is_over_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch, 1.0)
    with Server(two()) as server:
        both(server)
        server.wait(PROMPT_S)
        with pytest.raises((LossError, UsageError)) as refused:
            connect(server, "a")
    assert "nothing was heard" not in str(refused.value)


def test_who_connects_before_it_serves_neednt_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_TICK_S", 30.0)
    server = Server(two())
    early = server.pair()
    early.settimeout(PROMPT_S)
    serving = Strand(server.serve)
    try:
        assert b"challenge" in early.recv(4096)
    finally:
        early.close()
        server.end(LossError("enough"))
        serving.result()


def test_hold_at_forever_takes_the_barrier_away() -> None:
    with Server(two()) as server:
        server.hold_at(0)
        clients = Strand(lambda: both(server))
        eventually(lambda: set(states(server).values()) == {"advancing"})
        server.hold_at(FOREVER)
        clients.result()


def busy(number: int) -> Federation:
    """Much to read for the server, of a kind that only this federation has."""

    def talker(self: Participant) -> None:
        for _ in range(10):
            self.publish("t", bytes([number]) * 200_000)
            assert all(set(message.payload) == {number} for message in self.advance(by="1ms"))

    programs = {name: Program(talker, publishes=["t"], subscribes=["t"]) for name in ("a", "b")}
    return Federation(programs)


def test_servers_in_one_process_dont_get_into_each_others_way() -> None:
    strands = [
        Strand(lambda number=number: run_over_sockets(busy(number), paired=True))  # type: ignore[misc]
        for number in range(4)
    ]
    found = [strand.result().digest for strand in strands]
    assert found == [run(busy(number)).digest for number in range(4)]


def test_connections_that_are_sent_away_and_stay_dont_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with Server(two(), limits=Limits(strangers_max=3)) as server, contextlib.ExitStack() as held:
        most = 0
        for _ in range(40):
            held.enter_context(socket.create_connection((server.address.place, server.address.port)))
            most = max(most, in_server(server, lambda: len(server._connections.opened)))
        assert most <= 7


def test_nobody_looks_for_the_processes_of_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[socket.socket] = []
    monkeypatch.setattr(connection_module, "process_of", looked.append)
    with Server(two(None), limits=Limits(unreachable_s=0.02)) as server:
        with (
            socket.create_connection((server.address.place, server.address.port)),
            socket.create_connection((server.address.place, server.address.port)),
            contextlib.closing(connect(server, "a")) as silent,
        ):
            silent._done.set()  # Its pulse ends.
            eventually(lambda: looked)
            ticks = in_server(server, lambda: server.host._ticked)
            eventually(lambda: in_server(server, lambda: server.host._ticked) > ticks)
            server.end(LossError("enough"))
        assert len(looked) == 1


class Careless(Observer):
    def began(self, who: str, at: int) -> None:
        raise KeyError(who)


def test_an_observers_mistake_is_its_own_and_ends_the_run() -> None:
    with Server(plan(["a"]), observer=Careless()) as server:
        client = connect(server, "a")
        with pytest.raises(WorldlineError, match=r"the observer.*KeyError"):
            client.join()
        client.close()
        with pytest.raises(ObserverFailure, match="KeyError"):
            server.wait(60)


def test_what_isnt_an_observer_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="has no method began"):
        Server(plan(["a"]), observer=object())  # type: ignore[arg-type]


class Overfull(Observer):
    """Has no room for the first message."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        raise self._error


@pytest.mark.parametrize("error", [LossError("the disk is full"), ValueError("the disk is full")], ids=repr)
def test_whoever_speaks_isnt_blamed_for_an_observer(error: Exception) -> None:
    with Server(plan(["a", "b"]), observer=Overfull(error)) as server:
        strands = [Strand(partial(send_one, server, name), name) for name in ("a", "b")]
        with pytest.raises(WorldlineError, match="the disk is full") as caught:
            server.wait(60)
    assert caught.value.participant in (None, "the observer")
    for strand in strands:
        told = strand.failure()
        assert "the disk is full" in str(told)
        assert "cut off" not in str(told)


def send_one(server: Server, name: str) -> None:
    with connect(server, name, subscribes=["x"]) as me:  # So nobody gets anywhere before the other has sent.
        if name == "b":
            me.publish("x", b"")
        me.advance("1s")
