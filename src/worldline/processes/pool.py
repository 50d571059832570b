"""The worker processes of one run on this machine, whatever their work is.

The program only watches. Each two workers are joined by a socket of their own, and each says on its pipe to the program
how far it is, whatever else its work has to tell, and what came of it.
"""

from __future__ import annotations

import pickle
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from multiprocessing import connection
from pathlib import Path
from typing import Any, Generic, TypeVar

from worldline.files.loading import load_module, loaded_files
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.processes.failures import Failure, first_error, told
from worldline.processes.forking import close_in_forks
from worldline.processes.mesh import Mesh, PeerGone
from worldline.processes.status_timer import StatusTimer
from worldline.processes.supervision import FAILED, GONE, LAST_WORDS_S, Pipe, Supervision, say, too_many

Task = TypeVar("Task")
Report = TypeVar("Report")

# What a worker says: how far it is, what its work has to tell, its report, or whom it misses.
_REACHED, _TOLD, _DONE, _LOST = "reached", "told", "done", "lost"
_BEREFT = 65  # The exit code of a worker that has ended because another had.
_NAMES_SHOWN = 3


def some_of(names: Sequence[str], without: str) -> str:
    """Return the first names and how many more there are; `without`, if there are none."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN]) or without}{more}"


def check_loadable(things: Iterable[object], what: str) -> None:
    """Refuse classes that workers can't load, since their program is no file."""
    main = sys.modules.get("__main__")
    if not Path(getattr(main, "__file__", None) or "").is_file() and any(
        type(each).__module__ == "__main__" for each in things
    ):
        raise ConfigurationError(
            "workers can't load what was typed in, or comes from a pipe", advice=f"put {what} into a file"
        )


def loaded(data: bytes, what: str) -> Any:
    """Return what was pickled for this worker; refuse what can't be found here."""
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError) as error:
        advice = f"define their {'functions' if ' or ' in what else 'classes'} at the top level of a module"
        raise ConfigurationError(f"a worker can't load {what}: {error}", advice=advice) from error


class WorkerLine(StatusTimer):
    """A worker's line to the program: it says how far it is, and whatever else its work has to tell during the run."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(lambda now, events: pipe.send((_REACHED, (now, events))))
        self._pipe = pipe

    def tell(self, what: object) -> None:
        self._pipe.send((_TOLD, what))


class WorkerPool(Generic[Task, Report]):
    """Workers, one for each task, from their start to their end, whatever happens.

    In its process each does `work(number, mesh, task, line)` and reports what that returns: anything that can be
    pickled; a `Failure`, if it is the model that has failed. `work` is found by its module, which the fork server loads
    beforehand. A task is unpacked before that, where nothing can be said about what goes wrong; so what users' code has
    a part in is a task's as bytes, for `work` to unpack. Users' files that are loaded here are loaded there first.

    `work` lets out what the mesh and the line raise. If that is `PeerGone`, `work` may give it the time that the other
    one is known to have reached, as its `at`. A `WorldlineError` of its own is the run's failure, before any other;
    everything else is a breakdown.

    `describe(number)` says what was on a worker that is lost, as in "worker 2, with a, b, c and 5 more, was killed".
    """

    def __init__(
        self,
        work: Callable[[int, Mesh, Task, WorkerLine], Report | Failure],
        tasks: Sequence[Task],
        describe: Callable[[int], str],
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._count = len(tasks)
        self._workers = Supervision(describe)
        self._reached = [(0, 0)] * self._count
        self._reports: dict[int, Report | Failure] = {}
        self._is_over = False

    def __enter__(self) -> WorkerPool[Task, Report]:
        ends: list[dict[int, socket.socket]] = [{} for _ in range(self._count)]
        try:
            # All of them first: if there are too few open files for that, nothing has been started yet.
            for here, there in combinations(range(self._count), 2):
                ends[here][there], ends[there][here] = socket.socketpair()
            files = loaded_files()
            tasks = [(self._work, files, number, task, ends[number]) for number, task in enumerate(self._tasks)]
            self._workers.start(_take_part, tasks, self._work.__module__)
        except OSError as error:
            raise too_many(self._count, error) from error
        finally:
            for sockets in ends:
                for end in sockets.values():
                    end.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.end(LAST_WORDS_S if self._is_over else 0.0)

    def watch(
        self, reached: Callable[[int, int], object], told: Callable[[int, Any], object] | None = None
    ) -> list[Report | Failure]:
        """Wait until all have reported; return the reports, by number. If one is lost, say which and why.

        `reached(time, events)` is told how far all are together, and `told(number, what)` what a worker has told
        meanwhile by its line. What they raise breaks the run off.
        """
        while len(self._reports) < self._count:
            for number, (kind, said) in self._workers.hear():
                if kind == GONE:
                    raise self._end_of_run()
                if kind == _LOST:
                    other, at = said
                    self._reached[other] = (max(at, self._reached[other][0]), self._reached[other][1])
                    raise self._end_of_run(other)
                self._note(number, kind, said)
                if kind == _REACHED:
                    # A worker that has nothing to do says nothing, and doesn't hold the others back.
                    now = min((now for now, _ in self._reached if now), default=0)
                    reached(now, sum(events for _, events in self._reached))
                elif kind == _TOLD and told is not None:
                    told(number, said)
        self._is_over = True
        return [self._reports[number] for number in range(self._count)]

    def _note(self, number: int, kind: str, said: Any) -> None:
        if kind == _REACHED:
            self._reached[number] = said
        elif kind in (_DONE, FAILED):
            self._reports[number] = said

    def _end_of_run(self, number: int | None = None) -> WorldlineError:
        """Say why a run can't go on in which a worker is gone: because of what it has said, or it is lost."""
        for speaker, (kind, said) in self._workers.last_words():
            self._note(speaker, kind, said)
        return first_error(self._reports[each] for each in sorted(self._reports)) or self._loss(number)

    def _loss(self, number: int | None) -> WorldlineError:
        """Say what has become of a worker that is gone: that one, unless it went because another had."""
        lost = self._culprit(list(range(self._count)) if number is None else [number, *range(self._count)])
        at = self._reached[lost][0] or None  # Unknown, if it has never said.
        return self._workers.loss(lost, "the run is broken off", at)

    def _culprit(self, suspects: list[int]) -> int:
        """Return the first of the suspects that has ended, and not because another had."""
        processes = self._workers.processes
        until = time.monotonic() + LAST_WORDS_S
        while True:
            for number in suspects:
                if processes[number].exitcode not in (None, _BEREFT):
                    return number
            running = [process.sentinel for process in processes if process.exitcode is None]
            if not connection.wait(running, until - time.monotonic()):
                return suspects[0]


def _take_part(
    pipe: Pipe,
    work: Callable[[int, Mesh, Any, WorkerLine], Any],
    files: Sequence[Path],
    number: int,
    task: Any,
    sockets: dict[int, socket.socket],
) -> int | None:
    """Be one of the workers. Its sockets end with its process: by then it has said why, so it isn't taken for lost."""
    mesh = Mesh(sockets, pipe)
    close_in_forks(mesh.close)
    try:
        for file in files:
            load_module(file)
        report = work(number, mesh, task, WorkerLine(pipe))
        pipe.send((_DONE, told(report)))
        mesh.linger()
    except PeerGone as gone:
        say(pipe, _LOST, (gone.facts["worker"], gone.at or 0))
        return _BEREFT
    return None
