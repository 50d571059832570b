"""How long an honest participant waits while somebody else storms the server.

Two participants play ping-pong through a server, and every round trip is timed: first undisturbed, then

- while another process opens thousands of connections, one after the other, and holds them open without a word;
- while a third participant subscribes to thousands of topics in one frame;
- while the same one sends small frames as fast as it can.

The figures of interest are the slowest round trip, and how many there were. Nothing here is a test: other programs on
the machine show in them.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from worldline import Network, Server, connect, link, plan
from worldline.lock import Reached
from worldline.model import WorldlineError
from worldline.wire.codec import encode_events

SERVER = "import sys; from benchmarks import storms; storms.serve(*sys.argv[1:])"
STRANGERS = "import sys; from benchmarks import storms; storms.knock(*sys.argv[1:])"
SPEAKER = "import sys; from benchmarks import storms; storms.subscribe(*sys.argv[1:])"
NAMES = ("ping", "pong", "speaker")


def serve(*_: str) -> None:
    """Serve one run in a process of its own."""
    _allow_files()
    server = Server(plan(NAMES, network=Network(default=link("1ms"))))
    print(server.open(), flush=True)
    with contextlib.suppress(Exception):  # It is broken off when all has been measured.
        server.serve()


def knock(host: str, port: str, count: str) -> None:
    """Open connections and hold them; those that are closed at the other end make room for the next."""
    _allow_files()
    batch = min(int(count), resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
    held: list[socket.socket] = []
    opened = 0
    print("storming", flush=True)
    while opened < int(count):
        if len(held) >= batch:
            held.pop(0).close()
        try:
            held.append(socket.create_connection((host, int(port)), timeout=30))
            opened += 1
        except OSError:
            time.sleep(0.01)
    print("done", flush=True)
    sys.stdin.read()


def subscribe(address: str, count: str) -> None:
    """Subscribe to many topics at once and wait for the answer; when told to go on, send frames without end."""
    with connect(address, "speaker", publishes=[]) as me:
        me.advance(by=1)
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.monotonic()
        with me._lock:  # All of it in one frame.
            for number in range(int(count)):
                me._ledger.subscribe(f"topic {number}")
        me.advance(by=1)
        print(f"{time.monotonic() - began:.3f}", flush=True)
        sys.stdin.readline()
        frames = encode_events([Reached(me.now)]) * 500
        with contextlib.suppress(WorldlineError):  # The server ends when all has been measured.
            while True:
                me._wire._write(frames)


def _allow_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Rally:
    """Two honest participants; how long each of their round trips took."""

    def __init__(self, address: str) -> None:
        self.waits: list[float] = []
        self.failure: BaseException | None = None
        self._over = False
        self._threads = [
            threading.Thread(target=self._play, args=(address, *side), daemon=True)
            for side in (("ping", "pong", True), ("pong", "ping", False))
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def _play(self, address: str, mine: str, theirs: str, serves: bool) -> None:
        try:
            with connect(address, mine, publishes=[mine], subscribes=[theirs]) as me:
                if serves:
                    me.publish(mine, b"")
                while not self._over:
                    began = time.monotonic()
                    me.next()
                    me.publish(mine, b"")
                    if serves:
                        self.waits.append(time.monotonic() - began)
        except BaseException as failure:
            self.failure = failure

    def during(self, storm: Callable[[], str]) -> tuple[list[float], str]:
        first = len(self.waits)
        said = storm()
        last, patience = len(self.waits), time.monotonic() + 30
        while len(self.waits) == last and self.failure is None and time.monotonic() < patience:
            time.sleep(0.01)  # The one that is still waited for counts as well.
        return self.waits[first:], said


@contextlib.contextmanager
def child(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=21_000)
    parser.add_argument("--topics", type=int, default=6_000)
    arguments = parser.parse_args()
    table = Table("meanwhile", "round trips", "median", "slowest", "", title="An honest participant's wait")

    def report(what: str, waits: list[float], said: str) -> None:
        ordered = sorted(waits)
        figures = (f"{1e3 * ordered[len(ordered) // 2]:.2f} ms", f"{1e3 * ordered[-1]:.1f} ms") if waits else ("-", "-")
        table.add_row(what, f"{len(waits):,}", *figures, said)

    with child(SERVER) as server:
        address = heard(server)
        host, port = address.removeprefix("tcp://").split(":")
        rally = Rally(address)
        rally.begin()
        with child(SPEAKER, address, str(arguments.topics)) as speaker:
            heard(speaker)

            def quiet() -> str:
                time.sleep(3)
                return ""

            def connections() -> str:
                with child(STRANGERS, host, port, str(arguments.connections)) as strangers:
                    heard(strangers)
                    began = time.monotonic()
                    heard(strangers)
                    return f"all opened in {time.monotonic() - began:.1f} s"

            def subscriptions() -> str:
                assert speaker.stdin is not None
                speaker.stdin.write("go\n")
                speaker.stdin.flush()
                return f"subscribed in {heard(speaker)} s"

            def frames() -> str:
                assert speaker.stdin is not None
                speaker.stdin.write("go\n")
                speaker.stdin.flush()
                return quiet()

            report("nothing", *rally.during(quiet))
            report(f"{arguments.connections:,} connections held open", *rally.during(connections))
            report(f"{arguments.topics:,} subscriptions in a frame", *rally.during(subscriptions))
            report("frames without end", *rally.during(frames))
            if rally.failure is not None:
                table.caption = f"{type(rally.failure).__name__}: {rally.failure}"
    Console().print(table)


if __name__ == "__main__":
    main()
