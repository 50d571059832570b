"""Settings for all tests: one Hypothesis profile with the same examples in every run; a summary of long searches."""

import gc
from collections import Counter

import pytest
from hypothesis import settings

settings.register_profile("repeatable", max_examples=30, derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


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
