"""The fork server: what it is told by the environment stays nowhere, also if runs begin in several threads at once."""

from __future__ import annotations

import os
import threading
from multiprocessing import forkserver

import pytest

from worldline.processes.forking import fork_server


def test_runs_that_begin_at_once_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    start = forkserver.ensure_running
    second_is_there, first_is_done = threading.Event(), threading.Event()
    second = threading.Thread(target=fork_server, args=("worldline.kernel.distributed",))

    def overlap() -> None:
        start()
        if threading.current_thread() is second:
            second_is_there.set()
            first_is_done.wait(10)
        else:
            second.start()
            second_is_there.wait(0.2)  # It mustn't be, as long as this one is here.

    monkeypatch.setattr(forkserver, "ensure_running", overlap)
    before = dict(os.environ)
    fork_server("worldline.kernel.distributed")
    first_is_done.set()
    second.join()
    assert second_is_there.is_set()
    assert dict(os.environ) == before
