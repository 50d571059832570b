"""Runs a simulation on several workers: processes of this machine, or ranks of MPI, where each keeps its share of it.

A worker reports its `Part` of the run, or its `Failure`; what is made of these is the same whatever the workers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from worldline.history.status import Watch
from worldline.kernel.crew import Crew
from worldline.kernel.endless import endless
from worldline.kernel.model import Model, Part, restored, state_of
from worldline.kernel.outcome import KernelOutcome, combined
from worldline.kernel.pacing import Pacing
from worldline.kernel.placement import place
from worldline.kernel.share import Share, packed_state, shares_of, unpacked, unpacked_share
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError
from worldline.model.time import FOREVER
from worldline.workers.executor import Mpi, Processes
from worldline.workers.failures import Failure, first_error
from worldline.workers.forking import check_guarded
from worldline.workers.looks import Look, looks, telling
from worldline.workers.mesh import PeerGone
from worldline.workers.peers import Peers
from worldline.workers.pool import WorkerPool, some_of
from worldline.workers.rank_group import RankGroup, gathered


def run_distributed(
    executor: Processes | Mpi, model: Model, end: int, watch: Watch | None, events_max: int | None
) -> KernelOutcome:
    """Run a model from its start to an end, and bring the entities' states back; or raise what failed first."""
    if isinstance(executor, Processes):
        reports = _on_processes(executor, model, end, watch, events_max)
    else:
        reports = _on_ranks(executor, model, end, watch)
    error = first_error(reports)
    if error is not None:
        raise error
    parts = [report for report in reports if isinstance(report, Part)]
    for part in parts:
        _bring_back(model, part)
    return combined(parts, None if end == FOREVER else end)


# -- On processes


class _Task(NamedTuple):
    """What a worker process is given."""

    lookahead: list[list[int]]
    end: int
    share: bytes


def _on_processes(
    executor: Processes, model: Model, end: int, watch: Watch | None, events_max: int | None
) -> Sequence[Part | Failure]:
    check_guarded()
    workers = place(executor.placement, model.names, model.topology, executor.count)
    lookahead = model.topology.lookahead(model.names, workers, executor.count)
    tasks = [_Task(lookahead, end, share) for share in shares_of(model, workers, executor.count)]

    def describe(number: int) -> str:
        here = [name for name, worker in zip(model.names, workers, strict=True) if worker == number]
        return some_of(here, "no entities")

    tell = telling(watch, end)

    def reached(now: int, events: int) -> None:
        if events_max is not None and events > events_max:
            raise endless(events_max, now)
        tell(now, events)

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached)


def _work(number: int, peers: Peers, task: _Task, look: Look) -> Part | Failure:
    """Do a share of a simulation."""
    given = unpacked_share(task.share)
    worker = Worker(_loaded(given), given.workers, number)
    pacing = Pacing(number, task.lookahead)
    try:
        failure = Crew(worker, pacing, peers, number, len(task.lookahead)).run(task.end, look)
    except PeerGone as gone:
        gone.at = pacing.standings[gone.facts["worker"]].promise
        raise
    return failure if failure is not None else _part_told(worker)


def _loaded(share: Share) -> Model:
    try:
        return share.model()
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the entities: {error}", advice="define their classes at the top level of a module"
        ) from error


# -- On ranks


def _on_ranks(executor: Mpi, model: Model, end: int, watch: Watch | None) -> Sequence[Part | Failure]:
    def work(ranks: RankGroup) -> Part | Failure:
        workers = ranks.agreed(lambda: place(executor.placement, model.names, model.topology, ranks.count))
        ranks.check_equal((model.outline(), workers, end))
        worker = ranks.agreed(lambda: Worker(model, workers, ranks.rank))
        pacing = Pacing(ranks.rank, model.topology.lookahead(model.names, workers, ranks.count))
        failure = Crew(worker, pacing, ranks.peers, ranks.rank, ranks.count).run(end, looks(watch, end))
        return failure if failure is not None else _part_told(worker)

    return gathered(work, executor.patience_s)


# -- The states of entities


def _part_told(worker: Worker) -> Part:
    """Return what a worker tells when all went well, the state of its entities included."""
    part = worker.part()
    packed = ((entity.name, packed_state(entity)) for entity in worker.present())
    part.states = {name: state for name, state in packed if state is not None}
    return part


def _bring_back(model: Model, part: Part) -> None:
    """Give the entities of the model the state that they had at the end, in whichever process they were."""
    for name, packed in part.states.items():
        entity = unpacked(packed)
        if name in model.entities:
            entity = restored(model.entities[name], state_of(entity))
        else:
            model.created[name] = entity
        entity._wl_call(name)
