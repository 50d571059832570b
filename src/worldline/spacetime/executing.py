"""Runs a simulation on several workers: processes of this machine, or ranks of MPI."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.history.outcome import Watch
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.processes.executor import Mpi, Processes
from worldline.processes.failures import Failure, begin_run, first_error, told
from worldline.processes.forking import check_guarded
from worldline.processes.mesh import PeerGone, Peers
from worldline.processes.pool import WorkerPool, some_of
from worldline.processes.ranks import RankGroup, gathered
from worldline.processes.status_timer import Look, looks, telling
from worldline.spacetime.core import Core
from worldline.spacetime.outcome import (
    HeldBack,
    SpacetimeOutcome,
    Tally,
    combined,
    failed,
    living,
    records_of,
    stood_still,
    tally_of,
    waits_of,
)
from worldline.spacetime.placement import Placing, as_placing, resident_of
from worldline.spacetime.worker import SpacetimeWorker, bring_back, packed, states_of, unpacked
from worldline.spacetime.worker_messages import packed_frame


class Task(NamedTuple):
    """What a worker is given: the setting, and its agents, packed."""

    workers: int
    setting: bytes
    homes: dict[str, int]
    bodies: bytes


class WorkerSummary(NamedTuple):
    """What a worker tells at the end. Who still waits does so for ever."""

    tally: Tally
    states: list[Any]
    waits: dict[str, HeldBack]
    alive: list[str]
    failure: Failure | None


def run_elsewhere(
    executor: Processes | Mpi, core: Core, until: float, watch: Watch | None, shown_end: int
) -> SpacetimeOutcome:
    """Run what was set up in a core on other workers, and bring the agents' states back."""
    if isinstance(executor, Processes):
        reports = _on_processes(executor, core, telling(watch, shown_end))
    else:
        reports = _on_ranks(executor, core, looks(watch, shown_end))
    error = first_error(reports)
    if error is not None:
        raise error
    heard = [report for report in reports if isinstance(report, WorkerSummary)]
    before = Tally(0, [], records_of(core.trace or ()))
    outcome = combined([before, *(report.tally for report in heard)], until, is_traced=core.trace is not None)
    failures = [report.failure for report in heard if report.failure is not None]
    if failures:
        first = min(failures, key=lambda failure: failure.key)
        return failed(outcome, first.error, first.key[0])
    alive = [name for report in heard for name in report.alive]
    if alive:
        return stood_still(outcome, {name: wait for report in heard for name, wait in report.waits.items()}, alive)
    bring_back(core, (state for report in heard for state in report.states))
    return outcome


def is_said_by_any(executor: Mpi, said: bool) -> bool:
    """Return whether one of the ranks says yes, on all of them."""
    return True in gathered(lambda _: said, executor.patience_s)


def _on_processes(
    executor: Processes, core: Core, reached: Callable[[int, int], None]
) -> Sequence[WorkerSummary | Failure]:
    check_guarded()
    _check_main(core)
    placing = as_placing(executor.placement, core.n)
    homes = _placed(core, placing, executor.count)
    setting = _setting(core, placing, core.trace is not None)
    tasks = [_task(core, setting, homes, number, executor.count) for number in range(executor.count)]

    def describe(number: int) -> str:
        return some_of([name for name, home in homes.items() if home == number], "no agents")

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached)


def _on_ranks(executor: Mpi, core: Core, look: Look) -> Sequence[WorkerSummary | Failure]:
    placing = as_placing(executor.placement, core.n)

    def work(ranks: RankGroup) -> WorkerSummary | Failure:
        homes = ranks.agreed(lambda: _placed(core, placing, ranks.count))
        ranks.check_equal((homes, repr(core.field), core.seed, [str(each) for each in core.boundaries], _outline(core)))
        is_traced = any(ranks.exchanged(core.trace is not None))  # A script may trace on one of them alone.
        task = ranks.agreed(lambda: _task(core, _setting(core, placing, is_traced), homes, ranks.rank, ranks.count))
        try:
            return _work(ranks.rank, ranks.peers, task, look)
        except WorldlineError as error:  # The others know of it.
            return Failure((), error)

    return gathered(work, executor.patience_s)


def _work(number: int, peers: Peers, task: Task, look: Look) -> WorkerSummary | Failure:
    """Be a worker, for a whole run; if this one can't go on, tell the others."""
    try:
        return _worked(number, peers, task, look)
    except PeerGone:
        raise
    except WorldlineError as error:
        for other in range(task.workers):
            if other != number:
                peers.post(other, packed_frame(error))
        raise


def _worked(number: int, peers: Peers, task: Task, look: Look) -> WorkerSummary | Failure:
    begin_run()
    space, field, boundaries, seed, placing, is_traced = _loaded(task.setting)
    core = Core(space, field, boundaries, seed, number)
    core.homes.update(task.homes)
    unpacked(core, task.bodies)
    if is_traced:
        core.trace = []
    SpacetimeWorker(core, peers, task.workers, placing).run(look)
    if core.failures:
        lab, name, error = min(core.failures, key=lambda failure: failure[:2])
        return WorkerSummary(tally_of(core), [], {}, [], told(Failure((lab, name), error)))
    return WorkerSummary(tally_of(core), states_of(core), waits_of(core), living(core), None)


def _placed(core: Core, placing: Placing, count: int) -> dict[str, int]:
    residents = [resident_of(body, core.n, 1) for _, body in sorted(core.bodies.items())]
    return placing.place(residents, count)


def _outline(core: Core) -> list[Any]:
    """Return what two processes that set up the same agree on, besides who takes part."""
    lanes = [(name, lane.source.name, lane.target.name, lane.sent) for name, lane in core.lanes.items()]
    bodies = [
        (body.name, type(body.agent).__qualname__, tuple(body.point), tuple(body.trajectory.velocity), body.chain)
        for body in core.bodies.values()
    ]
    return [sorted(bodies), sorted(lanes)]


def _setting(core: Core, placing: Placing, is_traced: bool) -> bytes:
    setting = (core.space, core.field, core.boundaries, core.seed, placing, is_traced)
    try:
        return pickle.dumps(setting, protocol=5)
    except Exception as error:  # What a boundary does is the user's own.
        raise ConfigurationError(
            f"the boundaries or the placement can't be sent to a worker: {error}",
            advice="define their functions at the top level of a module",
        ) from error


def _loaded(setting: bytes) -> Any:
    try:
        return pickle.loads(setting)
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the boundaries or the placement: {error}",
            advice="define their functions at the top level of a module",
        ) from error


def _task(core: Core, setting: bytes, homes: dict[str, int], number: int, count: int) -> Task:
    own: Iterable[Any] = [body for body in core.bodies.values() if homes[body.name] == number]
    return Task(count, setting, homes, packed(core, own))


def _check_main(core: Core) -> None:
    main = sys.modules.get("__main__")
    if not Path(getattr(main, "__file__", None) or "").is_file() and any(
        type(body.agent).__module__ == "__main__" for body in core.bodies.values()
    ):
        raise ConfigurationError(
            "workers can't load what was typed in, or comes from a pipe", advice="put the agents' classes into a file"
        )
