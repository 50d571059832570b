"""The worker processes of one run on this machine, whatever their work is.

The parent only watches. Workers come from a fork server, a process that has Worldline loaded and nothing else, so that
they start in milliseconds and inherit no threads, locks or open files of the parent's. Each two are joined by a socket
of their own, and each by a pipe to the parent, on which it says how far it is and what came of it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import combinations
from multiprocessing import connection
from typing import Any, Generic, TypeVar

from worldline.model.errors import InternalError, LossError, UsageError, WorldlineError
from worldline.workers.failures import Failure, first_error, raised_outside, told
from worldline.workers.forking import WorkerProcess, close_in_forks, fork_server
from worldline.workers.looks import Look, Rhythm
from worldline.workers.mesh import Mesh, PeerGone
from worldline.workers.stops import LOOK_EVERY_S, Stops

Task = TypeVar("Task")
Report = TypeVar("Report")

_LAST_WORDS_S = 5.0
_BEREFT = 65  # The exit code of a worker that has ended because another had.
_NAMES_SHOWN = 3


def some_of(names: Sequence[str], nobody: str) -> str:
    """Return the first names and how many more there are; `nobody`, if there are none."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN]) or nobody}{more}"


class WorkerPool(Generic[Task, Report]):
    """Workers, one for each task, from their start to their end, whatever happens.

    In its process each does `work(number, mesh, task, look)` and reports what that returns: anything that can be
    pickled; a `Failure`, if it is the model that has failed. `work` is found by its module, which the fork server loads
    beforehand. A task is unpacked before that, where nothing can be said about what goes wrong; so what users' code has
    a part in is a task's as bytes, for `work` to unpack.

    `work` lets out what the mesh and `look` raise. If that is `PeerGone`, `work` may give it the time that the other
    one is known to have reached, as its `at`. A `WorldlineError` of its own is the run's failure, before any other;
    everything else is a breakdown.

    `describe(number)` says what was on a worker that is lost, as in "worker 2, with a, b, c and 5 more, was killed".
    """

    def __init__(
        self,
        work: Callable[[int, Mesh, Task, Look], Report | Failure],
        tasks: Sequence[Task],
        describe: Callable[[int], str],
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._describe = describe
        self._count = len(tasks)
        self._processes: list[WorkerProcess] = []
        self._pipes: list[connection.Connection] = []
        self._reached = [(0, 0)] * self._count
        self._reports: dict[int, Report | Failure] = {}
        self._is_over = False

    def __enter__(self) -> WorkerPool[Task, Report]:
        ends: list[dict[int, socket.socket]] = [{} for _ in range(self._count)]
        try:
            # All of them first: if there are too few open files for that, nothing has been started yet.
            for here, there in combinations(range(self._count), 2):
                ends[here][there], ends[there][here] = socket.socketpair()
            context = fork_server(self._work.__module__)
            for number, task in enumerate(self._tasks):
                mine, theirs = context.Pipe()
                self._pipes.append(mine)
                arguments = (self._work, number, task, theirs, ends[number])
                process = context.Process(target=_live, args=arguments, name=f"worker {number}", daemon=True)
                self._processes.append(process)
                process.start()
                theirs.close()
                for end in ends[number].values():
                    end.close()
        except (OSError, ValueError) as error:
            self.__exit__()
            raise UsageError(f"{self._count} workers can't be started: {error}", advice="use fewer") from error
        except BaseException:
            self.__exit__()
            raise
        finally:
            for sockets in ends:
                for end in sockets.values():
                    end.close()
        return self

    def __exit__(self, *_: object) -> None:
        """Let everybody go, or make them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            if self._is_over:
                process.join(_LAST_WORDS_S)
            process.end()

    def watch(self, reached: Callable[[int, int], object]) -> list[Report | Failure]:
        """Wait until all have reported; return the reports, by number. If one is lost, say which and why.

        `reached(time, events)` is told how far all are together. What it raises breaks the run off.
        """
        stops = Stops(self._named)
        while len(self._reports) < self._count:
            ready = connection.wait(self._pipes, LOOK_EVERY_S)
            stops.look(self._processes)
            for number, pipe in enumerate(self._pipes):
                if pipe not in ready:
                    continue
                try:
                    kind, said = pipe.recv()
                except (EOFError, ConnectionError):
                    raise self._end_of_run() from None
                if kind == "reached":
                    self._reached[number] = said
                    now, events = min(now for now, _ in self._reached), sum(events for _, events in self._reached)
                    reached(now, events)
                elif kind == "lost":
                    other, at = said
                    self._reached[other] = (max(at, self._reached[other][0]), self._reached[other][1])
                    raise self._end_of_run(other)
                elif kind == "broken":
                    raise _breakdown(number, said)
                else:
                    self._reports[number] = said
        self._is_over = True
        return [self._reports[number] for number in range(self._count)]

    def _end_of_run(self, number: int | None = None) -> WorldlineError:
        """Say why a run can't go on in which somebody is gone: because of what that one has said, or it is lost."""
        for speaker, pipe in enumerate(self._pipes):
            try:
                while pipe.poll():
                    kind, said = pipe.recv()
                    if kind == "broken":
                        return _breakdown(speaker, said)
                    if kind == "done":
                        self._reports[speaker] = said
                    elif kind == "reached":
                        self._reached[speaker] = said
            except (EOFError, ConnectionError):
                continue
        return first_error(self._reports[each] for each in sorted(self._reports)) or self._loss(number)

    def _culprit(self, suspects: list[int]) -> int:
        """Return the first of the suspects that has ended, and not because another had."""
        until = time.monotonic() + _LAST_WORDS_S
        while True:
            for number in suspects:
                if self._processes[number].exitcode not in (None, _BEREFT):
                    return number
            running = [process.sentinel for process in self._processes if process.exitcode is None]
            if not connection.wait(running, until - time.monotonic()):
                return suspects[0]

    def _loss(self, number: int | None = None) -> WorldlineError:
        """Say what has become of a worker that is gone: that one, unless it went because another had."""
        suspects = list(range(self._count)) if number is None else [number, *range(self._count)]
        number = self._culprit(suspects)
        process = self._processes[number]
        problem = f"{self._named(number)}, {process.how_it_ended()}"
        at = self._reached[number][0] or None  # Nobody knows, if it has never said.
        return process.mistake() or LossError(
            problem, at=at, advice="the run is broken off", worker=number, exit_code=process.exitcode
        )

    def _named(self, number: int) -> str:
        return f"worker {number}, with {self._describe(number)}"


def _breakdown(number: int, trace: str) -> InternalError:
    return InternalError(f"worker {number} broke down: {trace}")


def _live(
    work: Callable[[int, Mesh, Any, Look], Any],
    number: int,
    task: Any,
    pipe: connection.Connection,
    sockets: dict[int, socket.socket],
) -> None:
    """Be a worker: the whole life of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent is interrupted too, and ends the workers.
    mesh = Mesh(sockets, pipe)
    close_in_forks(mesh, pipe)
    me = os.getpid()
    try:
        report = work(number, mesh, task, Rhythm(lambda now, events: pipe.send(("reached", (now, events)))))
        pipe.send(("done", told(report)))
        mesh.linger()
    except PeerGone as gone:
        _say(pipe, ("lost", (gone.facts["worker"], gone.at or 0)))
        sys.exit(_BEREFT)
    except WorldlineError as error:
        _say(pipe, ("done", raised_outside(error)))
    except (BrokenPipeError, EOFError):
        pass  # The parent is gone, and nobody is left who could be told.
    except BaseException:
        if os.getpid() != me:  # Forked in an event; it has nothing to say here.
            raise
        _say(pipe, ("broken", traceback.format_exc()))
    finally:
        mesh.close()
        pipe.close()


def _say(pipe: connection.Connection, what: object) -> None:
    try:
        pipe.send(what)
    except OSError:
        return  # The parent has seen enough, and is gone or about to end this process.
