"""Random programs of sends, closes, shutdowns and timeouts see the same on Linux's loopback and on a simulated one."""

from __future__ import annotations

import random
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from worldline import Federation, Machine, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is compared is Linux")

Step = tuple[Any, ...]
SETTLE_S = 0.001  # On the real loopback everything has arrived long before.


def steps_of(number: int) -> list[Step]:
    """Return a random program for both ends of a connection."""
    draws = random.Random(number)
    ends = ("client", "server")
    choices: list[Callable[[str], Step]] = [
        lambda end: (end, "send", draws.choice((1, 100, 5_000))),
        lambda end: (end, "send", draws.choice((1, 100, 5_000))),
        lambda end: (end, "recv", draws.choice((1, 50, 10_000))),
        lambda end: (end, "recv", draws.choice((1, 50, 10_000))),
        lambda end: (end, "peek", 10),
        lambda end: (end, "shutdown", draws.choice((socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR))),
        lambda end: (end, "ready"),
        lambda end: (end, "error"),
        lambda end: (end, "names"),
        lambda end: (end, "close"),
        lambda end: (end, "abort"),
        lambda end: (end, "connect"),
    ]
    weights = (3, 3, 3, 3, 1, 1, 3, 1, 1, 0.5, 0.3, 0.5)
    return [draws.choices(choices, weights)[0](draws.choice(ends)) for _ in range(14)]


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except OSError as error:
        return type(error).__name__, error.errno


def perform(ends: dict[str, socket.socket], port: int, step: Step) -> Any:
    end = ends[step[0]]
    match step[1:]:
        case ["send", size]:
            return outcome(lambda: end.send(b"x" * size))
        case ["recv", size]:
            return outcome(lambda: len(end.recv(size)))
        case ["peek", size]:
            return outcome(lambda: len(end.recv(size, socket.MSG_PEEK)))
        case ["shutdown", how]:
            return outcome(lambda: end.shutdown(how))
        case ["ready"]:
            if end.fileno() < 0:
                return None
            reading, writing, _ = select.select([end], [end], [], 0)
            return bool(reading), bool(writing)
        case ["error"]:
            return outcome(lambda: end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        case ["names"]:
            return outcome(lambda: (end.getsockname()[0], end.getpeername()[0]))
        case ["close"]:
            return end.close()
        case ["abort"]:
            outcome(lambda: end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)))
            return end.close()
        case ["connect"]:
            return outcome(lambda: end.connect(("127.0.0.1", port)))
    raise AssertionError(step)


def played(steps: list[Step]) -> list[Any]:
    """Return what a program sees, wherever it runs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        server, _ = listener.accept()
        ends = {"client": client, "server": server}
        for end in ends.values():
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # Nagle's algorithm isn't simulated.
        seen = []
        for step in steps:
            seen.append((step, perform(ends, port, step)))
            time.sleep(SETTLE_S)
        for end in ends.values():
            end.close()
    return seen


def test_random_programs_see_the_same_as_on_linux() -> None:
    programs = [steps_of(number) for number in range(120)]
    real = [played(steps) for steps in programs]
    simulated: list[list[Any]] = []
    run(Federation({"computer": Machine(lambda: simulated.extend(map(played, programs)))}))
    for number, (there, here) in enumerate(zip(real, simulated, strict=True)):
        assert here == there, f"program {number}"


def datagrams() -> list[Any]:
    """What a program sees of UDP: datagrams in order, refusals where no socket is, one that is too long."""
    one, other = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    seen: list[Any] = []
    with one, other:
        one.bind(("127.0.0.1", 0))
        one.settimeout(0.01)
        other.settimeout(0.01)
        seen.append(outcome(lambda: other.send(b"nowhere")))
        other.connect(one.getsockname())
        seen.append([outcome(lambda size=size: other.send(b"d" * size)) for size in (0, 1, 1_000, 70_000)])
        seen.append([outcome(lambda: len(one.recvfrom(100)[0])) for _ in range(4)])
        one.close()
        seen.append(outcome(lambda: other.send(b"is it there?")))
        time.sleep(SETTLE_S)
        seen.append([outcome(lambda: other.send(b"and now?")), outcome(lambda: other.recv(10))])
        seen.append(outcome(lambda: other.shutdown(socket.SHUT_RD)))
    return seen


def refusals() -> list[Any]:
    """What a program sees where nothing listens, where it has bound already, and where it waits too long."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        address = listener.getsockname()
        listener.settimeout(0.01)
        seen.append(outcome(listener.accept))
        with socket.socket() as second:
            seen.append(outcome(lambda: second.bind(address)))
            seen.append(outcome(lambda: second.recv(1)))
            seen.append(outcome(lambda: second.send(b"x")))
            seen.append(outcome(lambda: second.shutdown(socket.SHUT_RDWR)))
            seen.append(outcome(second.getpeername))
            seen.append(outcome(lambda: second.bind(("10.9.9.9", 0))))
    with socket.socket() as late:
        seen.append(outcome(lambda: late.connect(address)))
        seen.append(late.connect_ex(address))
    seen.append(outcome(lambda: late.send(b"closed")))
    return seen


@pytest.mark.parametrize("program", [datagrams, refusals])
def test_programs_see_the_same_as_on_linux(program: Callable[[], list[Any]]) -> None:
    simulated: list[Any] = []
    run(Federation({"computer": Machine(lambda: simulated.extend(program()))}))
    assert simulated == program()
