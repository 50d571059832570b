"""What a model can take in from outside, and none should: twelve kinds, each sure to show in some variant.

| leak            | shows in            | since                                                          |
| --------------- | ------------------- | -------------------------------------------------------------- |
| `set_order`     | other hash seeds    | it is the order of forty texts in a set                        |
| `float_sum`     | other hash seeds    | the sum of forty floats in that order hardly ever comes twice  |
| `clock`         | the same once more  | nanoseconds                                                    |
| `global_random` | the same once more  | the system seeds it                                            |
| `thread`        | the same once more  | the system numbers threads, all that it has                    |
| `identity`      | the same once more  | the system lays out memory anew in every process               |
| `race`          | other thread turns  | one thread has counted before the next begins, usually         |
| `folder`        | another folder      | it is the path of the current one                              |
| `home`          | another home        | it is its path                                                 |
| `locale`        | another locale      | it is its name                                                 |
| `time_zone`     | another time zone   | it is the hour there at one moment                             |
| `shared_state`  | other executors     | a counter that all count on, if they are in the same process   |
"""

from __future__ import annotations

import itertools
import locale
import random
import threading
import time
from pathlib import Path
from typing import Any

LEAKS = (
    *("set_order", "float_sum", "clock", "global_random", "thread", "identity", "race"),
    *("folder", "home", "locale", "time_zone", "shared_state"),
)
WEIGHTS = {f"{sign} {power}": float(f"{sign}1e{power}") / 3 for power in range(20) for sign in "+-"}

calls = 0


def call() -> None:
    """Count a call, of whoever: the counter is everybody's."""
    global calls
    calls += 1


def leaked(leak: str) -> Any:
    """Return what shouldn't be known; something honest, if nothing leaks."""
    return {
        "none": lambda: "honest",
        "set_order": lambda: list(set(WEIGHTS)),
        "float_sum": sum_of_all,
        "clock": time.time_ns,
        "global_random": random.random,
        "thread": number_of_a_thread,
        "identity": lambda: id(WEIGHTS),
        "race": turns_of_threads,
        "folder": lambda: str(Path.cwd()),
        "home": lambda: str(Path.home()),
        "locale": lambda: locale.setlocale(locale.LC_ALL, ""),
        "time_zone": lambda: time.strftime("%H:%M", time.localtime(0)),
        "shared_state": lambda: calls,
    }[leak]()


def sum_of_all() -> float:
    total = 0.0
    for name in set(WEIGHTS):
        total += WEIGHTS[name]
    return total


def number_of_a_thread() -> int:
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(threading.get_native_id()))
    thread.start()
    thread.join()
    return numbers[0]


def turns_of_threads() -> int:
    """Return how often two threads have taken turns that count a little. They need a race to take more than two."""
    counted: list[int] = []

    def count(number: int) -> None:
        for _ in range(20_000):
            counted.append(number)  # noqa: PERF401 - one by one, so that others may get a turn.

    threads = [threading.Thread(target=count, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(list(itertools.groupby(counted)))
