"""What an exchange with the server costs, and whether the model in `examples/scale` predicts what is measured.

Participants step and publish over TCP, each a process of its own; a message is heard by the next `fan` in a ring. The
processor time of server and participants gives the model's costs, and the rate of two participants what a wakeup takes;
everything else is then predicted, and measured.

    python benchmarks/scaling.py [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "scale"))

import scale
from peers.children import Children, end_after, report

import worldline
from worldline import MS, Network, Server, link, plan
from worldline.model import SECOND, US

TIMEOUT_S = 120
WINDOW = 100  # The rate is that of the fastest tenth of so many steps: others on the machine only ever slow it down.
CORES = 2
FITTED = ((8, 1, 1), (8, 20, 1), (8, 1, 7))  # Participants, lookahead in steps, fan.
PREDICTED = (
    (4, 1, 1),
    (16, 1, 1),
    (32, 1, 1),
    (64, 1, 1),
    (16, 20, 1),
    (32, 20, 1),
    (16, 1, 15),
    (32, 1, 31),
    (32, 20, 4),
)


@dataclass(frozen=True)
class Measured:
    steps_per_s: float
    server_us: float  # processor time per step of all
    client_us: float  # per step of one


def measure(n: int, lookahead: int, fan: int, steps: int) -> Measured:
    facts = {"n": n, "lookahead": lookahead, "fan": fan, "steps": steps}
    names = [f"p{place}" for place in range(n)]
    with Children(TIMEOUT_S) as children:
        children.start("server", command(facts | {"place": -1}))
        address = children.reports(["server"])["server"]["address"]
        for place, name in enumerate(names):
            children.start(name, command(facts | {"place": place, "address": address}))
        clients = children.reports(names).values()
        server = children.reports(["server"], 2)["server"]
    seconds = max(each["seconds"] for each in clients)
    client_us = statistics.mean(each["used"] for each in clients) / steps * 1e6
    return Measured(steps / seconds, server["used"] / steps * 1e6, client_us)


def command(facts: dict[str, Any]) -> list[str]:
    return [sys.executable, __file__, "child", json.dumps(facts)]


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def child(facts: dict[str, Any]) -> None:
    end_after(TIMEOUT_S)
    n, place, steps, fan = facts["n"], facts["place"], facts["steps"], facts["fan"]
    if place < 0:
        network = Network(default=link(MS * facts["lookahead"]))
        server = Server(plan([f"p{each}" for each in range(n)], network=network), "tcp://127.0.0.1:0")
        report(address=str(server.open()))
        before = used()
        server.serve()
        report(used=used() - before)
        return
    hears = [f"t{(place - way) % n}" for way in range(1, fan + 1)]
    with worldline.connect(facts["address"], f"p{place}", publishes=[f"t{place}"], subscribes=hears) as me:
        me.advance(MS)  # All are there.
        before, marks = used(), [time.perf_counter()]
        for step in range(2, steps + 2):
            me.publish(f"t{place}", b"x" * 32)
            me.advance(step * MS)
            if step % WINDOW == 1:
                marks.append(time.perf_counter())
        windows = sorted(after - begun for begun, after in pairwise(marks))
        report(seconds=windows[len(windows) // 10] / WINDOW * steps, used=used() - before)


def repeated(repeat: int, n: int, lookahead: int, fan: int, steps: int) -> Measured:
    """Return medians of processor time, and the fastest rate."""
    runs = [measure(n, lookahead, fan, steps) for _ in range(repeat)]
    return Measured(
        max(run.steps_per_s for run in runs),
        statistics.median(run.server_us for run in runs),
        statistics.median(run.client_us for run in runs),
    )


def costs_of(one: Measured, far: Measured, wide: Measured) -> scale.Costs:
    """Solve for the costs: of eight participants, with a lookahead of 1 and 20 steps, and with all hearing all."""
    server_message = (wide.server_us - one.server_us) / (8 * 6)
    exchange = one.server_us / 8 - server_message
    client_message = (wide.client_us - one.client_us) / 6
    client_exchange = (one.client_us - far.client_us) / (1 - 1 / 20)
    client_step = one.client_us - client_exchange - client_message
    half = round(exchange / 2 * US)
    return scale.Costs(
        half,
        half,
        *(max(0, round(each * US)) for each in (server_message, client_exchange, client_step, client_message)),
    )


def predicted(costs: scale.Costs, wake: int, n: int, lookahead: int, fan: int) -> tuple[float, float]:
    """Return the model's steps per second, and its processor time for a step of all in microseconds."""
    setup = scale.Setup(n, 0, lookahead, 1, fan, exchanges=50, compute=0, jitter=0, wire=wake, costs=costs)
    simulation = scale.simulation_of(setup, CORES)
    simulation.run()
    processes = scale.processes_of(simulation)
    busy = sum(process.busy for process in processes)
    return scale.steps_per_s(processes), busy / setup.exchanges / lookahead / US


def fitted_wake(costs: scale.Costs, rate: float) -> int:
    """Find how long a wakeup takes if two participants are as fast as measured."""
    low, high = 1, SECOND // 1000
    while high - low > 100:
        middle = (low + high) // 2
        low, high = (middle, high) if predicted(costs, middle, 2, 1, 1)[0] > rate else (low, middle)
    return low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    fits = [repeated(repeat, n, lookahead, fan, 2000 * min(lookahead, 5)) for n, lookahead, fan in FITTED]
    for case, fit in zip(FITTED, fits, strict=True):
        print(case, fit)
    costs = costs_of(*fits)
    print(costs)
    two = repeated(repeat, 2, 1, 1, 8000)
    wake = fitted_wake(costs, two.steps_per_s)
    print(f"a wakeup takes {wake / US:.0f} µs; 2 participants: {two.steps_per_s:,.0f} steps/s each")
    print("participants  steps  fan | steps/s each: measured, model | processor time of a step of all: measured, model")
    for n, lookahead, fan in (*FITTED, *PREDICTED):
        steps = max(500, 16_000 * min(lookahead, 5) // n // max(1, fan // 4))
        found = repeated(repeat, n, lookahead, fan, steps)
        model, busy_us = predicted(costs, wake, n, lookahead, fan)
        used_us = found.server_us + n * found.client_us
        rate = found.steps_per_s
        print(
            f"{n:12} {lookahead:6} {fan:4} | {rate:8,.0f} {model:8,.0f} {model / rate - 1:+5.0%} "
            f"| {used_us:8,.0f} µs {busy_us:8,.0f} µs {busy_us / used_us - 1:+5.0%}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(json.loads(sys.argv[2]))
    else:
        main()
