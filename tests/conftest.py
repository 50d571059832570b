"""Settings for all tests: one Hypothesis profile with the same examples in every run; a summary of long searches."""

import gc
from collections import Counter

import pytest
from hypothesis import settings

from tests.effort import IS_SECOND_PASS

settings.register_profile("repeatable", max_examples=50, derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has nothing to do with what the second pass is for, and takes long, because it waits."""
    left_out = [item for item in items if IS_SECOND_PASS and item.get_closest_marker("once")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("once")]


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what the thousands of tests themselves are: many of them call it."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what long searches have met, added up over the processes that ran them."""
    met: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        met.update(
            {what: times for key, found in report.user_properties if key == "summary" for what, times in found.items()}
        )
    for what, times in met.most_common():
        terminalreporter.write_line(f"{times:>12,}  {what}")
