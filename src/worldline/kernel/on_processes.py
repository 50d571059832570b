"""Runs a simulation in several processes on this machine."""

from __future__ import annotations

from typing import NamedTuple

from worldline.kernel.crew import Crew
from worldline.kernel.model import Model, Part
from worldline.kernel.pacing import Pacing
from worldline.kernel.placement import Placement, place
from worldline.kernel.progress import Progress
from worldline.kernel.reports import part_told, settled
from worldline.kernel.result import Result
from worldline.kernel.share import Share, shares_of, unpacked_share
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError
from worldline.workers.failures import Failure
from worldline.workers.forking import check_guarded
from worldline.workers.looks import Look
from worldline.workers.mesh import PeerGone
from worldline.workers.peers import Peers
from worldline.workers.pool import WorkerPool, some_of


class Processes:
    """Runs a simulation in so many processes."""

    is_main = True

    def __init__(self, count: int, placement: Placement | None) -> None:
        self.count = count
        self.placement = placement

    def __str__(self) -> str:
        return f"processes({self.count})"

    def run(self, model: Model, end: int, progress: Progress) -> Result:
        check_guarded()
        workers = place(self.placement, model.names, model.topology, self.count)
        lookahead = model.topology.lookahead(model.names, workers, self.count)
        tasks = [_Task(lookahead, end, share) for share in shares_of(model, workers, self.count)]

        def describe(number: int) -> str:
            here = [name for name, worker in zip(model.names, workers, strict=True) if worker == number]
            return some_of(here, "no entities")

        with progress, WorkerPool(_work, tasks, describe) as pool:
            reports = pool.watch(progress.reached)
        return settled(model, reports, end)


class _Task(NamedTuple):
    """What a worker of the kernel is given."""

    lookahead: list[list[int]]
    end: int
    share: bytes


def _work(number: int, channel: Peers, task: _Task, look: Look) -> Part | Failure:
    """Do a share of a simulation."""
    given = unpacked_share(task.share)
    worker = Worker(_loaded(given), given.workers, number)
    pacing = Pacing(number, task.lookahead)
    try:
        failure = Crew(worker, pacing, channel, number, len(task.lookahead)).run(task.end, look)
    except PeerGone as gone:
        gone.at = pacing.standings[gone.facts["worker"]].promise
        raise
    return failure if failure is not None else part_told(worker)


def _loaded(share: Share) -> Model:
    try:
        return share.model()
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the entities: {error}", advice="define their classes at the top level of a module"
        ) from error
