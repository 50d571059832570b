"""Looks after worker processes: they are started together, heard, and ended together, whatever happens.

Workers come from a fork server, a process that has Worldline loaded and nothing else, so that they start in
milliseconds and inherit no threads, locks or open files of the program's. Each has a pipe to the program. What they
are for is the business of `pool`, and of the farm below, which does many pieces of work.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection
from typing import Any, Generic, TypeVar

from worldline.model.errors import InternalError, LossError, Stuck, UsageError, WorldlineError
from worldline.processes.failures import raised_outside
from worldline.processes.forking import WorkerProcess, check_guarded, close_in_forks, fork_server
from worldline.processes.standard_output import guard_output

STOPPED_EVERY_S = 1.0
"""How often it is looked whether workers are stopped."""

LAST_WORDS_S = 5.0
"""How long it may take a process to end that is about to."""

FAILED, GONE = "failed", "gone"
_BROKEN = "broken"

Pipe = connection.Connection
Live = Callable[..., int | None]
Said = tuple[str, Any]
"""What kind of thing a worker says, and what. Of any worker it may be FAILED, with its `Failure`, or GONE."""


class Supervision:
    """Worker processes, by number. `describe(number)` says what one does: "worker 2, with a, b and c, was killed"."""

    def __init__(self, describe: Callable[[int], str]) -> None:
        self._describe = describe
        self._pipes: list[Pipe] = []
        self._looked = time.monotonic()
        self._stops: Counter[int] = Counter()  # How often in a row each was found stopped.
        self._start: Callable[[int], tuple[Pipe, WorkerProcess]] | None = None
        self.processes: list[WorkerProcess] = []

    def start(self, live: Live, tasks: Sequence[tuple[Any, ...]], preload: str) -> None:
        """Start a worker for each task, which does `live(pipe, *task)`, and exits with what that returns.

        A `WorldlineError` that `live` raises is what the worker says last. A task is unpacked before `live` is called,
        where nothing can be said about what goes wrong. The module to preload is one that all of that needs.
        """
        try:
            context = fork_server(preload)

            def begun(number: int) -> tuple[Pipe, WorkerProcess]:
                mine, theirs = context.Pipe()
                arguments = live, theirs, tasks[number]
                process = WorkerProcess(target=_live, args=arguments, name=f"worker {number}", daemon=True)
                with theirs:
                    process.start()
                return mine, process

            self._start = begun
            for number in range(len(tasks)):
                pipe, process = begun(number)
                self._pipes.append(pipe)
                self.processes.append(process)
        except (OSError, ValueError) as error:
            self.end()
            raise too_many(len(tasks), error) from error
        except BaseException:
            self.end()
            raise

    def start_again(self, number: int) -> None:
        """Start another worker in place of one that is gone, with the same task."""
        assert self._start is not None
        self._pipes[number].close()
        self.processes[number].end()
        self._pipes[number], self.processes[number] = self._start(number)

    def end(self, patience_s: float = 0.0) -> None:
        """Let all go, or make them, if they take longer than that."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            if patience_s:
                process.join(patience_s)
            process.end()

    def tell(self, number: int, what: object) -> None:
        """Say something to a worker. If it is gone, `hear` says so, after its last words."""
        with suppress(ConnectionError):
            self._pipes[number].send(what)

    def hear(self) -> Iterator[tuple[int, Said]]:
        """Wait a while; yield one thing that each worker has said who has said any."""
        ready = connection.wait(self._pipes, STOPPED_EVERY_S)
        self._look_for_stopped()
        for number, pipe in enumerate(self._pipes):
            if pipe in ready:
                yield number, self._heard(number)

    def _look_for_stopped(self) -> None:
        """Say on stderr which workers are stopped, once for each time. None is ended for it: it may yet go on."""
        clock = time.monotonic()
        if clock - self._looked < STOPPED_EVERY_S:
            return
        self._looked = clock
        for number, process in enumerate(self.processes):
            self._stops[number] = self._stops[number] + 1 if process.is_stopped() else 0
            if self._stops[number] == 2:  # Not the first time: all may have been stopped, and this one goes on last.
                print(
                    f"worldline: {self._named(number)}, is stopped, and the run waits for it"
                    f" (kill -CONT {process.pid} lets it go on)",
                    file=sys.stderr,
                    flush=True,
                )

    def last_words(self) -> Iterator[tuple[int, Said]]:
        """Yield all that workers have said already."""
        for number, pipe in enumerate(self._pipes):
            while pipe.poll():
                kind, what = self._heard(number)
                if kind == GONE:
                    break
                yield number, (kind, what)

    def loss(self, number: int, advice: str, at: int | None = None) -> WorldlineError:
        """Say what has become of a worker that is gone."""
        process = self.processes[number]
        problem = f"{self._named(number)}, {process.how_it_ended()}"
        return process.mistake() or LossError(problem, at=at, advice=advice, worker=number, exit_code=process.exitcode)

    def _heard(self, number: int) -> Said:
        try:
            kind, what = self._pipes[number].recv()
        except (EOFError, ConnectionError):
            return GONE, None
        if kind == _BROKEN:
            raise InternalError(f"worker {number} broke down: {what}")
        return kind, what

    def _named(self, number: int) -> str:
        return f"worker {number}, with {self._describe(number)}"


def too_many(count: int, error: Exception) -> UsageError:
    return UsageError(f"{count} workers can't be started: {error}", advice="use fewer")


def say(pipe: Pipe, kind: str, what: object) -> None:
    """Say the last thing that a worker has to say, if the program still hears."""
    try:
        pipe.send((kind, what))
    except OSError:
        return  # The program has seen enough, and is gone or about to end this process.


def _live(live: Live, pipe: Pipe, task: tuple[Any, ...]) -> None:
    """Be a worker: the whole life of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program is interrupted too, and ends the workers.
    guard_output()
    close_in_forks(pipe.close)
    me = os.getpid()
    exit_code = None
    try:
        exit_code = live(pipe, *task)
    except WorldlineError as error:
        say(pipe, FAILED, raised_outside(error))
    except (ConnectionError, EOFError):
        pass  # The program is gone, and none is left that could be told.
    except BaseException:
        if os.getpid() != me:  # Forked in an event; it has nothing to say here.
            raise
        say(pipe, _BROKEN, traceback.format_exc())
    finally:
        with suppress(WorldlineError):  # The program can't write either, and says so.
            sys.stdout.flush()
        pipe.close()
    if exit_code is not None:
        sys.exit(exit_code)


# -- A farm: worker processes that do pieces of work, each as soon as it can

Piece = TypeVar("Piece")
Done = TypeVar("Done")

_DONE = "done"
_EACH = 2  # One that it does, and one more, so that it needn't wait for the next.


class WorkerFarm(Generic[Piece, Done]):
    """So many workers, from their start to their end, whatever happens.

    Each makes what `begin(*given)` returns, once, and then `work(that, piece)` for every piece that it gets. These are
    functions of a module, which is loaded in the fork server. A `WorldlineError` that they raise comes back in place
    of what was done. `describe(piece)` says what a worker was doing that is lost.

    With `patience_s`, which says how long a piece may take, a worker that is lost is replaced, and so is one that takes
    longer, in code that no signal gets into: then a `LossError` or `Stuck` comes back in place of that one piece.
    """

    def __init__(
        self,
        count: int,
        begin: Callable[..., Any],
        given: tuple[Any, ...],
        work: Callable[[Any, Piece], Done],
        describe: Callable[[Piece], str],
        patience_s: Callable[[Piece], float] | None = None,
    ) -> None:
        self._task = begin, given, work
        self._describe = describe
        self._patience_s = patience_s
        self._begun_at = [0.0] * count  # When each has begun with the first piece that it has.
        self._is_late: set[int] = set()
        self._under_way: list[dict[int, Piece]] = [{} for _ in range(count)]
        self._workers = Supervision(self._described)

    def __enter__(self) -> WorkerFarm[Piece, Done]:
        check_guarded()
        self._workers.start(_help, [self._task] * len(self._under_way), self._task[0].__module__)
        return self

    def __exit__(self, *_: object) -> None:
        """End all: none waits for what doesn't matter any more."""
        self._workers.end()

    @property
    def has_room(self) -> bool:
        """Whether a worker can take another piece."""
        return any(len(each) < _EACH for each in self._under_way)

    def give(self, number: int, piece: Piece) -> None:
        """Let the worker do a piece of work that has the least to do."""
        worker = min(range(len(self._under_way)), key=lambda each: len(self._under_way[each]))
        if not self._under_way[worker]:
            self._begun_at[worker] = time.monotonic()
        self._under_way[worker][number] = piece
        self._workers.tell(worker, (number, piece))

    def take(self) -> list[tuple[int, Done | WorldlineError]]:
        """Wait until some pieces are done; return them by their numbers."""
        taken: list[tuple[int, Done | WorldlineError]] = []
        while not taken:
            for worker, (kind, said) in self._workers.hear():
                if kind == GONE:
                    taken += self._lost(worker)
                    continue
                if kind == FAILED:
                    raise said.error
                number, done = said
                del self._under_way[worker][number]
                self._begun_at[worker] = time.monotonic()
                taken.append((number, done))
            self._end_late()
        return taken

    def _lost(self, worker: int) -> list[tuple[int, Done | WorldlineError]]:
        """Replace a worker that is gone, or say that it is."""
        process = self._workers.processes[worker]
        process.join(LAST_WORDS_S)
        loss = self._workers.loss(worker, "was it killed, or out of memory?")
        pieces = self._under_way[worker]
        if self._patience_s is None or not pieces or isinstance(loss, UsageError):
            raise loss
        number = min(pieces)  # Pieces are done in their order, so this is the one at which it was.
        how = process.how_it_ended()
        if worker in self._is_late:
            error: WorldlineError = Stuck(f"it has taken more than {self._patience_s(pieces[number]):g} seconds")
        else:
            error = LossError(f"its process {how}", advice="was it killed, or out of memory?")
        del pieces[number]
        self._is_late.discard(worker)
        self._workers.start_again(worker)
        self._begun_at[worker] = time.monotonic()
        for each, piece in pieces.items():
            self._workers.tell(worker, (each, piece))
        return [(number, error)]

    def _end_late(self) -> None:
        """Kill workers whose piece has taken too long; that they are gone is heard next."""
        for worker, pieces in enumerate(self._under_way):
            if self._patience_s is None or not pieces or worker in self._is_late:
                continue
            if time.monotonic() - self._begun_at[worker] > self._patience_s(pieces[min(pieces)]):
                self._is_late.add(worker)
                self._workers.processes[worker].kill()

    def _described(self, worker: int) -> str:
        pieces = self._under_way[worker]
        return self._describe(pieces[min(pieces)]) if pieces else "nothing to do"


def _help(pipe: Pipe, begin: Callable[..., Any], given: tuple[Any, ...], work: Callable[[Any, Any], Any]) -> None:
    """Be one of the workers."""
    begun = begin(*given)
    while True:
        number, piece = pipe.recv()
        pipe.send((_DONE, (number, _done(work, begun, piece))))


def _done(work: Callable[[Any, Any], Any], begun: Any, piece: Any) -> Any:
    try:
        return work(begun, piece)
    except WorldlineError as error:
        return raised_outside(error).error
