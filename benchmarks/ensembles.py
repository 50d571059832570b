"""What off-nominal conditions and ensembles cost: local clocks, environments of learners, and searches."""

from __future__ import annotations

import argparse
import sys

from clocks import local_clocks
from environments import learners_environments, vectors
from rich.console import Console
from searches import searches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("clocks", "environments", "searches"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: to see that all of it works")
    given = parser.parse_args()
    console = Console(width=120 if not sys.stdout.isatty() else None)
    part = 10 if given.quick else 1
    if given.only in (None, "clocks"):
        local_clocks(console, steps=20_000 // part, rounds=2 * given.repeats + 1)
    if given.only in (None, "environments"):
        learners_environments(console, given.repeats, seconds=100 // part)
        vectors(console, given.repeats, count=64 // part)
    if given.only in (None, "searches"):
        searches(console, given.repeats, seeds=400 // part)


if __name__ == "__main__":
    main()
