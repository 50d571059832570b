"""How fast unmodified programs run: beside real sockets, and beside simulators that are for asyncio alone.

Echoes and requests are counted per second of processor time, of all processes that take part, since the machine may be
busy: real sockets also cost the kernel, which is counted, too. What is compared runs in turns, several times; figures
are medians. simloom, simloop and aiohttp are measured if they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from worldline import Federation, Machine, Network, link, run
from worldline.builds import build

ELECTION = Path(__file__).parents[1] / "examples" / "election"
PORT = 18_765
CONSOLE = Console(file=sys.__stdout__)
TURNS = 5

Main = Callable[[], Coroutine[Any, Any, Any]]


async def serve(host: str | None = None) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async with await asyncio.start_server(handle, host, PORT) as server:
        await server.serve_forever()


async def ask(host: str, echoes: int) -> None:
    reader, writer = await asyncio.open_connection(host, PORT)
    for _ in range(echoes):
        writer.write(b"hello\n")
        await reader.readline()
    writer.close()


def processor_s() -> float:
    """Return the time that this process, and those that have ended, have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def forked(main: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        main()
    finally:
        os._exit(0)


def on_real_sockets(server: Main, client: Main) -> None:
    """Run a server and a client in two processes of their own."""
    serving = forked(lambda: asyncio.run(server()))
    time.sleep(0.5)
    os.waitpid(forked(lambda: asyncio.run(client())), 0)
    os.kill(serving, 9)
    os.waitpid(serving, 0)


def simulated(clients: int, echoes: int, latency: str = "1ms") -> None:
    machines = {"server": Machine(serve)}
    machines |= {f"client{number}": Machine(lambda: ask("server", echoes)) for number in range(clients)}
    run(Federation(machines, network=Network(default=link(latency))))


async def in_one_loop(clients: int, echoes: int) -> None:
    server = asyncio.create_task(serve("server"))
    await asyncio.sleep(0.001)
    await asyncio.gather(*(ask("server", echoes) for _ in range(clients)))
    server.cancel()


def in_simloom(clients: int, echoes: int) -> None:
    import simloom

    simloom.run(lambda *_: in_one_loop(clients, echoes), seed=1)


def in_simloop(clients: int, echoes: int) -> None:
    import simloop

    async def main(*_: Any) -> None:
        await in_one_loop(clients, echoes)

    simloop.explore(main, seeds=[1])


async def serve_http(host: str = "0.0.0.0") -> None:
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"hello": request.match_info["name"]})

    app = web.Application()
    app.router.add_get("/{name}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, PORT).start()
    await asyncio.Event().wait()


async def request_http(host: str, requests: int) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        for _ in range(requests):
            async with session.get(f"http://{host}:{PORT}/world") as answer:
                await answer.json()


def simulated_http(requests: int) -> None:
    machines = {"server": Machine(serve_http), "client": Machine(lambda: request_http("server", requests))}
    run(Federation(machines, network=Network(default=link("1ms")), until="1h"))


def over_processes(echoes: int) -> None:
    """Run the same two programs as processes of a federation's file."""
    from worldline.launch.file.setup import read_setup
    from worldline.launch.launcher import Launch, LaunchOptions

    with tempfile.TemporaryDirectory() as folder:
        here = Path(__file__).parent
        lines = [
            f'[[participants]]\nname = "{name}"\nscript = "programs.py --be {word}"\ndirectory = "{here}"'
            for name, word in (("server", "server"), ("client", f"client --echoes {echoes}"))
        ]
        file = Path(folder) / "echo.toml"
        file.write_text("\n".join(lines))
        Launch(read_setup(file), LaunchOptions()).run()


def rate(count: int, action: Callable[[], None]) -> float:
    """Return how many there are in a second of processor time."""
    before = processor_s()
    action()
    return count / (processor_s() - before)


def steady_rate(count: int, action: Callable[[int], None]) -> float:
    """Return how many there are in a second of processor time once all is started: the start takes as long for one."""
    before = processor_s()
    action(1)
    started = processor_s()
    action(count)
    return count / (processor_s() - started - (started - before))


def medians(measured: dict[str, Callable[[], float]], turns: int) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(turns):
        for name, measure in measured.items():
            found[name].append(measure())
    return {name: statistics.median(rates) for name, rates in found.items()}


def is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def show(title: str, unit: str, found: dict[str, float], first: str) -> None:
    table = Table(title=title, title_justify="left")
    for name in ("", unit, f"× {first}"):
        table.add_column(name, justify="left" if not name else "right")
    for name, value in found.items():
        table.add_row(name, f"{value:,.0f}", f"{value / found[first]:.2f}")
    CONSOLE.print(table)


def echoes(count: int, turns: int) -> None:
    real = "real loopback, two processes"
    measured = {
        real: lambda: rate(count, lambda: on_real_sockets(lambda: serve("127.0.0.1"), lambda: ask("127.0.0.1", count))),
        "machines in one process": lambda: rate(count, lambda: simulated(1, count)),
        "machines over Unix sockets": lambda: steady_rate(count, over_processes),
        "100 machines in one process": lambda: rate(count, lambda: simulated(100, count // 100)),
    }
    show("Echoes", "per second of processor time", medians(measured, turns), real)


def requests(count: int, turns: int) -> None:
    real = "real loopback, two processes"
    measured = {
        real: lambda: steady_rate(
            count,
            lambda each: on_real_sockets(lambda: serve_http("127.0.0.1"), lambda: request_http("127.0.0.1", each)),
        ),
        "machines in one process": lambda: steady_rate(count, simulated_http),
    }
    show("Requests with aiohttp", "per second of processor time", medians(measured, turns), real)


def small_tests(turns: int) -> None:
    """A test as one writes it: a server, three clients, 40 echoes each."""
    name = "Worldline"
    measured = {name: lambda: rate(10, lambda: [simulated(3, 40) for _ in range(10)] and None)}
    for peer, action in (("simloom", in_simloom), ("simloop", in_simloop)):
        if is_there(peer):
            measured[peer] = lambda action=action: rate(10, lambda: [action(3, 40) for _ in range(10)] and None)
    show("A server, three clients, 40 echoes each", "runs per second", medians(measured, turns), name)


def speed_of_time(turns: int) -> None:
    """How much simulated time passes in a second: latency of 1 to 3 ms, one client that asks all the time."""
    spans = []
    for _ in range(turns):
        before = processor_s()
        machines = {"server": Machine(serve), "client": Machine(lambda: ask("server", 2000))}
        outcome = run(Federation(machines, network=Network(default=link("uniform(1ms, 3ms)"))))
        spans.append(max(end.at for end in outcome.members.values()) / 1e9 / (processor_s() - before))
    CONSOLE.print(f"Simulated time at latencies of 1 to 3 ms: {statistics.median(spans):.1f} × processor time")


def elections(turns: int) -> None:
    """Runs of an election of three nodes, as a search makes them."""
    peers = [f"{name}:7000" for name in ("ann", "bob", "cid")]
    machines = {
        peer.partition(":")[0]: Machine(
            "node.py", "7000", *(other for other in peers if other != peer), "--careful", directory=ELECTION
        )
        for peer in peers
    }

    def search() -> None:
        for seed in range(50):
            run(Federation(machines, network=Network(default=link("uniform(1ms, 3ms)")), seed=seed, until="3s"))

    rates = [rate(50, search) for _ in range(turns)]
    CONSOLE.print(f"Elections of three nodes: {statistics.median(rates):.0f} runs per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--echoes", type=int, default=3000)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--be", choices=("server", "client"), help="be one of the programs that are measured")
    given = parser.parse_args()
    if given.be is not None:
        asyncio.run(serve() if given.be == "server" else ask("server", given.echoes))
        return
    CONSOLE.print(f"Build: {build}; Python {sys.version.partition(' ')[0]}")
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - what programs print is no figure
    echoes(given.echoes, given.turns)
    if is_there("aiohttp"):
        requests(given.echoes // 3, given.turns)
    small_tests(given.turns)
    speed_of_time(given.turns)
    elections(given.turns)


if __name__ == "__main__":
    main()
