"""Plain LCM programs take part: paced by the wall clock, or, if they only answer, deterministically."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.federation.transports import Strand
from worldline import MS, Federation, Message, Network, Participant, Program, Server, connect, link, run
from worldline.metasim.bridge import LcmBridge, ServedPort, _Crossing
from worldline.metasim.public import TcpqBroker
from worldline.metasim.public.tcpq import LcmLibraryPort, Received, TcpqPort
from worldline.model.errors import ConfigurationError, LossError, NonDeterminism, UsageError, WorldlineError

pytestmark = pytest.mark.usefixtures("tidy")
_PATIENCE_S = 60.0


# --- A federation with a plain LCM program in it ---


def plant(me: Participant) -> None:
    for step in range(20):
        me.publish("STATE", b"%d" % step)
        me.publish("NOISE", b"noise")
        me.advance(by="5ms")


def native(me: Participant) -> None:
    """Do what the bridge and the program at its other end do together."""
    while not me.ended:
        messages = me.advance(to=(me.now // (10 * MS) + 1) * 10 * MS)
        for message in messages:
            if message.topic == "STATE" and not me.ended:
                me.publish("LOG", b"got " + message.payload)
                me.publish("COMMAND", message.payload + b"!")


def federation(program: Program) -> Federation:
    programs = {"plant": Program(plant, publishes=["STATE", "NOISE"], subscribes=["COMMAND", "LOG"]), "bridge": program}
    return Federation(programs, network=Network(default=link("2ms")), until="100ms")


def native_digest() -> bytes:
    declared = {"publishes": ["COMMAND", "LOG"], "subscribes": ["STATE", "NOISE"], "period": 10 * MS}
    return run(federation(Program(native, **declared))).digest  # type: ignore[arg-type]


def answering(**given: Any) -> LcmBridge:
    return LcmBridge(
        **{
            "period": "10ms",
            "to_program": ["STATE", "NOISE"],
            "from_program": ["COMMAND", "LOG"],
            "answers": {"STATE": "COMMAND"},
            "patience_s": _PATIENCE_S,
            **given,
        }
    )


class Responder:
    """A program that knows nothing of time: it answers, in a thread of this process, until it is stopped."""

    def __init__(self, port: TcpqPort | LcmLibraryPort) -> None:
        self._port = port
        self._stopping = threading.Event()
        self._strand = Strand(self._respond, "responder")

    def _respond(self) -> None:
        while not self._stopping.is_set():
            try:
                received = self._port.receive(0.05)
            except LossError:  # The bridge has ended, and the broker with it.
                break
            if received is not None and received[0] == "STATE":
                self._port.publish("LOG", b"got " + received[1])
                self._port.publish("COMMAND", received[1] + b"!")

    def stop(self) -> None:
        self._stopping.set()
        self._strand.result()
        self._port.close()


class Responders:
    """Starts a responder where a bridge says."""

    def __init__(self) -> None:
        self.all: list[Responder] = []

    def start(self, url: str) -> None:
        self.all.append(Responder(TcpqPort(url, ["STATE", "NOISE"])))


@pytest.fixture
def responders() -> Iterator[Responders]:
    found = Responders()
    yield found
    for each in found.all:
        each.stop()


# --- Answers ---


def test_a_program_that_answers_is_deterministic(responders: Responders) -> None:
    digests = [
        run(federation(answering(serve="127.0.0.1:0", opened=responders.start).program())).digest for _ in range(2)
    ]
    assert digests == 2 * [native_digest()]


def test_through_a_broker_that_is_there_already() -> None:
    with TcpqBroker() as broker:
        responder = Responder(TcpqPort(broker.url, ["STATE", "NOISE"]))
        assert broker.wait_for_subscribers(["STATE"], _PATIENCE_S) == []
        assert run(federation(answering(url=broker.url).program())).digest == native_digest()
        responder.stop()


def test_over_multicast() -> None:
    url = f"udpm://239.255.76.67:{20000 + os.getpid() % 20000}?ttl=0"
    try:
        port = LcmLibraryPort(url, ["STATE", "NOISE"])
    except UsageError:
        pytest.skip("this machine has no route for multicast, not even on loopback")
    responder = Responder(port)
    assert run(federation(answering(url=url).program())).digest == native_digest()
    responder.stop()


def test_as_a_client_of_a_server(responders: Responders) -> None:
    bridge = answering(serve="127.0.0.1:0", opened=responders.start)
    whole = federation(bridge.program())

    def other(server: Server) -> None:
        with connect(server, "plant", publishes=["STATE", "NOISE"], subscribes=["COMMAND", "LOG"]) as me:
            plant(me)

    with Server(whole.plan()) as server:
        strands = [Strand(partial(other, server)), Strand(partial(bridge.take_part, server.address, "bridge"))]
        for strand in strands:
            strand.result()
        assert server.wait().digest == native_digest()


_PROGRAM = """
import lcm
messages = lcm.LCM()
def answer(channel, data):
    messages.publish("LOG", b"got " + data)
    messages.publish("COMMAND", data + b"!")
messages.subscribe("STATE", answer)
messages.subscribe("NOISE", lambda *_: None)
while True:
    messages.handle()
"""


def test_an_unmodified_program_that_the_bridge_starts() -> None:
    bridge = answering(serve="127.0.0.1:0", command=[sys.executable, "-c", _PROGRAM])
    assert run(federation(bridge.program())).digest == native_digest()


def failure(bridge: LcmBridge) -> WorldlineError:
    with pytest.raises(WorldlineError) as failed:
        run(federation(bridge.program()))
    return failed.value


def test_a_program_that_ends_is_named_with_its_exit_code() -> None:
    error = failure(answering(serve="127.0.0.1:0", command=[sys.executable, "-c", "raise SystemExit(3)"]))
    assert isinstance(error, LossError)
    assert error.participant == "bridge"
    assert error.problem.endswith("ended with exit code 3")


def test_a_program_that_is_not_there_is_not_waited_for_for_ever() -> None:
    error = failure(answering(serve="127.0.0.1:0", patience_s=0.05))
    assert isinstance(error, LossError)
    assert "no LCM program has subscribed to STATE, NOISE within 0.05 s" in str(error)
    assert "start it with LCM_DEFAULT_URL=tcpq://127.0.0.1:" in str(error)


def test_a_missing_answer_is_an_error_with_name_and_time() -> None:
    with TcpqBroker() as broker:
        error = failure(answering(url=broker.url, patience_s=0.05))
    assert isinstance(error, LossError)
    assert (error.participant, error.at) == ("bridge", 10 * MS)
    assert error.problem == "the LCM program hasn't answered STATE on COMMAND within 0.05 s"


def test_a_program_that_only_publishes_is_waited_for_too() -> None:
    error = failure(LcmBridge(serve="127.0.0.1:0", period="10ms", from_program=["COMMAND"], patience_s=0.05))
    assert isinstance(error, LossError)
    assert "no LCM program has connected within 0.05 s" in str(error)


# --- With a port and a clock under control ---


class Script:
    """A port whose program publishes at given seconds, and a clock that goes on only while it is waited for."""

    url = "script"
    lost = 0

    def __init__(self, *published: tuple[float, str, bytes]) -> None:
        self.now = 100.0
        self.given: list[Received] = []
        self._published = [(self.now + at, channel, data) for at, channel, data in published]

    def clock(self) -> float:
        return self.now

    def publish(self, channel: str, data: bytes) -> None:
        self.given.append((channel, data))

    def receive(self, timeout_s: float) -> Received | None:
        if self._published and self._published[0][0] <= self.now + timeout_s:
            at, channel, data = self._published.pop(0)
            self.now = max(self.now, at)
            return channel, data
        self.now += timeout_s
        return None

    def close(self) -> None:
        pass


def sent_by_bridge(monkeypatch: pytest.MonkeyPatch, script: Script, **given: Any) -> list[tuple[int, bytes]]:
    """Return what the bridge sends into the run, with the times at which."""
    monkeypatch.setattr("worldline.metasim.bridge.open_port", lambda *_: script)
    received: list[Message] = []

    def listener(me: Participant) -> None:
        received.extend(me.messages())

    def talker(me: Participant) -> None:
        for _ in range(4):
            me.publish("IN", b"%d" % (me.now // MS))
            me.advance(by="10ms")

    given = {"from_program": ["OUT"], **given}
    bridge = LcmBridge("udpm://", to_program=["IN"], clock=script.clock, **given)
    programs = {
        "bridge": bridge.program(),
        "listener": Program(listener, subscribes=["OUT"]),
        "talker": Program(talker),
    }
    run(Federation(programs, network=Network(default=link("1ms")), until="50ms"))
    return [(message.sent, message.payload) for message in received]


def test_what_is_published_in_a_period_is_sent_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.004, "OUT", b"a"), (0.010, "OUT", b"b"), (0.011, "OUT", b"c"), (0.019, "OUT", b"d"))
    sent = sent_by_bridge(monkeypatch, script, period="10ms", rate=1.0)
    assert sent == [(10 * MS, b"a"), (10 * MS, b"b"), (20 * MS, b"c"), (20 * MS, b"d")]
    assert script.given == [("IN", b"0"), ("IN", b"10"), ("IN", b"20"), ("IN", b"30")]
    assert script.now == pytest.approx(100.05)


def test_a_rate_stretches_time(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.004, "OUT", b"a"), (0.041, "OUT", b"b"))
    assert sent_by_bridge(monkeypatch, script, period="10ms", rate=0.5) == [(10 * MS, b"a"), (30 * MS, b"b")]
    assert script.now == pytest.approx(100.1)


def test_without_a_rate_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.0, "OUT", b"early"), (5.0, "OUT", b"late"))
    assert sent_by_bridge(monkeypatch, script, period="10ms") == [(0, b"early")]
    assert script.now == 100.0


def test_a_guest_that_comes_between_two_periods_begins_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.0, "OUT", b"a"))
    monkeypatch.setattr("worldline.metasim.bridge.open_port", lambda *_: script)
    received: list[Message] = []

    def host(me: Participant) -> None:
        me.invite("bridge", at="15ms")
        received.extend(me.messages())

    declared = {"publishes": ["OUT"], "period": 10 * MS}
    bridge = LcmBridge("udpm://", period="10ms", from_program=["OUT"], clock=script.clock)
    programs = {
        "host": Program(host, controls=True, subscribes=["OUT"]),
        "bridge": Program(bridge, guest=True, **declared),  # type: ignore[arg-type]
    }
    run(Federation(programs, network=Network(default=link("1ms")), until="50ms"))
    assert [(message.sent, message.payload) for message in received] == [(20 * MS, b"a")]


class Flood(Script):
    """A program that publishes without a pause; each message takes a hundredth of a second to be taken."""

    def receive(self, timeout_s: float) -> Received | None:
        self.now += 0.01
        return "OUT", b"more"


def test_a_program_that_never_pauses_does_not_hold_up_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sent_by_bridge(monkeypatch, Flood(), period="10ms")
    assert {at for at, _ in sent} == {0, 10 * MS, 20 * MS, 30 * MS, 40 * MS}
    assert all(payload == b"more" for _, payload in sent)


def test_a_program_that_never_pauses_and_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    flood = Flood()
    monkeypatch.setattr(_Crossing, "_check_silence", lambda _: None)
    with pytest.raises(LossError, match="hasn't answered IN on ANSWER within 1 s"):
        sent_by_bridge(
            monkeypatch,
            flood,
            period="10ms",
            from_program=["OUT", "ANSWER"],
            answers={"IN": "ANSWER"},
            patience_s=1.0,
        )


def test_what_a_program_did_not_read_is_said(
    responders: Responders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ServedPort, "lost", 1234)
    run(federation(answering(serve="127.0.0.1:0", opened=responders.start).program()))
    assert re.search(r"LCM programs at tcpq://\S+ lost 1,234 messages", capsys.readouterr().err)


def test_the_period_need_not_be_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.001, "OUT", b"a"))
    assert sent_by_bridge(monkeypatch, script, period="7ms", rate=1.0) == [(7 * MS, b"a")]


def test_everything_up_to_the_answer_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(*((0.01 * step, "OUT", b"%d" % step) for step in range(4)))
    script.now -= 1  # All of it lies ahead.
    sent = sent_by_bridge(monkeypatch, script, period="10ms", answers={"IN": "OUT"})
    assert sent == [(10 * MS, b"0"), (20 * MS, b"1"), (30 * MS, b"2"), (40 * MS, b"3")]


def test_what_a_program_says_unasked_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script((0.0, "OUT", b"hello"))
    with pytest.raises(NonDeterminism, match="published on OUT without being asked") as failed:
        sent_by_bridge(monkeypatch, script, period="10ms", answers={"IN": "OUT"})
    assert (failed.value.participant, failed.value.at) == ("bridge", 10 * MS)


# --- What is refused before the run ---


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "either a url or an address"),
        ({"url": "udpm://", "serve": "127.0.0.1:0"}, "either a url or an address"),
        ({"url": "udpm://", "period": 0.0}, "a period of 0.0 isn't possible"),
        ({"url": "udpm://", "answers": {}, "rate": 0.0}, "a rate of 0.0 isn't possible"),
        ({"url": "udpm://", "rate": 1.0}, "waits for answers has no rate"),
        ({"url": "udpm://", "answers": {"X": "COMMAND"}}, "answers names 'X', which isn't in to_program"),
        ({"url": "udpm://", "answers": {"STATE": "X"}}, "answers names 'X', which isn't in from_program"),
        ({"url": "udpm://", "from_program": ["COMMAND", "LOG", "STATE"]}, "leads both to the program and from it"),
        ({"url": "udpm://", "to_program": ["x" * 64]}, "can't name an LCM channel"),
    ],
)
def test_what_can_not_work_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises((UsageError, ConfigurationError), match=problem):
        answering(**given)


def test_a_command_that_is_not_there() -> None:
    error = failure(answering(serve="127.0.0.1:0", command=["/nowhere/program"]))
    assert "/nowhere/program" in str(error)


def test_a_period_in_whole_numbers_is_refused_since_nobody_knows_its_unit() -> None:
    with pytest.raises(UsageError, match="seconds or in nanoseconds"):
        LcmBridge("udpm://", period=10)  # type: ignore[arg-type]


def test_a_command_that_isnt_there_is_said_in_one_line() -> None:
    error = failure(LcmBridge(serve="127.0.0.1:0", period="10ms", from_program=["OUT"], command=["pythn", "x"]))
    assert "there is no command" in str(error)
    assert "pythn" in str(error)
