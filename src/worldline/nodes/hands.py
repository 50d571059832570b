"""Processes that do pieces of work for whoever is searching, each as soon as it can."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from itertools import chain
from multiprocessing import connection
from typing import Any, Generic, TypeVar

from worldline.model.errors import InternalError, LossError, UsageError, WorldlineError
from worldline.workers.failures import raised_outside
from worldline.workers.forking import WorkerProcess, check_guarded, close_in_forks, fork_server
from worldline.workers.stops import LOOK_EVERY_S, Stops

Piece = TypeVar("Piece")
Done = TypeVar("Done")

_EACH = 2  # One that it does, and one more, so that it needn't wait for the next.
_LAST_WORDS_S = 5.0


class Hands(Generic[Piece, Done]):
    """So many processes, from their start to their end, whatever happens.

    Each makes what `begin(*given)` returns, once, and then `work(that, piece)` for every piece that it gets. These are
    functions of a module, which is loaded in the fork server. A `WorldlineError` that they raise comes back in place
    of what was done. `describe(piece)` says what a process was doing that is lost.
    """

    def __init__(
        self,
        count: int,
        begin: Callable[..., Any],
        given: tuple[Any, ...],
        work: Callable[[Any, Piece], Done],
        describe: Callable[[Piece], str],
    ) -> None:
        self._count = count
        self._arguments = begin, given, work
        self._describe = describe
        self._processes: list[WorkerProcess] = []
        self._pipes: list[connection.Connection[Any, Any]] = []
        self._under_way: list[dict[int, Piece]] = [{} for _ in range(count)]
        self._stops = Stops(self._named)

    def __enter__(self) -> Hands[Piece, Done]:
        check_guarded()
        try:
            context = fork_server(self._arguments[0].__module__)
            for _ in range(self._count):
                mine, theirs = context.Pipe()
                self._pipes.append(mine)
                process = context.Process(target=_help, args=(theirs, *self._arguments), daemon=True)
                self._processes.append(process)
                process.start()
                theirs.close()
        except OSError as error:
            self.__exit__()
            raise UsageError(f"{self._count} processes can't be started: {error}", advice="use fewer") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everybody: nobody waits for what doesn't matter any more."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.end()

    @property
    def has_room(self) -> bool:
        """Whether somebody can take another piece."""
        return any(len(each) < _EACH for each in self._under_way)

    def give(self, number: int, piece: Piece) -> None:
        """Let somebody do a piece of work, who has the least to do."""
        hand = min(range(self._count), key=lambda each: len(self._under_way[each]))
        self._under_way[hand][number] = piece
        try:
            self._pipes[hand].send((number, piece))
        except ConnectionError:
            raise self._loss(hand) from None

    def take(self) -> list[tuple[int, Done | WorldlineError]]:
        """Wait until some pieces are done; return them by their numbers."""
        while not (ready := connection.wait(self._pipes, LOOK_EVERY_S)):
            self._stops.look(self._processes)
        self._stops.look(self._processes)
        return list(chain.from_iterable(self._taken(hand) for hand in range(self._count) if self._pipes[hand] in ready))

    def _taken(self, hand: int) -> list[tuple[int, Done | WorldlineError]]:
        try:
            number, done = self._pipes[hand].recv()
        except (EOFError, ConnectionError):
            raise self._loss(hand) from None
        if number is None:
            raise done
        del self._under_way[hand][number]
        return [(number, done)]

    def _loss(self, hand: int) -> WorldlineError:
        process = self._processes[hand]
        process.join(_LAST_WORDS_S)
        problem = f"{self._named(hand)}, {process.how_it_ended()}"
        return process.mistake() or LossError(problem, advice="was it killed, or out of memory?")

    def _named(self, hand: int) -> str:
        pieces = self._under_way[hand]
        doing = f", with {self._describe(pieces[min(pieces)])}" if pieces else ""
        return f"process {hand} of the search{doing}"


def _help(
    pipe: connection.Connection[Any, Any],
    begin: Callable[..., Any],
    given: tuple[Any, ...],
    work: Callable[[Any, Any], Any],
) -> None:
    """Be one of the processes, for its whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program is interrupted too, and ends this.
    close_in_forks(pipe)
    me = os.getpid()
    try:
        begun = begin(*given)
        while True:
            number, piece = pipe.recv()
            pipe.send((number, _done(work, begun, piece)))
    except (EOFError, ConnectionError):
        return  # The program has seen enough.
    except WorldlineError as error:
        pipe.send((None, raised_outside(error).error))
    except BaseException:
        if os.getpid() != me:  # Forked in an event; it has nothing to say here.
            raise
        pipe.send((None, InternalError(f"a process of the search broke down: {traceback.format_exc()}")))


def _done(work: Callable[[Any, Any], Any], begun: Any, piece: Any) -> Any:
    try:
        return work(begun, piece)
    except WorldlineError as error:
        return raised_outside(error).error
