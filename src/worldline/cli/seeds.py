"""Many seeds on the screen: how far a search is, and who interrupts it is told that."""

from __future__ import annotations

import os
from collections.abc import Callable

from worldline.cli.bar import bar
from worldline.model.errors import Interrupted
from worldline.search.searching import Report


def watched(search: Callable[[Callable[[int], None]], Report], seeds: int) -> Report:
    """Run a search of so many seeds; it is given what to tell how many it has tried."""
    done = 0
    with bar("seeds", seeds) as show:

        def count(tried: int) -> None:
            nonlocal done
            done = tried
            if show is not None:
                show(tried)

        try:
            return search(count)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {done:,} of {seeds:,} seeds") from None


def processors() -> int:
    """Return how many processors there are for us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
