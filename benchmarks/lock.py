"""How fast the arbiter is: events per second, and what a run of a million messages leaves in memory.

Every figure is the median of several runs in fresh arbiters, single-threaded, in processor time, with the driving
loop's own included. The last column is the cost of one event relative to the smallest network of the same kind: it
shows whether cost grows with the number of participants or only with what an event touches.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from worldline.lock import Advance, Arbiter, Grant, Join, Next, Publish, Subscription
from worldline.model import FOREVER, HOUR, MS, Network, Plan, link

STEP = 10 * MS
PAYLOAD = bytes(32)

Neighbors = dict[str, list[str]]


def clique(size: int) -> Neighbors:
    names = _names(size)
    return {name: [other for other in names if other != name] for name in names}


def ring(size: int) -> Neighbors:
    names = _names(size)
    return {name: [names[place - 1], names[(place + 1) % size]] for place, name in enumerate(names)}


def one_way_ring(size: int) -> Neighbors:
    names = _names(size)
    return {name: [names[place - 1]] for place, name in enumerate(names)}


def grid(size: int) -> Neighbors:
    width = max(2, round(size**0.5))
    names = _names(width * width)
    return {
        name: [
            names[((row + down) % width) * width + (column + right) % width]
            for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
        ]
        for place, name in enumerate(names)
        for row, column in [divmod(place, width)]
    }


def _names(size: int) -> list[str]:
    return [f"p{number:05}" for number in range(size)]


def federation(neighbors: Neighbors, latency: int = STEP) -> Arbiter:
    """Start an arbiter in which everybody publishes on a topic of its own and listens to its neighbors'."""
    arbiter = Arbiter(Plan(roster=tuple(neighbors), network=Network(default=link(latency))))
    for name, others in neighbors.items():
        subscribes = tuple(Subscription(other) for other in dict.fromkeys(others))
        arbiter.handle(name, Join(publishes=(name,), subscribes=subscribes))
    return arbiter


def stepping(arbiter: Arbiter, names: list[str]) -> Iterator[int]:
    """Everybody publishes at every step and goes one step further; yields how many events it made."""
    hear = arbiter.hear
    computing = deque((name, 0) for name in names)
    steps = dict.fromkeys(names, 0)
    while True:
        name, now = computing.popleft()
        steps[name] = now + STEP
        for action in hear(name, [Publish(name, PAYLOAD, now), Advance(now + STEP)]):
            if isinstance(action, Grant):
                computing.append((action.to, steps[action.to]))
        yield 2


def passing(arbiter: Arbiter, names: list[str]) -> Iterator[int]:
    """Everybody sleeps until its next message; one in ten starts with one to send, and each is answered by one."""
    hear = arbiter.hear
    until = 24 * HOUR
    granted: deque[Grant] = deque()
    for number, name in enumerate(names):
        said = [Publish(name, PAYLOAD, 0), Next(until)] if number % 10 == 0 else [Next(until)]
        granted.extend(answer for answer in hear(name, said) if isinstance(answer, Grant))
        yield 1 + (number % 10 == 0)
    while True:
        grant = granted.popleft()
        now = grant.messages[0].arrival
        held = next((message.arrival for message in grant.messages if message.arrival > now), FOREVER)
        for answer in hear(grant.to, [Publish(grant.to, PAYLOAD, now), Next(until, held)]):
            if isinstance(answer, Grant):
                granted.append(answer)
        yield 2


Workload = Callable[[Arbiter, list[str]], Iterator[int]]


def rate(make: Callable[[int], Neighbors], size: int, work: Workload, events: int, repeats: int) -> float:
    """Return the median of events per second of processor time, after everybody has acted a few times."""
    rates = []
    for _ in range(repeats):
        neighbors = make(size)
        events_made = work(federation(neighbors), list(neighbors))
        spend(events_made, 8 * size)
        gc.collect()
        started = time.process_time()
        handled = spend(events_made, events)
        rates.append(handled / (time.process_time() - started))
    return statistics.median(rates)


def spend(events_made: Iterator[int], events: int) -> int:
    handled = 0
    while handled < events:
        handled += next(events_made)
    return handled


def speed(console: Console, events: int, repeats: int, sizes: list[int]) -> None:
    table = Table(title="Arbiter, events per second of processor time")
    for column in ("network", "participants", "workload", "events/s", "goal", "cost per event"):
        table.add_column(column, justify="left" if column in ("network", "workload") else "right")
    plan: list[tuple[str, Callable[[int], Neighbors], list[int], str, Workload, dict[int, int]]] = [
        ("clique", clique, [8], "step and publish", stepping, {8: 400_000}),
        ("ring", ring, sizes, "step and publish", stepping, {1_000: 600_000}),
        ("grid", grid, sizes, "step and publish", stepping, {}),
        ("ring", ring, sizes, "sleep and answer", passing, {}),
        ("grid", grid, sizes, "sleep and answer", passing, {}),
        ("one-way ring", one_way_ring, sizes, "sleep and answer", passing, {1_000: 200_000}),
    ]
    for name, make, counts, label, work, goals in plan:
        first = 0.0
        for size in counts:
            found = rate(make, size, work, max(events, 4 * size), repeats)
            first = first or found
            goal = f"{goals[size]:,}" if size in goals else ""
            table.add_row(name, f"{size:,}", label, f"{found:,.0f}", goal, f"× {first / found:.2f}")
    console.print(table)


def memory(console: Console, messages: int) -> None:
    """Send many messages through one arbiter and look at what stays."""
    neighbors = clique(8)
    arbiter = federation(neighbors)
    events_made = stepping(arbiter, list(neighbors))
    table = Table(title=f"Memory, {messages:,} messages to 7 receivers each through one arbiter")
    for column in ("messages", "retained for late subscribers", "allocated by Python"):
        table.add_column(column, justify="right")
    tracemalloc.start()
    for sent in range(0, messages + 1, max(1, messages // 5)):
        allocated, _ = tracemalloc.get_traced_memory()
        table.add_row(f"{sent:,}", f"{arbiter.router.retained():,}", f"{allocated / 1024:,.0f} kB")
        spend(events_made, 2 * (messages // 5))
    tracemalloc.stop()
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=50_000, help="events per run")
    parser.add_argument("--repeats", type=int, default=3, help="runs per figure")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the memory test")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    options = parser.parse_args()
    console = Console(width=100)
    speed(console, options.events, options.repeats, options.sizes)
    memory(console, options.messages)


if __name__ == "__main__":
    main()
