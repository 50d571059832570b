"""The pytest plugin: options for simulated tests. It loads nothing else, and does nothing where there are none."""

from __future__ import annotations

from typing import Any

SEED, SEEDS, WORKERS = "--worldline-seed", "--worldline-seeds", "--worldline-workers"


def pytest_addoption(parser: Any) -> None:
    """Add the options of the command line."""
    group = parser.getgroup("worldline", "simulated tests (worldline)")
    group.addoption(SEED, type=int, metavar="SEED", help="Run simulated tests on this seed alone, as they are.")
    group.addoption(SEEDS, type=int, metavar="NUMBER", help="Try this many seeds of each simulated test.")
    group.addoption(
        WORKERS, type=int, default=1, metavar="NUMBER", help="Try the seeds of a simulated test in this many processes."
    )
