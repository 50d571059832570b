"""How fast the arbiter is: events per second, and what a run of a million messages leaves in memory.

Every figure is the median of several runs in fresh arbiters, single-threaded, with the driving loop's own time
included. The last column is the cost of one event relative to the smallest network of the same kind: it shows whether
cost grows with the number of participants or only with what an event touches.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.table import Table

from worldline.lock import Advance, Arbiter, Grant, Join, Next, Publish, Subscription
from worldline.model import MS, SECOND, Network, Plan, link

STEP = 10 * MS
PAYLOAD = bytes(32)

Neighbours = dict[str, list[str]]


def clique(size: int) -> Neighbours:
    names = _names(size)
    return {name: [other for other in names if other != name] for name in names}


def ring(size: int) -> Neighbours:
    names = _names(size)
    return {name: [names[place - 1], names[(place + 1) % size]] for place, name in enumerate(names)}


def grid(size: int) -> Neighbours:
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


def federation(neighbours: Neighbours, latency: int = STEP) -> Arbiter:
    """Start an arbiter in which everybody publishes on a topic of its own and listens to its neighbours'."""
    arbiter = Arbiter(Plan(roster=tuple(neighbours), network=Network(default=link(latency))))
    for name, others in neighbours.items():
        subscribes = tuple(Subscription(other) for other in dict.fromkeys(others))
        arbiter.handle(name, Join(publishes=(name,), subscribes=subscribes))
    return arbiter


def stepping(arbiter: Arbiter, names: Iterable[str], events: int) -> int:
    """Everybody publishes at every step and goes one step further, whoever is granted first goes first."""
    handle = arbiter.handle
    computing = deque((name, 0) for name in names)
    steps = dict.fromkeys(names, 0)
    handled = 0
    while handled < events:
        name, now = computing.popleft()
        steps[name] = now + STEP
        handled += 2
        for action in (*handle(name, Publish(name, PAYLOAD, now)), *handle(name, Advance(now + STEP))):
            if isinstance(action, Grant):
                computing.append((action.to, steps[action.to]))
    return handled


def passing(arbiter: Arbiter, names: Iterable[str], events: int) -> int:
    """Everybody sleeps until its next message; one in ten starts with one to send, and each is answered by one."""
    handle = arbiter.handle
    until = 3600 * SECOND
    handled = 0
    granted: deque[Grant] = deque()
    for number, name in enumerate(names):
        if number % 10 == 0:
            granted.extend(a for a in handle(name, Publish(name, PAYLOAD, 0)) if isinstance(a, Grant))
        granted.extend(a for a in handle(name, Next(until)) if isinstance(a, Grant))
        handled += 2
    while handled < events and granted:
        grant = granted.popleft()
        if not grant.messages:
            continue
        now = grant.messages[0].arrival
        answers = handle(grant.to, Publish(grant.to, PAYLOAD, now)) if grant.messages[0].sequence < 10**9 else ()
        answers += handle(grant.to, Next(until, _held(grant, now)))
        handled += 2
        granted.extend(answer for answer in answers if isinstance(answer, Grant))
    return handled


def _held(grant: Grant, now: int) -> int:
    later = [message.arrival for message in grant.messages if message.arrival > now]
    return later[0] if later else 2**63 - 1


Workload = Callable[[Arbiter, Iterable[str], int], int]


def rate(make: Callable[[int], Neighbours], size: int, work: Workload, events: int, repeats: int) -> float:
    """Return the median of events per second."""
    rates = []
    for _ in range(repeats):
        neighbours = make(size)
        arbiter = federation(neighbours)
        gc.collect()
        started = time.perf_counter()
        handled = work(arbiter, list(neighbours), events)
        rates.append(handled / (time.perf_counter() - started))
    return statistics.median(rates)


def speed(console: Console, events: int, repeats: int, sizes: list[int]) -> None:
    table = Table(title="Arbiter, events per second (one core)")
    for column in ("network", "participants", "workload", "events/s", "goal", "cost per event"):
        table.add_column(column, justify="left" if column in ("network", "workload") else "right")
    plan: list[tuple[str, Callable[[int], Neighbours], list[int], str, Workload, dict[int, int]]] = [
        ("clique", clique, [8], "step and publish", stepping, {8: 100_000}),
        ("ring", ring, sizes, "step and publish", stepping, {1_000: 50_000}),
        ("grid", grid, sizes, "step and publish", stepping, {1_000: 50_000}),
        ("ring", ring, sizes, "sleep and answer", passing, {}),
        ("grid", grid, sizes, "sleep and answer", passing, {}),
    ]
    for name, make, counts, label, work, goals in plan:
        first = 0.0
        for size in counts:
            found = rate(make, size, work, max(events, 6 * size), repeats)
            first = first or found
            goal = f"{goals[size]:,}" if size in goals else ""
            table.add_row(name, f"{size:,}", label, f"{found:,.0f}", goal, f"× {first / found:.2f}")
    console.print(table)


def memory(console: Console, messages: int) -> None:
    """Send many messages through one arbiter and look at what stays."""
    neighbours = clique(8)
    arbiter = federation(neighbours)
    names = list(neighbours)
    table = Table(title=f"Memory, {messages:,} messages to 7 receivers each through one arbiter")
    for column in ("messages", "retained for late subscribers", "peak memory of the process"):
        table.add_column(column, justify="right")
    computing = deque((name, 0) for name in names)
    at = dict.fromkeys(names, 0)
    every = max(1, messages // 4)
    for sent in range(messages + 1):
        if sent % every == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
            table.add_row(f"{sent:,}", f"{arbiter.retained():,}", f"{peak:.1f} MB")
        name, now = computing.popleft()
        at[name] = now + STEP
        for action in (*arbiter.handle(name, Publish(name, PAYLOAD, now)), *arbiter.handle(name, Advance(now + STEP))):
            if isinstance(action, Grant):
                computing.append((action.to, at[action.to]))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="events per run")
    parser.add_argument("--repeats", type=int, default=5, help="runs per figure")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the memory test")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    options = parser.parse_args()
    console = Console()
    speed(console, options.events, options.repeats, options.sizes)
    memory(console, options.messages)


if __name__ == "__main__":
    main()
