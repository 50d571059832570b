"""CPython's own tests of asyncio, on a machine: ``python -m tests.programs.cpython`` counts which pass.

Left out are those that start processes or use TLS, which machines refuse, and a few whose reason is given here.
"""

from __future__ import annotations

import io
import sys
import tempfile
import unittest
from collections.abc import Iterator
from typing import Any

from worldline import Federation, Machine, run

MODULES = (
    *("test_streams", "test_sock_lowlevel", "test_server", "test_buffered_proto", "test_threads"),
    *("test_timeouts", "test_waitfor", "test_queues", "test_taskgroups", "test_locks", "test_staggered"),
    *("test_context", "test_futures", "test_pep492", "test_tasks"),
)
REFUSED = ("subprocess", "ssl", "SSL", "process", "PIPE", "pipe", "shell", "tls")
DIFFERENT = {
    "test_unhandled_exception": "the server hears of a connection 10 us later, not at once",
    "test_wait_closed_basic": "a connection is accepted 10 us after the client knows of it, not at once",
    "test_env_var_debug": "it starts a process",
    "test_unix_server_cleanup_prevented": "Unix sockets have no files",
    "test_unix_server_cleanup_gone": "Unix sockets have no files",
    "test_unix_server_cleanup_replaced": "Unix sockets have no files",
    "test_unix_server_addr_cleanup": "Unix sockets have no files",
    "test_unix_server_sock_cleanup": "Unix sockets have no files",
}

Counts = dict[str, Any]


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def is_left_out(case: unittest.TestCase) -> bool:
    name = case.id().rpartition(".")[2]
    return name in DIFFERENT or any(word in case.id() for word in REFUSED)


def counted(module: str) -> Counts:
    """Run a module's tests on a machine; return how many there were, and which failed."""
    found: Counts = {}

    def program() -> None:
        loaded = list(cases(unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.{module}")))
        chosen = unittest.TestSuite(case for case in loaded if not is_left_out(case))
        result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(chosen)
        found["run"] = result.testsRun - len(result.skipped)
        found["left out"] = len(loaded) - result.testsRun
        found["failed"] = [case.id() for case, _ in (*result.failures, *result.errors)]

    with tempfile.TemporaryDirectory() as folder:
        run(Federation({"machine": Machine(program, folder=folder)}, until="1h"))
    return found


def main() -> None:
    total = 0
    for module in sys.argv[1:] or MODULES:
        counts = counted(module)
        total += counts["run"] - len(counts["failed"])
        sys.stdout.write(
            f"{module}: {counts['run']} run, {counts['left out']} left out, {counts['failed'] or 'all pass'}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{total} pass\n")


if __name__ == "__main__":
    main()
