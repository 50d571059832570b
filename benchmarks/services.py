"""How long a simulated test of services takes, beside simloom and simloop, which test asyncio programs as well.

One test: a server and three clients on hosts of their own, over streams with latencies of 1 to 3 ms; each client sends
40 lines and waits for the echo of each. The programs are the same. All take turns, and processor time is compared,
since the machine may have other things to do. Peers that aren't installed are left out (``pip install simloom==0.5.0
simloop==0.2.2``).

Worldline sends segments with acknowledgements and timers, keeps a journal for the story of a failure, and judges by it;
the others hand over bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.table import Table

from worldline import Federation, Machine, Network, link
from worldline.federation.inprocess.trial import FederationTrial

CLIENTS, ECHOES, PORT = 3, 40, 8080
LATENCY_S = (0.001, 0.003)


async def serve() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "server", PORT)
    async with server:
        await server.serve_forever()


async def ask() -> None:
    await asyncio.sleep(0.1)
    reader, writer = await asyncio.open_connection("server", PORT)
    for number in range(ECHOES):
        writer.write(b"%d\n" % number)
        assert await reader.readline() == b"%d\n" % number
    writer.close()


def federation() -> Federation:
    clients = {f"client{number}": Machine(ask) for number in range(CLIENTS)}
    network = Network(default=link("uniform(1ms, 3ms)"))
    return Federation({"server": Machine(serve), **clients}, network=network, until="5s")


def with_worldline(seed: int) -> None:
    failure = FederationTrial(make=federation, seed=seed).run().failure
    assert failure is None, failure


def with_simloom(seed: int) -> None:
    import simloom

    async def main(world: Any) -> None:
        world.net.set_latency(*LATENCY_S)
        world.host("server").spawn(serve)
        asked = [world.host(f"client{number}").spawn(ask) for number in range(CLIENTS)]
        await asyncio.gather(*asked)

    simloom.run(main, seed=seed)  # It raises what fails.


def with_simloop(seed: int) -> None:
    import simloop

    async def main() -> None:
        net: Any = asyncio.get_running_loop().net  # type: ignore[attr-defined]
        net.set_defaults(latency=LATENCY_S)
        net.host("server").create_task(serve())
        await asyncio.gather(*(net.host(f"client{number}").create_task(ask()) for number in range(CLIENTS)))

    report = simloop.explore(main, [seed])
    assert report is None, report


WAYS: dict[str, Callable[[int], None]] = {
    "worldline": with_worldline,
    **{
        name: way for name, way in (("simloom", with_simloom), ("simloop", with_simloop)) if find_spec(name) is not None
    },
}


def services(console: Console, repeats: int, seeds: int) -> None:
    """Compare the processor time of a run."""
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for way in WAYS.values():
        way(0)  # What is loaded once isn't a run's.
    for _ in range(repeats):
        for name, way in WAYS.items():
            began = time.process_time()
            for seed in range(seeds):
                way(seed)
            found[name].append((time.process_time() - began) / seeds)
    ours = statistics.median(found["worldline"])
    echoes = CLIENTS * ECHOES
    table = Table(title=f"a test with {echoes} echoes, processor time, medians of {repeats} times {seeds} seeds")
    for heading in ("", "a run", "echoes/s", "worldline is faster by"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, times in found.items():
        median = statistics.median(times)
        factor = "" if name == "worldline" else f"{median / ours:.2f} ×"
        table.add_row(name, f"{median * 1000:.1f} ms", f"{echoes / median:,.0f}", factor)
    console.print(table)
    missing = [name for name in ("simloom", "simloop") if name not in WAYS]
    if missing:
        console.print(f"not installed: {', '.join(missing)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    services(Console(), given.repeats, given.seeds)
