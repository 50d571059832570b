"""Runs a simulation on the ranks of MPI: every rank runs the whole script, and keeps its share of the entities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from worldline.history.merging import merged
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
from worldline.kernel.worker import Worker
from worldline.model.errors import UsageError
from worldline.model.time import FOREVER
from worldline.workers.failures import Failure
from worldline.workers.rank_group import RankGroup, gathered

Report = TypeVar("Report")


class Ranks:
    """Runs a simulation on the ranks of MPI's world."""

    def __init__(self, placement: Placement | None, patience_s: float) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise UsageError(f"MPI can't be used: {error}", advice="pip install 'worldline[mpi]'") from error
        self._mpi: Any = MPI
        self.placement = placement
        self._patience_s = patience_s

    @property
    def is_main(self) -> bool:
        return bool(self._mpi.COMM_WORLD.Get_rank() == 0)

    def __str__(self) -> str:
        return f"mpi with {self._mpi.COMM_WORLD.Get_size()} ranks"

    def run(self, model: Model, end: int, progress: Progress, observer: Observer | None) -> Result:
        batches: list[tuple[list[Call], int]] = []

        def work(ranks: RankGroup) -> Part | Failure:
            workers = ranks.agreed(lambda: place(self.placement, model.names, model.topology, ranks.count))
            ranks.check_equal((model.outline(), workers, end))
            worker = ranks.agreed(lambda: Worker(model, workers, ranks.rank))
            pacing = Pacing(ranks.rank, model.topology.lookahead(model.names, workers, ranks.count))
            teller = Teller(worker.key) if any(ranks.exchanged(observer is not None)) else None
            worker.engine.observer = teller
            with progress:
                failure = Crew(worker, pacing, ranks.peers, ranks.rank, ranks.count).run(end, progress.look)
            if teller is not None:
                batches.extend(ranks.exchanged((teller.take(), FOREVER if failure is None else failure.key[0])))
            return failure if failure is not None else part_told(worker)

        if observer is not None:
            tell_beginning(observer, model)
        reports = self.gathered(work)
        merging = None if observer is None else merged(observer, batches)
        return settled(model, reports, end, observer, merging)

    def gathered(self, work: Callable[[RankGroup], Report | Failure]) -> list[Report | Failure]:
        """Do the work of this rank, while all others do theirs; return what each reports, on all of them.

        A report is anything that can be pickled; a `Failure`, if it is the model that has failed. A `WorldlineError`
        that `work` raises is one that all ranks raise, as `RankGroup.agreed` and `RankGroup.check_equal` do. Everything
        else ends all ranks.
        """
        return gathered(self._mpi, work, self._patience_s)
