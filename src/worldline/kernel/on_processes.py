"""Runs a simulation in several processes on this machine."""

from __future__ import annotations

import time
from typing import NamedTuple

from worldline.history.merging import Merging
from worldline.history.observer import Observer
from worldline.history.telling import Call, Teller
from worldline.kernel.crew import Crew
from worldline.kernel.framing import tell_beginning
from worldline.kernel.model import Model, Part
from worldline.kernel.pacing import Pacing
from worldline.kernel.placement import Placement, place
from worldline.kernel.progress import Progress
from worldline.kernel.reports import part_told, settled
from worldline.kernel.result import Result
from worldline.kernel.share import Share, shares_of, unpacked_share
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError
from worldline.model.time import FOREVER
from worldline.workers.failures import Failure
from worldline.workers.forking import check_guarded
from worldline.workers.looks import LOOK_EVERY_S
from worldline.workers.mesh import PeerGone
from worldline.workers.peers import Peers
from worldline.workers.pool import Line, WorkerPool, some_of

_CALLS_AT_ONCE = 4_000


class Processes:
    """Runs a simulation in so many processes."""

    is_main = True

    def __init__(self, count: int, placement: Placement | None) -> None:
        self.count = count
        self.placement = placement

    def __str__(self) -> str:
        return f"processes({self.count})"

    def run(self, model: Model, end: int, progress: Progress, observer: Observer | None) -> Result:
        check_guarded()
        workers = place(self.placement, model.names, model.topology, self.count)
        lookahead = model.topology.lookahead(model.names, workers, self.count)
        is_observed = observer is not None
        tasks = [_Task(lookahead, end, share, is_observed) for share in shares_of(model, workers, self.count)]

        def describe(number: int) -> str:
            here = [name for name, worker in zip(model.names, workers, strict=True) if worker == number]
            return some_of(here, "no entities")

        merging = None
        if observer is not None:
            merging = Merging(self.count, observer)
            tell_beginning(observer, model)

        def told(number: int, batch: tuple[list[Call], int]) -> None:
            assert merging is not None
            merging.hear(number, *batch)

        with progress, WorkerPool(_work, tasks, describe) as pool:
            reports = pool.watch(progress.reached, told)
        return settled(model, reports, end, observer, merging)


class _Task(NamedTuple):
    """What a worker of the kernel is given."""

    lookahead: list[list[int]]
    end: int
    share: bytes
    is_observed: bool


def _work(number: int, channel: Peers, task: _Task, line: Line) -> Part | Failure:
    """Do a share of a simulation."""
    given = unpacked_share(task.share)
    worker = Worker(_loaded(given), given.workers, number)
    pacing = Pacing(number, task.lookahead)
    messenger = _Messenger(worker, line) if task.is_observed else None
    try:
        failure = Crew(worker, pacing, channel, number, len(task.lookahead)).run(task.end, line, messenger)
    except PeerGone as gone:
        gone.at = pacing.standings[gone.facts["worker"]].promise
        raise
    if messenger is not None:
        messenger.go(FOREVER if failure is None else failure.key[0])
    return failure if failure is not None else part_told(worker)


class _Messenger:
    """Brings the parent what a worker's entities do, every now and then."""

    def __init__(self, worker: Worker, line: Line) -> None:
        self._teller = worker.engine.observer = Teller(worker.key)
        self._line = line
        self._gone = time.monotonic()

    def __call__(self, reached: int) -> None:
        if len(self._teller) >= _CALLS_AT_ONCE or time.monotonic() - self._gone >= LOOK_EVERY_S:
            self.go(reached)

    def go(self, reached: int) -> None:
        self._gone = time.monotonic()
        self._line.tell((self._teller.take(), reached))


def _loaded(share: Share) -> Model:
    try:
        return share.model()
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the entities: {error}", advice="define their classes at the top level of a module"
        ) from error
