"""The physical limit: a bare round trip over TCP on loopback, with and without a relay between the two.

Nothing that synchronises two processes over TCP is faster than the first figure; nothing that does it through a server
is faster than the second. Blocking sockets, TCP_NODELAY, 64-byte messages, no encoding at all.
"""

from __future__ import annotations

import argparse
import json
import platform
import socket
import sys
from pathlib import Path
from typing import Any

if __package__:
    from .children import Children, end_after, report, stopwatch
else:
    from children import Children, end_after, report, stopwatch

MESSAGE_SIZE = 64
TRIPS = 20_000
WARM_UP = 500
LOOPBACK = "127.0.0.1"


def direct(trips: int = TRIPS, timeout_s: float = 60) -> dict[str, Any]:
    """Round trips between two processes."""
    return _measure("tcp round trip", ["echo"], trips, timeout_s)


def relayed(trips: int = TRIPS, timeout_s: float = 60) -> dict[str, Any]:
    """Round trips between two processes whose every message goes through a third: four messages for each trip."""
    return _measure("tcp round trip through a relay", ["echo", "relay"], trips, timeout_s)


def _measure(scenario: str, chain: list[str], trips: int, timeout_s: float) -> dict[str, Any]:
    with Children(timeout_s) as children:
        port = 0
        for role in chain:
            children.start(role, _command(role, port, timeout_s))
            port = children.reports([role])[role]["port"]
        children.start("client", _command("client", port, timeout_s, trips))
        before = sum(children.cpu_s(role) for role in chain)
        took = children.reports(["client"])["client"]
        seconds = took["seconds"]
        cpu_s = took["cpu_s"] + sum(children.cpu_s(role) for role in chain) - before
    return {
        "scenario": scenario,
        "peer": f"python {platform.python_version()} sockets",
        "trips": trips,
        "round_trips_per_s": trips / seconds,
        "round_trip_us": seconds / trips * 1e6,
        "cpu_us": cpu_s / trips * 1e6,
    }


def _command(role: str, port: int, timeout_s: float, trips: int = 0) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "child", role, str(port), str(trips), str(timeout_s)]


def _play(role: str, port: int, trips: int, timeout_s: float) -> None:
    end_after(timeout_s + 5)
    if role == "client":
        _client(_connected(port), trips)
        return
    with socket.create_server((LOOPBACK, 0)) as server:
        onward = _connected(port) if role == "relay" else None
        report(port=server.getsockname()[1])
        back, _ = server.accept()
    _undelayed(back)
    if onward is None:
        _echo(back)
    else:
        _relay(back, onward)


def _client(connection: socket.socket, trips: int) -> None:
    message = bytes(MESSAGE_SIZE)
    for _ in range(WARM_UP):
        connection.sendall(message)
        _receive(connection)
    taken = stopwatch()
    for _ in range(trips):
        connection.sendall(message)
        _receive(connection)
    report(**taken())


def _echo(connection: socket.socket) -> None:
    while message := _receive(connection):
        connection.sendall(message)


def _relay(back: socket.socket, onward: socket.socket) -> None:
    # A server of many would wait with epoll; that it knows whose turn it is makes this the lower limit it should be.
    while message := _receive(back):
        onward.sendall(message)
        back.sendall(_receive(onward))


def _receive(connection: socket.socket) -> bytes:
    return connection.recv(MESSAGE_SIZE, socket.MSG_WAITALL)


def _connected(port: int) -> socket.socket:
    return _undelayed(socket.create_connection((LOOPBACK, port)))


def _undelayed(connection: socket.socket) -> socket.socket:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=["direct", "relayed"])
    parser.add_argument("--trips", type=int, default=TRIPS)
    parser.add_argument("--repeat", type=int, default=1, help="measure so many times; one JSON object per line")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="of each measurement")
    options = parser.parse_args()
    for _ in range(options.repeat):
        measure = direct if options.scenario == "direct" else relayed
        print(json.dumps(measure(options.trips, options.timeout)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _play(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
