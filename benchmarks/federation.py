"""How fast federations of processes are, beside HELICS, mosaik and bare TCP, all measured in turn in the same run.

Every figure is a median, above the slowest and the fastest. Contestants take turns within a repetition, because on a
shared machine two measurements a minute apart compare the minutes. `--profile` shows where the server's time goes
instead.

HELICS and mosaik are optional: what isn't installed is left out.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import helics_peer, in_process, mosaik_peer, shared_workers, tcp, worldline_peer
from peers.children import PeerError
from rich.console import Console
from rich.table import Table

from worldline import Network, Server, link, plan

Facts = dict[str, Any]
Contest = dict[str, Callable[[], float | None]]

console = Console(highlight=False, width=120)


def installed() -> dict[str, bool]:
    found = {}
    for name, peer in (("HELICS", helics_peer), ("mosaik", mosaik_peer)):
        try:
            peer.version()
            found[name] = True
        except (PeerError, ImportError, SystemExit):
            found[name] = False
    return found


def contests(scale: float) -> dict[str, tuple[str, Contest]]:
    """Return every race: what is counted, and how each contestant runs it. Higher is better."""

    def many(count: int) -> int:
        return max(200, int(count * scale))

    def stepping(n: int, ours: int, theirs: int, lookahead: int, mosaik: int = 0) -> Contest:
        contest: Contest = {
            "Worldline": lambda: worldline_peer.stepping(n, many(ours), lookahead)["steps_per_s"],
            "HELICS": lambda: helics_peer.stepping(n, many(theirs), lookahead)["steps_per_s"],
        }
        if mosaik:
            contest["mosaik"] = lambda: mosaik_peer.stepping(n, many(mosaik))["steps_per_s"]
        return contest

    def ring(n: int) -> Contest:
        return {
            "Worldline": lambda: worldline_peer.ring(n, many(8000))["hops_per_s"],
            "HELICS": lambda: helics_peer.ring(n, many(2000))["hops_per_s"],
        }

    def starting(ours: Callable[[int], Facts]) -> Contest:
        return {
            "Worldline": lambda: 1 / ours(8)["seconds"],
            "HELICS": lambda: 1 / helics_peer.startup(8)["seconds"],
        }

    return {
        "2 step, latency 1 step": ("steps/s each", stepping(2, 20_000, 3000, 1, mosaik=600)),
        "8 step, latency 1 step": ("steps/s each", stepping(8, 6000, 1000, 1, mosaik=200)),
        "2 step, latency 20 steps": ("steps/s each", stepping(2, 60_000, 4000, 20)),
        "8 step, latency 20 steps": ("steps/s each", stepping(8, 20_000, 1500, 20)),
        "ping-pong": (
            "round trips/s",
            {
                "Worldline": lambda: worldline_peer.pingpong(many(5000))["round_trips_per_s"],
                "HELICS": lambda: helics_peer.pingpong(many(1500))["round_trips_per_s"],
                "TCP relay": lambda: tcp.relayed(many(5000))["round_trips_per_s"],
            },
        ),
        "ping-pong, Unix": (
            "round trips/s",
            {
                "Worldline": lambda: worldline_peer.pingpong(many(5000), local=True)["round_trips_per_s"],
                "HELICS": lambda: helics_peer.pingpong(many(1500))["round_trips_per_s"],
            },
        ),
        "100 B, recorded, Unix": (
            "messages/s",
            {"Worldline": lambda: worldline_peer.flow(many(1_000_000), 100, 100, recorded=True)["per_s"]},
        ),
        "1 MB, Unix": (
            "MB/s",
            {"Worldline": lambda: worldline_peer.flow(many(1000), 10**6, 1)["bytes_per_s"] / 1e6},
        ),
        "ring of 4": ("hops/s", ring(4)),
        "ring of 8": ("hops/s", ring(8)),
        "start of 8 processes": ("per second", starting(worldline_peer.startup)),
        "start of 8 by `run`": ("per second", starting(worldline_peer.launch)),
        "500 in 2 workers, latency 20 steps": (
            "steps/s in all",
            {"Worldline": lambda: shared_workers.stepping(500, 2, many(1000))},
        ),
        "bare TCP": ("round trips/s", {"TCP": lambda: tcp.direct(many(10_000))["round_trips_per_s"]}),
    }


def race(contest: Contest, there: dict[str, bool], repeat: int) -> dict[str, list[float]]:
    results: dict[str, list[float]] = {}
    for _ in range(repeat):
        for name, run in contest.items():
            if not there.get(name, True):
                continue
            try:
                results.setdefault(name, []).append(run() or 0.0)
            except PeerError as error:
                console.print(f"[red]{name}: {str(error).splitlines()[0]}[/]")
    return results


def compare(repeat: int, scale: float, only: str) -> None:
    there = installed()
    columns = ("Worldline", "HELICS", "mosaik", "TCP relay", "TCP")
    table = Table(title=f"Federations of processes, over TCP on loopback unless it says Unix, medians of {repeat}")
    for column in ("", "", *columns, "× HELICS", "× mosaik"):
        table.add_column(column, justify="right" if column else "left")
    for title, (unit, contest) in contests(scale).items():
        if only not in title:
            continue
        found = race(contest, there, repeat)
        medians = {name: statistics.median(rates) for name, rates in found.items()}
        ratios = [
            f"{medians['Worldline'] / medians[name]:.1f}" if {"Worldline", name} <= medians.keys() else ""
            for name in ("HELICS", "mosaik")
        ]
        figures = [with_spread(found[name]) if name in found else "" for name in columns]
        table.add_row(title, unit, *figures, *ratios)
        console.print(f"{title}: {', '.join(f'{name} {value:,.2f}' for name, value in medians.items())}")
    console.print(table)


def in_one_process(repeat: int, scale: float, only: str) -> None:
    """How fast programs are that share a process, as greenlets and as threads."""
    trips, steps = max(200, int(20_000 * scale)), max(200, int(3000 * scale))
    contests: dict[str, tuple[str, Contest]] = {
        "in-process ping-pong": (
            "round trips/s",
            {
                "greenlets": lambda: in_process.pingpong(trips),
                "threads": lambda: in_process.pingpong(trips // 2, threads=True),
            },
        ),
        "in-process, 8 step": (
            "steps/s each",
            {
                "greenlets": lambda: in_process.stepping(8, steps),
                "threads": lambda: in_process.stepping(8, steps // 2, threads=True),
            },
        ),
    }
    table = Table(title=f"Federations in one process, medians of {repeat}, slowest to fastest")
    for column in ("", "", "greenlets", "", "threads", ""):
        table.add_column(column, justify="right" if column else "left")
    for title, (unit, contest) in contests.items():
        if only not in title:
            continue
        found = race(contest, {}, repeat)
        cells = []
        for kind in ("greenlets", "threads"):
            rates = found.get(kind, [])
            cells += (
                [shown(statistics.median(rates)), f"{shown(min(rates))} – {shown(max(rates))}"] if rates else ["", ""]
            )
        table.add_row(title, unit, *cells)
    if table.row_count:
        console.print(table)


def with_spread(rates: list[float]) -> str:
    return f"{shown(statistics.median(rates))}\n{shown(min(rates))} – {shown(max(rates))}"


def shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure > 10 else f"{figure:.2f}"


def failures(runs: int) -> None:
    """What a death and a tie look like, for each."""
    there = installed()
    table = Table(title="After kill -9 of one participant")
    for column in ("", "others know after", "what they are told"):
        table.add_column(column)
    died = worldline_peer.kill(3)
    table.add_row("Worldline", f"{died['seconds'] * 1000:,.1f} ms", next(iter(died["told"].values())))
    if there["HELICS"]:
        died = helics_peer.kill(3)
        table.add_row("HELICS", f"{died['seconds'] or 60:,.1f} s", str(next(iter(died["told"].values())).get("text")))
    console.print(table)
    table = Table(title=f"Three messages of equal arrival time, {runs} runs with shuffled starts")
    for column in ("", "different orders", "runs that hung"):
        table.add_column(column)
    table.add_row("Worldline", str(worldline_peer.equal_arrivals(runs)["different"]), "0")
    for way in ("targeted", "addressed", "published") if there["HELICS"] else ():
        found = helics_peer.equal_arrivals(runs, way=way)
        orders = len({tuple(order) for order in found["orders"]})
        table.add_row(f"HELICS, {way} endpoints", str(orders), str(found["hung_runs"]))
    console.print(table)


def profile() -> None:
    """Show where the server's time goes: waiting, system calls, and our own modules."""
    for title, play in (
        ("ring of 4", {"play": "token", "hops": 8000, "n": 4}),
        ("8 step, latency 20 steps", {"play": "stepping", "steps": 8000, "lookahead": 20, "n": 8}),
    ):
        server = Server(
            plan(worldline_peer.NAMES[: play["n"]], network=Network(default=link(play.get("lookahead", 1) * 1_000_000)))
        )
        address = str(server.open())
        children = [
            subprocess.Popen(
                worldline_peer.command(play | {"name": name, "address": address, "timeout_s": 60}),
                stdout=subprocess.DEVNULL,
            )
            for name in worldline_peer.NAMES[: play["n"]]
        ]
        profiler = cProfile.Profile()
        profiler.runcall(server.serve)
        for child in children:
            child.wait()
        console.print(shares(title, pstats.Stats(profiler)))


def shares(title: str, stats: Any) -> Table:
    places: Counter[str] = Counter()
    for (file, _, function), (_, _, own, _, _) in stats.stats.items():
        path = Path(file)
        if "poll" in function:
            place = "waiting, and listening for what comes"
        elif "method 'send'" in function or "method 'recv" in function:
            place = "sending and receiving (system calls)"
        elif "worldline" in path.parts:
            place = "/".join(path.parts[-2:])
        else:
            place = "Python's own (selectors, msgspec, builtins)"
        places[place] += own
    table = Table(title=f"The server's time, {title} (profiled, so slower than it is)")
    table.add_column("")
    table.add_column("share", justify="right")
    total = sum(places.values())
    for place, seconds in places.most_common(10):
        table.add_row(place, f"{seconds / total:.1%}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="how long each measurement is")
    parser.add_argument("--only", default="", help="only races whose name has this in it")
    parser.add_argument("--runs", type=int, default=50, help="runs of equal arrivals; 0 leaves the failures out")
    parser.add_argument("--profile", action="store_true", help="show where the server's time goes")
    given = parser.parse_args()
    if given.profile:
        profile()
        return
    in_one_process(given.repeat, given.scale, given.only)
    compare(given.repeat, given.scale, given.only)
    if given.runs and not given.only:
        failures(given.runs)


if __name__ == "__main__":
    main()
