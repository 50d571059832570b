"""What clocks of its participants cost a federation.

Runs with and without them take turns, in one process, and CPU time is compared: the median of the ratios of
neighboring runs, since others may be using this machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from worldline import MS, Federation, Network, Participant, Program, clock, link, run
from worldline.model import LocalClock


def two_loops(steps: int, own: LocalClock | None, *, is_local: bool) -> Federation:
    """A plant and a controller that exchange a message every 10 ms, in their own time if they have one."""
    whose = "local" if is_local else "true"

    def loop(me: Participant) -> None:
        for _ in range(steps):
            me.publish(me.name, b"12345678")
            me.advance(by=10 * MS, clock=whose)  # type: ignore[arg-type]

    programs = {
        name: Program(loop, publishes=[name], subscribes=[other], period=10 * MS, clock=own)
        for name, other in (("plant", "controller"), ("controller", "plant"))
    }
    return Federation(programs, network=Network(default=link("1ms")))


def cpu_of(federation: Federation) -> float:
    began = time.process_time()
    run(federation)
    return time.process_time() - began


def clocks(steps: int, rounds: int) -> list[tuple[str, float, float]]:
    """Return for each kind of clock the steps per second, and what it costs more than none."""
    kinds: dict[str, Callable[[], Federation]] = {
        "none": lambda: two_loops(steps, None, is_local=False),
        "none, again": lambda: two_loops(steps, None, is_local=False),
        "no drift, true times": lambda: two_loops(steps, clock(), is_local=False),
        "no drift, local times": lambda: two_loops(steps, clock(offset="10ms"), is_local=True),
        "drift": lambda: two_loops(steps, clock(drift="40ppm"), is_local=True),
        "drift and walk": lambda: two_loops(
            steps, clock(drift="40ppm", wander="walk(1ppm, every=1s, within=20ppm)"), is_local=True
        ),
    }
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, make in kinds.items():
            took[kind].append(cpu_of(make()))
    return [
        (
            kind,
            2 * steps / min(times),
            statistics.median(each / plain for each, plain in zip(times, took["none"], strict=True)) - 1,
        )
        for kind, times in took.items()
    ]


def local_clocks(console: Console, steps: int, rounds: int) -> None:
    """Compare federations whose participants have clocks with one in which they have none."""
    table = Table(title="a federation of two in one process, by what clocks they have")
    for heading in ("clock", "steps/s", "costs more"):
        table.add_column(heading, justify="left" if heading == "clock" else "right")
    for kind, rate, more in clocks(steps, rounds):
        table.add_row(kind, f"{rate:,.0f}", f"{100 * more:+.1f} %")
    console.print(table)
