"""Settings for all tests: one Hypothesis profile with the same examples in every run; a summary of long searches."""

import gc
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

settings.register_profile("repeatable", max_examples=30, derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
# It takes some examples from the constants of what is loaded, which depends on the tests that the process ran before;
# and it reads all our files for that.
providers._get_local_constants = Constants  # type: ignore[attr-defined, assignment]


@pytest.fixture(scope="session", autouse=True)
def _runs_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let nobody find the runs of tests among the user's own, nor tests those of others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _signals_as_usual() -> None:
    """Let tests and what they start hear signals, wherever tests are started: nohup, cron and scripts ignore some.

    A process ignores what its parent ignores, but not what its parent handles. So where a closed terminal is not to end
    the tests, it still doesn't.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual.get(number, lambda *_: None))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a long test that `make test-long` wouldn't find: it reads only files that have these words."""
    if item.get_closest_marker("long") is not None and "mark.long" not in item.path.read_text(encoding="utf-8"):
        raise pytest.UsageError(f"{item.nodeid} is long: write pytest.mark.long in its file")


def pytest_collection() -> None:
    """Let the garbage collector rest while tests are collected: nothing of that is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let it skip what the thousands of tests themselves are: many of them call it."""
    _keep_what_is_left()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let it skip what earlier files have loaded and cached, too, which becomes far more than any test makes."""
    if nextitem is None or nextitem.path != item.path:
        _keep_what_is_left()


def pytest_sessionfinish() -> None:
    """Let what was kept and is garbage by now still be found, with its warnings."""
    gc.unfreeze()


def _keep_what_is_left() -> None:
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
