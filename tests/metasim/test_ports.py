"""Ports: the ways to LCM programs, and what happens when those flood or vanish."""

from __future__ import annotations

import socket

import pytest

from tests.federation.transports import Strand
from worldline.metasim.bridge import ServedPort
from worldline.metasim.public import TcpqBroker
from worldline.metasim.public.tcpq import SERVER_MAGIC, LcmLibraryPort, TcpqPort, greeting, open_port
from worldline.model.errors import LossError

pytestmark = pytest.mark.usefixtures("tidy")
_PATIENCE_S = 30.0


def test_both_ends_meet_and_hear_only_their_channels() -> None:
    served = ServedPort("127.0.0.1:0", ["OUT", "a.b"])
    program = open_port(served.url, ["IN"])
    assert served.wait_for_listeners(["IN"], _PATIENCE_S) == []
    served.publish("IN", b"1")
    served.publish("ELSE", b"2")
    served.publish("IN", b"3")
    assert [program.receive(_PATIENCE_S) for _ in range(2)] == [("IN", b"1"), ("IN", b"3")]
    for channel in ("ELSE", "aXb", "a.b", "OUT"):
        program.publish(channel, b"4")
    assert [served.receive(_PATIENCE_S) for _ in range(2)] == [("a.b", b"4"), ("OUT", b"4")]
    assert served.receive(0.0) is None
    assert program.receive(0.0) is None
    close(program, served)


def test_a_channel_is_a_name_and_not_a_pattern() -> None:
    with TcpqBroker() as broker:
        port = TcpqPort(broker.url, ["a.b"])
        assert broker.wait_for_subscribers(["a.b"], _PATIENCE_S) == []
        broker.publish("aXb", b"other")
        broker.publish("a.b", b"ours")
        assert port.receive(_PATIENCE_S) == ("a.b", b"ours")
        port.close()


def test_a_program_that_floods_is_an_error_and_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.bridge.UNTAKEN_BYTES_MAX", 1000)
    served = ServedPort("127.0.0.1:0", ["OUT"])
    program = TcpqPort(served.url, [])
    program.publish("OUT", b"x" * 801)  # Whatever there is besides its data counts, too.
    with pytest.raises(LossError, match="the program published more than 1,000 bytes at a time"):
        served.receive(_PATIENCE_S)
    close(program, served)


def test_a_broker_that_goes_away_is_named() -> None:
    with TcpqBroker() as broker:
        port = TcpqPort(broker.url, ["IN"])
    with pytest.raises(LossError, match=f"the connection to the LCM broker at {broker.url} broke"):
        port.receive(_PATIENCE_S)
    port.close()


@pytest.mark.parametrize("patience_s", [0.0, 0.05])
def test_a_broker_that_does_not_read_is_not_waited_for_for_ever(patience_s: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> socket.socket:
            connection, _ = listener.accept()
            connection.sendall(greeting(SERVER_MAGIC))
            return connection

        strand = Strand(greet)
        port = TcpqPort(f"tcpq://127.0.0.1:{listener.getsockname()[1]}", [], patience_s)
        with strand.result(), pytest.raises(LossError, match=f"it hasn't read a message within {patience_s:g} s"):
            port.publish("IN", bytes(2**25))  # More than the operating system takes.
        close(port)


def test_a_program_is_there_once_it_has_connected() -> None:
    served = ServedPort("127.0.0.1:0", [])
    assert not served.wait_for_program(0.0)
    program = TcpqPort(served.url, [])
    assert served.wait_for_program(_PATIENCE_S)
    program.close()
    assert served.wait_for_program(0.0)  # It has said what it had to say, perhaps.
    close(served)


def test_what_a_program_does_not_read_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker.UNREAD_MAX", 1000)
    served = ServedPort("127.0.0.1:0", [])
    program = TcpqPort(served.url, ["IN"])
    assert served.wait_for_listeners(["IN"], _PATIENCE_S) == []
    assert served.lost == 0
    for _ in range(1000):
        served.publish("IN", bytes(1_000_000))
        if served.lost:
            break
    assert served.lost == 1
    close(program, served)


def test_a_broker_of_its_own_that_has_ended_is_an_error() -> None:
    served = ServedPort("127.0.0.1:0", ["OUT"])
    close(served)
    with pytest.raises(LossError, match=f"the LCM broker at {served.url} has ended"):
        served.receive(0.0)


def close(*ports: ServedPort | TcpqPort | LcmLibraryPort) -> None:
    for port in ports:
        port.close()
