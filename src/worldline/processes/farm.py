"""Worker processes that do pieces of work for whoever has many of them, each as soon as it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from worldline.model.errors import WorldlineError
from worldline.processes.failures import raised_outside
from worldline.processes.forking import check_guarded
from worldline.processes.supervision import FAILED, GONE, LAST_WORDS_S, Pipe, Supervision

Piece = TypeVar("Piece")
Done = TypeVar("Done")

_DONE = "done"
_EACH = 2  # One that it does, and one more, so that it needn't wait for the next.


class WorkerFarm(Generic[Piece, Done]):
    """So many workers, from their start to their end, whatever happens.

    Each makes what `begin(*given)` returns, once, and then `work(that, piece)` for every piece that it gets. These are
    functions of a module, which is loaded in the fork server. A `WorldlineError` that they raise comes back in place
    of what was done. `describe(piece)` says what a worker was doing that is lost.
    """

    def __init__(
        self,
        count: int,
        begin: Callable[..., Any],
        given: tuple[Any, ...],
        work: Callable[[Any, Piece], Done],
        describe: Callable[[Piece], str],
    ) -> None:
        self._task = begin, given, work
        self._describe = describe
        self._under_way: list[dict[int, Piece]] = [{} for _ in range(count)]
        self._workers = Supervision(self._described)

    def __enter__(self) -> WorkerFarm[Piece, Done]:
        check_guarded()
        self._workers.start(_help, [self._task] * len(self._under_way), self._task[0].__module__)
        return self

    def __exit__(self, *_: object) -> None:
        """End everybody: nobody waits for what doesn't matter any more."""
        self._workers.end()

    @property
    def has_room(self) -> bool:
        """Whether somebody can take another piece."""
        return any(len(each) < _EACH for each in self._under_way)

    def give(self, number: int, piece: Piece) -> None:
        """Let somebody do a piece of work, who has the least to do."""
        worker = min(range(len(self._under_way)), key=lambda each: len(self._under_way[each]))
        self._under_way[worker][number] = piece
        self._workers.tell(worker, (number, piece))

    def take(self) -> list[tuple[int, Done | WorldlineError]]:
        """Wait until some pieces are done; return them by their numbers."""
        taken: list[tuple[int, Done | WorldlineError]] = []
        while not taken:
            for worker, (kind, said) in self._workers.hear():
                if kind == GONE:
                    self._workers.processes[worker].join(LAST_WORDS_S)
                    raise self._workers.loss(worker, "was it killed, or out of memory?")
                if kind == FAILED:
                    raise said.error
                number, done = said
                del self._under_way[worker][number]
                taken.append((number, done))
        return taken

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
