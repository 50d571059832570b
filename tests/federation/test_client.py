"""The blocking client: how it is let in or refused, what it is told when others fail; and nothing is left of it."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

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
    states,
)
from tests.ports import free_port
from worldline import Network, Participant, RunEnded, Server, connect, link, plan, run_program
from worldline.federation.environment import SHAKE, LaunchEnvironment
from worldline.federation.participant import call as answering
from worldline.federation.participant import call as call_module
from worldline.federation.participant import connection as connection_module
from worldline.federation.participant.client import Client
from worldline.federation.server.limits import Limits
from worldline.lock import Grant
from worldline.model import (
    MS,
    ConfigurationError,
    LossError,
    ModelError,
    PeerError,
    Plan,
    UsageError,
    WorldlineError,
)
from worldline.model.frames import frame
from worldline.wire.codec import HEARTBEAT, encode_answer
from worldline.wire.handshake import Challenge, Refused, Welcome

NONCE = bytes(16)
CHALLENGE = frame(msgpack.encode(Challenge("worldline", 1, NONCE)))


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


def two(end: str | None = None) -> Plan:
    return plan(["a", "b"], network=Network(default=link("1ms")), until=end)


def take_part(
    target: Server | str, name: str, act: Callable[[Participant], Any] = lambda me: None, **declared: Any
) -> Any:
    with connect(target, name, **{"subscribes": ["t"], **declared}) as me:
        return act(me)


# --- Refusals ---

REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "not on the roster": ({"name": "c", "token": "secret"}, "unexpected", "unexpected participant 'c'; expected: b"),
    "the second of its name": ({"name": "a", "token": "secret"}, "taken", "participant 'a' is already connected"),
    "a wrong token": ({"name": "b", "token": "guessed"}, "token", "the token is wrong, or missing"),
    "no token": ({"name": "b"}, "token", "the token is wrong, or missing"),
    "another federation": (
        {"name": "b", "token": "secret", "federation": "zoo"},
        "federation",
        "this is federation 'cell', not 'zoo'",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_why_and_the_run_goes_on(case: str) -> None:
    call, code, reason = REFUSALS[case]
    with Server(two("5ms"), federation="cell", token="secret") as server:
        address = str(server.address)
        first = Strand(lambda: take_part(address, "a", lambda me: me.advance(to="1s"), token="secret"))
        eventually(lambda: states(server)["a"] == "joined")
        with pytest.raises(UsageError, match="the server refused the connection: ") as refused:
            connect(address, **call)
        assert refused.value.facts["code"] == code
        assert reason in str(refused.value)
        assert refused.value.participant == call["name"]
        take_part(address, "b", token="secret", federation="cell")
        first.result()
        assert server.wait(PROMPT_S).digest


def test_who_hasnt_joined_yet_may_come_again() -> None:
    with Server(two()) as server:
        connect(str(server.address), "a").close()
        other = Strand(lambda: take_part(server, "b"))
        eventually(lambda: states(server)["b"] == "joined")
        eventually(lambda: "a" not in server.host.sessions)
        take_part(server, "a")
        other.result()
        assert server.wait(PROMPT_S).digest


# --- Something else at the other end ---


class Impostor:
    """A server that says what it is told to, whatever it hears, and then hangs up, or doesn't."""

    def __init__(self, *words: bytes, hang_up: bool = True) -> None:
        self._words = words
        self._hang_up = hang_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = Strand(self._serve)

    def _serve(self) -> None:
        with contextlib.ExitStack() as connections, contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._say(connections.enter_context(connection))

    def _say(self, connection: socket.socket) -> None:
        for place, words in enumerate(self._words):
            if place:
                connection.recv(4096)
            connection.sendall(words)
        if self._hang_up:
            connection.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Impostor:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.result()
        self._listener.close()


def welcome(proof: bytes) -> bytes:
    return frame(msgpack.encode(Welcome(proof, 10**9, 2**20)))


def refused(code: str, reason: str) -> bytes:
    return frame(msgpack.encode(Refused(code, reason)))


IMPOSTORS: dict[str, tuple[tuple[bytes, ...], type[WorldlineError], str]] = {
    "hangs up at once": ((), LossError, "the server closed the connection"),
    "hangs up in the middle of a frame": ((CHALLENGE[:-3],), LossError, "the server closed the connection"),
    "hangs up in the middle of the handshake": ((CHALLENGE, b""), LossError, "the server closed the connection"),
    "a web server": ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), PeerError, "that is an HTTP server, not Worldline's"),
    "a mail server": ((b"220 mail.example ESMTP\r\n",), PeerError, "it says '220 mail.example ESMTP'"),
    "an endless frame": ((b"\xff\xff\xff\xff",), PeerError, "a frame of 4,294,967,295 bytes is too long"),
    "one that grants before it welcomes": ((encode_answer(Grant("a", 5, [])),), PeerError, "can't be read"),
    "one that grants instead of a welcome": ((CHALLENGE, encode_answer(Grant("a", 5, []))), PeerError, "can't be read"),
    "heartbeats only": ((HEARTBEAT * 3,), LossError, "the server closed the connection"),
    "one that doesn't know the token": (
        (CHALLENGE, welcome(bytes(32))),
        PeerError,
        r"the server doesn't know the token \(is it the right server\?\)",
    ),
}


@pytest.mark.parametrize("case", IMPOSTORS)
def test_what_isnt_our_server_is_recognized(case: str) -> None:
    words, kind, text = IMPOSTORS[case]
    with Impostor(*words) as impostor, pytest.raises(kind, match=text):
        connect(impostor.address, "a", token="secret")


def test_a_server_that_is_killed_before_it_has_welcomed_anybody_may_come_back(tmp_path: Path) -> None:
    place = tmp_path / "socket"

    def die_and_come_back() -> None:
        accepted, _ = listener.accept()
        place.unlink()
        listener.close()
        accepted.close()
        with Server(plan(["a"]), f"unix://{place}") as server:
            server.wait(4 * PROMPT_S)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()
        reborn = Strand(die_and_come_back)
        take_part(f"unix://{place}", "a")
        reborn.result()


def test_a_server_that_is_killed_before_it_has_welcomed_anybody_may_stay_away(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen()

        def die() -> None:
            with listener.accept()[0]:
                place.unlink()
                listener.close()

        dead = Strand(die)
        problem = (
            r"a: the server closed the connection, and it didn't come back within 0\.1 seconds: nothing listens on"
        )
        with pytest.raises(LossError, match=problem):
            connect(f"unix://{place}", "a", patience_s=0.1)
        dead.result()


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch, 0.1)
    with Impostor(b"", hang_up=False) as impostor, pytest.raises(LossError, match="nothing was heard from the server"):
        connect(impostor.address, "a")


@pytest.mark.parametrize("where", ["tcp", "unix"])
def test_nobody_listens(where: str, tmp_path: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}" if where == "tcp" else f"unix://{tmp_path}/nothing"
    with pytest.raises(LossError, match=rf"nothing listens on {address}: .* \(is the server up\?\)"):
        connect(address, "a", patience_s=0.1)


def test_a_server_may_come_up_after_its_clients(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/socket"
    early = [Strand(functools.partial(take_part, address, name)) for name in ("a", "b")]
    with Server(two(), address) as server:
        for strand in early:
            strand.result()
        assert server.wait(PROMPT_S).digest


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_host_that_cant_be_is_told_at_once(host: str) -> None:
    with pytest.raises(LossError, match="can't connect to tcp://"):
        connect(f"tcp://{host}:7475", "a", patience_s=0.1)


def test_a_certificate_that_isnt_trusted_or_names_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief(monkeypatch)
    certificate, key = make_certificate(tmp_path)
    with Server(two(), "tls://127.0.0.1:0", certificate=certificate, key=key) as server:
        port = server.address.port
        with pytest.raises(LossError, match=r"no trusted connection to the server: .*self.signed"):
            connect(f"tls://127.0.0.1:{port}", "a")
        with pytest.raises(UsageError, match=r"missing\.pem can't be used"):
            connect(f"tls://127.0.0.1:{port}", "a", authority=tmp_path / "missing.pem")
    certificate, key = make_certificate(tmp_path, names="DNS:another.example")
    with (
        Server(two(), "tls://127.0.0.1:0", certificate=certificate, key=key) as server,
        pytest.raises(LossError, match=r"no trusted connection to the server: .*127\.0\.0\.1"),
    ):
        connect(str(server.address), "a", authority=certificate)


def test_a_plain_call_to_a_server_with_tls_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    impatient(monkeypatch, 0.1)
    certificate, key = make_certificate(tmp_path)
    with (
        Server(two(), "tls://127.0.0.1:0", certificate=certificate, key=key) as server,
        pytest.raises(UsageError, match=r"the server speaks TLS \(use tls://127\.0\.0\.1:\d+\)"),
    ):
        connect(f"tcp://127.0.0.1:{server.address.port}", "a")


def test_tls_to_a_server_without_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with (
        Server(two()) as server,
        pytest.raises(UsageError, match=r"the server doesn't speak TLS \(use tcp://127\.0\.0\.1:\d+\)"),
    ):
        connect(f"tls://127.0.0.1:{server.address.port}", "a")


class Quiet(BaseHTTPRequestHandler):
    """A web server: it says nothing before it is asked."""

    timeout = PROMPT_S

    def log_message(self, *_: object) -> None:
        """Its own log is of no interest."""


@pytest.fixture
def web_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        serving = Strand(server.serve_forever)
        yield server.server_address[1]
        server.shutdown()
        serving.result()


@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_web_server_that_waits_to_be_spoken_to_is_recognized(
    kind: str, web_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch, 0.15)
    with pytest.raises(UsageError, match="that is an HTTP server, not Worldline's"):
        connect(f"{kind}://127.0.0.1:{web_server}", "a", patience_s=1.0)


def test_a_server_that_is_only_slow_isnt_taken_for_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch, 2.0)
    monkeypatch.setattr(connection_module, "DOUBT_S", 0.05)
    monkeypatch.setattr(connection_module, "_WAKE_S", 0.05)
    monkeypatch.setattr(answering, "_PATIENCE_S", 0.1)
    doubted = threading.Event()
    recognized = answering.recognized
    monkeypatch.setattr(call_module, "recognized", lambda address: (recognized(address), doubted.set())[0])  # type: ignore[func-returns-value]
    with Server(plan(["a"])) as server:
        with held_up(server):
            slow = Strand(lambda: take_part(str(server.address), "a"))
            assert doubted.wait(PROMPT_S)
        slow.result()


def test_who_was_started_by_a_launcher_waits_for_its_greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gave the address is a server of ours; it may have been stopped before it got round to us."""
    impatient(monkeypatch, 0.01)
    with Server(plan(["a"])) as server:
        around = LaunchEnvironment(address=str(server.address), name="a")
        for variable, value in around.variables().items():
            monkeypatch.setenv(variable, value)
        with held_up(server):
            launched = Strand(lambda: take_part(None, "a"))  # type: ignore[arg-type]
            assert not in_seconds_alone(launched, 0.2)
        launched.result()


# --- From the environment ---


def test_everything_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    heard: list[bytes] = []

    def listen() -> None:
        with connect() as me:
            assert me.name == "b"
            heard.extend(message.payload for message in me.advance(to="10ms"))
            with pytest.raises(UsageError, match=r"didn't declare that it publishes on 'x' \(it declared y"):
                me.publish("x", b"")

    settings = {"federation": "cell", "token": "secret"}
    declared = {"b": {"publishes": ("y",), "subscribes": {"t": "mailbox"}}}
    with Server(
        two(),
        "tls://127.0.0.1:0",
        certificate=certificate,
        key=key,
        declared=declared,
        **settings,  # type: ignore[arg-type]
    ) as server:
        around = LaunchEnvironment(
            address=str(server.address),
            name="b",
            authority=str(certificate),
            shake=3,
            **settings,  # type: ignore[arg-type]
        )
        for variable, value in around.variables().items():
            monkeypatch.setenv(variable, value)
        listener = Strand(listen)
        # What is given wins over the environment.
        take_part(str(server.address), "a", lambda me: [me.publish("t", b"%d" % n) for n in range(3)], publishes=["t"])
        listener.result()
        assert server.wait(PROMPT_S).digest
    assert heard == [b"2"]


def test_an_environment_that_cant_be_read_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="a participant needs a name"):
        connect()
    with pytest.raises(UsageError, match="there is no address to connect to"):
        connect(name="a")
    with pytest.raises(UsageError, match="isn't an address"):
        connect("nowhere", "a")
    with pytest.raises(ConfigurationError):
        connect("tcp://127.0.0.1:1", "")
    monkeypatch.setenv(SHAKE, "much")
    with pytest.raises(UsageError, match=f"{SHAKE} isn't a number: 'much'"):
        connect("tcp://127.0.0.1:1", "a")


# --- In a run ---


def test_a_program_that_raises_ends_the_run_with_its_name_time_and_text() -> None:
    def broken(me: Participant) -> None:
        me.advance(to="3ms")
        me.advance(to="5ms")  # Which it may without asking.
        raise ZeroDivisionError("by nought")

    with Server(two()) as server:
        patient = Strand(lambda: take_part(server, "a", lambda me: me.next(), subscribes=["t"]))
        with pytest.raises(ZeroDivisionError):
            take_part(server, "b", broken)
        told = patient.failure(PROMPT_S)
        with pytest.raises(ModelError, match=r"^b at 5ms: its program raised ZeroDivisionError: by nought") as info:
            server.wait(PROMPT_S)
    assert isinstance(told, LossError)
    assert (told.participant, told.at) == ("b", 5 * MS)
    assert "its program raised ZeroDivisionError: by nought" in str(told)
    assert info.value.participant == "b"


def test_the_end_of_the_run_ends_the_with_statement_quietly() -> None:
    def endless(me: Participant) -> None:
        while True:
            me.advance(by="3ms")

    with Server(two("10ms")) as server:
        other = Strand(lambda: take_part(server, "a", endless))
        with connect(server, "b") as me:
            me.advance(to="1h")
            assert me.ended
            assert me.now == 10 * MS
            me.publish("t", b"too late")
            raise AssertionError
        with pytest.raises(RunEnded):
            me.publish("t", b"much too late")
        other.result()
        assert server.wait(PROMPT_S).times == {"a": 10 * MS, "b": 10 * MS}


def test_hanging_up_without_leaving_is_a_loss() -> None:
    def hang_up(me: Any) -> None:
        me.advance(to="2ms")
        me.close()
        me.advance(to="1h")

    with Server(two()) as server:
        patient = Strand(lambda: take_part(server, "a", lambda me: me.next()))
        with pytest.raises(LossError, match="the connection is closed"):
            take_part(server, "b", hang_up)
        told = patient.failure(PROMPT_S)
        assert "b at 2ms: the run was broken off: its connection was closed" in str(told)
        with pytest.raises(LossError, match="b at 2ms: its connection was closed, and it hadn't left"):
            server.wait(PROMPT_S)


def test_leaving_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with Server(plan(["a"])) as server, connect(server, "a") as me:
        me.leave()
        with pytest.raises(UsageError, match="isn't possible while it is left"):
            me.publish("t", b"")
        server.wait(PROMPT_S)  # It has left, so all is over, and the server has gone: that is no loss.
    assert server.outcome().digest


def test_a_guest_that_nobody_invites_is_let_go_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)

    def come(me: Participant) -> bool:
        server.wait(PROMPT_S)
        run_program(lambda _: pytest.fail("its program has run"), me)  # There is no server any more to talk to.
        return me.ended

    with Server(plan(["a"], guests=["g"])) as server:
        guest = Strand(lambda: take_part(server, "g", come))
        eventually(lambda: in_server(server, lambda: [s for s in server.host.sessions.values() if s.joining]))
        take_part(server, "a")
        assert guest.result() is True
        assert server.outcome().times == {"a": 0}


def has_come(me: Client, words: bytes) -> bool:
    """Whether the server has said this, be it read or not."""
    if me._wire.end is not None:
        return True
    try:
        return words in me._wire.queued.plain.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


@pytest.mark.long
def test_who_leaves_after_the_run_was_broken_off_is_told_so() -> None:
    with Server(two()) as server:
        broken = Strand(lambda: take_part(server, "a", lambda me: me.close()))
        with pytest.raises(LossError, match="a at 0s: the run was broken off"), connect(server, "b") as me:
            eventually(lambda: has_come(me, b"hadn't left"))
        broken.failure()


def test_the_cause_is_told_also_if_it_came_in_together_with_an_earlier_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)
    with Server(plan(["a"])) as server:
        me = connect(server, "a").__enter__()
        server.end(LossError("enough of this"))
        with pytest.raises(LossError, match="enough of this"):
            server.wait(PROMPT_S)
        wire = me._wire
        wire._conversation.feed(wire.queued.socket.recv(4096))
        with pytest.raises(LossError, match="enough of this"):
            me.__exit__(None, None, None)


def test_what_was_only_told_is_told_while_the_program_computes() -> None:
    """It goes ahead within what it was granted and then computes; nobody waits for that."""
    heard, told = threading.Event(), threading.Event()

    def ahead(me: Participant) -> None:
        me.publish("t", b"news")
        me.advance(to="10ms")
        told.set()
        assert heard.wait(PROMPT_S)

    def listen(me: Participant) -> int:
        assert told.wait(PROMPT_S)
        (message,) = me.next()
        assert message.payload == b"news"
        heard.set()
        return me.now

    with Server(two()) as server:
        source = Strand(lambda: take_part(server, "a", ahead, publishes=["t"]))
        assert take_part(server, "b", listen, publishes=[], subscribes=["t"]) == MS
        source.result()


def test_a_program_may_compute_for_longer_than_the_servers_patience() -> None:
    """Its heart beats in a thread of its own."""
    with Server(plan(["a"]), limits=Limits(silence_s=0.2)) as server, connect(server, "a") as me:
        session = server.host.sessions["a"]
        for _ in range(5):
            heard = session.heard
            eventually(lambda: session.heard > heard)  # noqa: B023 - it is called here only.
        me.advance(to="1ms")
    assert server.outcome().times == {"a": MS}


def test_who_waits_long_hears_a_heartbeat_in_time() -> None:
    clock = ServerClock()
    with Server(two(), limits=Limits(silence_s=8.0), clock=clock) as server:
        patient = Strand(lambda: take_part(server, "a", lambda me: me.next(until="1h")))
        with connect(server, "b") as me:
            eventually(lambda: states(server)["a"] == "awaiting")
            asked = clock()
            clock.skip(server, 3.0)
            assert server.host.sessions["a"].sent > asked + 2.0
            me.advance(to="1h")
        patient.result()


@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_server_that_hangs_is_waited_for(kind: str, tmp_path: Path) -> None:
    """It is busy, or stopped: as long as its process is there, it will go on."""
    certificate, key = make_certificate(tmp_path) if kind == "tls" else (None, None)
    limits = Limits(silence_s=0.1)
    with Server(two("10ms"), f"{kind}://127.0.0.1:0", certificate=certificate, key=key, limits=limits) as server:
        patient = Strand(lambda: take_part(str(server.address), "a", lambda me: me.next(), authority=certificate))
        with connect(str(server.address), "b", authority=certificate):
            eventually(lambda: states(server)["a"] == "awaiting")
            with held_up(server):
                assert not in_seconds_alone(patient, 0.5)
        assert patient.result() == []
        assert server.wait(PROMPT_S).times == {"a": 10 * MS, "b": 0}


def in_seconds_alone(strand: Strand[Any], seconds: float) -> bool:
    """Let real time pass; return whether the strand has ended in it."""
    strand._thread.join(seconds)
    return strand.done


def test_a_promise_with_next_is_told_before_anybody_has_to_wait_for_it() -> None:
    with Server(plan(["a", "b"], network=Network(default=link("10ms")))) as server:

        def promises() -> list[int]:
            with connect(server, "a", publishes=["x"], subscribes=["y"]) as me:
                return [len(me.next(until=time * MS, promise=time * MS)) for time in (10, 20, 30)]

        def waits() -> int:
            with connect(server, "b", publishes=[], subscribes=["x"]) as me:
                me.advance(to="35ms")
                return me.now

        strands = [Strand(promises), Strand(waits)]
        assert [strand.result() for strand in strands] == [[0, 0, 0], 35 * MS]
        server.wait(60)


def test_what_isnt_published_at_once_travels_with_what_is_said_next() -> None:
    with Server(plan(["a", "b"], network=Network(default=link("10ms")))) as server:

        def publishes() -> None:
            with connect(server, "a", publishes=["x"]) as me:
                me.publish("x", b"1", at_once=False)
                me.advance(to="20ms")

        def hears() -> list[bytes]:
            with connect(server, "b", publishes=[], subscribes=["x"]) as me:
                return [message.payload for message in me.advance(to="20ms")]

        strands = [Strand(publishes), Strand(hears)]
        assert [strand.result() for strand in strands] == [None, [b"1"]]
        server.wait(60)
