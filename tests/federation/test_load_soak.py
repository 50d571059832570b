"""Load, over real sockets and processes: two hundred participants, and a million messages in flat memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.federation.transports import Strand, eventually
from worldline import SECOND, Federation, Network, Participant, Program, connect, link, run

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PATIENCE_S = 500.0

SERVER = """
import sys
from worldline import Network, Server, link, plan
from worldline.federation.server.limits import Limits
latency, memory_max, *names = sys.argv[1:]
network = Network(default=link(latency))
server = Server(plan(names, network=network), limits=Limits(memory_max=int(memory_max)))
print(server.open(), flush=True)
server.serve()
print(server.outcome().digest.hex(), flush=True)
"""

CROWD = """
import asyncio, sys
from worldline import connect_async

async def walk(address, number, size):
    subscribes = [f"to {number}"]
    async with await connect_async(address, f"p{number:03}", subscribes=subscribes, patience_s=60) as me:
        heard = number
        for step in range(20):
            me.publish(f"to {(number * 7 + step) % size}", str(heard).encode())
            for message in await me.advance(by="10ms"):
                heard = (heard * 31 + int(message.payload)) % 1_000_003

async def crowd(address, first, count, size):
    await asyncio.gather(*(walk(address, number, size) for number in range(first, first + count)))

asyncio.run(crowd(sys.argv[1], *map(int, sys.argv[2:])))
"""

SIZE = 200


@contextmanager
def served(latency: str, memory_max: int, *names: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server in a process of its own; return it and its address."""
    command = [sys.executable, "-c", SERVER, latency, str(memory_max), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


def resident(child: subprocess.Popen[str]) -> int:
    """Return how many bytes of memory a process has in use."""
    (line,) = (line for line in Path(f"/proc/{child.pid}/status").read_text().splitlines() if "VmRSS" in line)
    return int(line.split()[1]) * 1024


def test_two_hundred_participants_give_what_one_process_gives() -> None:
    def walk(self: Participant) -> None:
        number = heard = int(self.name[1:])
        for step in range(20):
            self.publish(f"to {(number * 7 + step) % SIZE}", str(heard).encode())
            for message in self.advance(by="10ms"):
                heard = (heard * 31 + int(message.payload)) % 1_000_003

    names = [f"p{number:03}" for number in range(SIZE)]
    programs = {name: Program(walk, subscribes=[f"to {number}"]) for number, name in enumerate(names)}
    expected = run(Federation(programs, network=Network(default=link("5ms"))))
    with served("5ms", 2**28, *names) as (server, address):
        crowds = [
            subprocess.Popen([sys.executable, "-c", CROWD, address, str(first), "50", str(SIZE)])
            for first in range(0, SIZE, 50)
        ]
        assert [crowd.wait(PATIENCE_S) for crowd in crowds] == [0, 0, 0, 0]
        assert server.stdout is not None
        assert server.stdout.readline().strip() == expected.digest.hex()
        assert server.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("ahead", [False, True], ids=["together", "source-ahead"])
def test_an_hour_of_traffic_takes_no_more_memory_than_its_beginning(
    ahead: bool, record_property: pytest.RecordProperty
) -> None:
    """A million messages. The source runs as far ahead as it is let, or asks for news of the reader now and then."""
    count = 1_000_000
    step = 3600 * SECOND // count
    heard = 0
    done = threading.Event()

    def source(address: str) -> None:
        with connect(address, "source", publishes=["t"], subscribes=[] if ahead else ["u"]) as me:
            for number in range(count):
                me.publish("t", number.to_bytes(8, "big") * 8)
                me.advance(by=step)

    def reader(address: str) -> None:
        nonlocal heard
        with connect(address, "reader", publishes=["u"], subscribes=["t"]) as me:
            while heard < count:
                heard += len(me.next(until=me.now + 100 * step))
                if heard % 1000 == 0:
                    me.publish("u", b"")
            assert done.wait(PATIENCE_S)

    measured: dict[int, int] = {}
    with served("20ms", 2**23, "source", "reader") as (server, address):
        strands = [Strand(lambda: source(address), "source"), Strand(lambda: reader(address), "reader")]
        for percent in (10, 50, 100):
            limit = count * percent // 100
            eventually(lambda: heard >= limit or strands[1].done, PATIENCE_S)  # noqa: B023 - it is called here only.
            measured[percent] = resident(server)
        done.set()
        for strand in strands:
            strand.result(PATIENCE_S)
        assert server.wait(PATIENCE_S) == 0
    assert heard == count
    way = "source ahead" if ahead else "together"
    summary = {f"bytes in the server at {percent} %, {way}": size for percent, size in measured.items()}
    record_property("summary", summary)
    assert max(measured.values()) < measured[10] + 2**24, measured
