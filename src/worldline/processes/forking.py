"""Worker processes: forked from a server, and gone when the program is.

Forking the program itself isn't safe, since it may have threads; a fresh interpreter for each worker takes long. So
there is a fork server, a process of its own, and workers are its children.

Whatever happens to the program, nothing of this is left: every worker holds on to a lifeline of the program's
(`processes/lifeline.py`), and the server ends by itself when the program and all workers have. From its birth until it
holds on, a worker is tied to the server, and that to the program.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from importlib import import_module
from multiprocessing import forkserver, process, reduction, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, NoReturn

from worldline.model.errors import UsageError
from worldline.processes.lifeline import Lifeline, hold_on, tie_to_parent

# What happens in the fork server when it has just been started, and in each worker when it has just been forked.
#
# Importing it does that, since importing modules is all that a fork server can be asked for; anywhere else it does
# nothing.

PROGRAM = "WORLDLINE_FORK_SERVER_OF"
"""The process that the server belongs to; 0, if the server mustn't be tied to it."""


def _tie_workers(server: int) -> None:
    """See to it that processes that the server forks end with it."""
    is_worker = False

    def tie() -> None:
        nonlocal is_worker
        if not is_worker:  # What a worker itself forks isn't ours.
            is_worker = True
            tie_to_parent(server)

    os.register_at_fork(after_in_child=tie)


_program = os.environ.pop(PROGRAM, None)
if _program is not None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program is interrupted too, and ends all of them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if os.getppid() == int(_program):
        tie_to_parent(int(_program))
    import_module("ctypes")  # Tying needs it, and loading it in each worker would take longer than all the rest.
    _tie_workers(os.getpid())


_SAFE_PATH = "PYTHONSAFEPATH"
_environment = threading.Lock()  # It belongs to all, and runs may begin in several threads.
_UNGUARDED = 64  # The exit code of a worker that was about to run the whole script again.


def check_guarded() -> None:
    """End this process if it is a worker whose script would start workers: the parent tells. To be called first."""
    if getattr(process.current_process(), "_inheriting", False):
        os._exit(_UNGUARDED)


class WorkerProcess(ForkServerProcess):
    """A process that is killed when it is let go, by `end` or because the program is gone."""

    _end: Any  # In the worker.

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._line = Lifeline()
        self._let_go = weakref.finalize(self, self._line.let_go)

    def start(self) -> None:
        try:
            super().start()
        finally:
            self._line.hand_over()

    def end(self) -> None:
        """Make it end, whatever it is doing, and however far its start was."""
        self._let_go()
        if self.pid is not None:  # Otherwise starting it was broken off.
            self.kill()
            self.join()
            self.close()

    def is_stopped(self) -> bool:
        """Whether it was stopped, as far as the system lets us know."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state == "T"

    def how_it_ended(self) -> str:
        """Say what has become of it, after it has ended."""
        if self.exitcode is None:
            return "is gone"
        if self.exitcode < 0:
            return f"was killed by {signal.Signals(-self.exitcode).name}"
        return f"ended by itself with exit code {self.exitcode}"

    def mistake(self) -> UsageError | None:
        """Return what the user has to change, if it ended for that."""
        if self.exitcode != _UNGUARDED:
            return None
        return UsageError(
            "the script runs the simulation whenever it is loaded, and every worker loads it",
            advice="put what starts the run under: if __name__ == '__main__':",
        )

    def run(self) -> None:
        hold_on(self._end.detach())
        worker = os.getpid()
        try:
            super().run()
        finally:
            if os.getpid() != worker:
                end_stray(sys.exc_info()[1])

    def __getstate__(self) -> dict[str, Any]:
        """Return what goes to the worker: its end of the lifeline in place of the program's."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_line", "_let_go")}
        return {**kept, "_end": reduction.DupFd(self._line.end)}


def close_in_forks(close: Callable[[], object]) -> None:
    """Let processes that a worker's code forks say nothing: it would be taken for the worker's word."""
    os.register_at_fork(after_in_child=close)


def end_stray(error: BaseException | None) -> NoReturn:
    """End a process that the model has forked in an event, and that has come back from it: only the worker goes on."""
    if not isinstance(error, SystemExit):
        print(
            "worldline: a process that was forked in an event has come back from it, and is ended"
            " (end it in the event: os._exit(0))",
            file=sys.stderr,
        )
    sys.stdout.flush()
    sys.stderr.flush()
    code = error.code if isinstance(error, SystemExit) else 1
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def fork_server(preload: str) -> ForkServerContext:
    """Return what makes pipes to workers, with their server running; if it was just started, it loads the module.

    The server is an interpreter of its own, and would look for Python's own modules in the current folder first: a
    user's queue.py there would be the end of it.
    """
    context = ForkServerContext()
    context.set_forkserver_preload([preload])
    # It may be tied to this process as long as this thread lives, and only the main one does to the end.
    is_main = threading.current_thread() is threading.main_thread()
    told = {_SAFE_PATH: "1", PROGRAM: str(os.getpid() if is_main else 0)}
    with _environment:
        before = {name: os.environ.get(name) for name in told}
        os.environ.update(told)
        # Ctrl-C reaches the server too, which isn't ready to ignore it until it has begun: see above.
        resource_tracker.ensure_running()  # Here, since it unblocks what it is started with.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
    return context
