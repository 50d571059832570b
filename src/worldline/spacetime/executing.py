"""Runs a simulation on several workers: processes of this machine, or ranks of MPI."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from worldline.history.outcome import Watch
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.processes.executor import Executor
from worldline.processes.failures import Failure, begin_run, first_error, told
from worldline.processes.forking import check_guarded
from worldline.processes.mesh import PeerGone, Peers
from worldline.processes.pool import WorkerPool, check_loadable, loaded, some_of
from worldline.processes.ranks import RankGroup, gathered
from worldline.processes.status_timer import Look, looks, telling
from worldline.spacetime.core import Core
from worldline.spacetime.outcome import CoreReport, SpacetimeOutcome, outcome_of, records_of, report_of
from worldline.spacetime.placement import Placing, as_placing, resident_of
from worldline.spacetime.worker import SpacetimeWorker, bring_back, packed, packed_frame, states_of, unpacked

_SETTING = "the boundaries or the placement"

_Task = tuple[int, bytes, dict[str, int], bytes]  # How many workers, the setting, homes, and its agents, packed.


def run_elsewhere(
    executor: Executor, core: Core, until: float, watch: Watch | None, shown_end: int
) -> SpacetimeOutcome:
    """Run what was set up in a core on other workers, and bring the agents' states back."""
    if executor.kind == "processes":
        reports = _on_processes(executor, core, telling(watch, shown_end))
    else:
        reports = _on_ranks(executor, core, looks(watch, shown_end))
    error = first_error(reports)
    if error is not None:
        raise error
    heard = [report for report in reports if isinstance(report, CoreReport)]
    before = CoreReport(0, [], records_of(core.trace or ()), {}, [], measured=core.measured)
    outcome = outcome_of([before, *heard], until, is_traced=core.trace is not None)
    if outcome.failure is None:
        bring_back(core, (state for report in heard for state in report.states))
    return outcome


def is_said_by_any(executor: Executor, said: bool) -> bool:
    """Return whether one of the ranks says yes, on all of them."""
    return True in gathered(lambda _: said, executor.patience_s)


def _on_processes(
    executor: Executor, core: Core, reached: Callable[[int, int], None]
) -> Sequence[CoreReport | Failure]:
    check_guarded()
    check_loadable((body.agent for body in core.bodies.values()), "the agents' classes")
    placing = as_placing(executor.placement, core.n)
    homes = _placed(core, placing, executor.count)
    setting = _setting(core, placing, core.trace is not None)
    tasks = [_task(core, setting, homes, number, executor.count) for number in range(executor.count)]

    def describe(number: int) -> str:
        return some_of([name for name, home in homes.items() if home == number], "no agents")

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached)


def _on_ranks(executor: Executor, core: Core, look: Look) -> Sequence[CoreReport | Failure]:
    placing = as_placing(executor.placement, core.n)

    def work(ranks: RankGroup) -> CoreReport | Failure:
        homes = ranks.agreed(lambda: _placed(core, placing, ranks.count))
        ranks.check_equal((homes, repr(core.field), core.seed, [str(each) for each in core.boundaries], _outline(core)))
        is_traced = any(ranks.exchanged(core.trace is not None))  # A script may trace on one of them alone.
        task = ranks.agreed(lambda: _task(core, _setting(core, placing, is_traced), homes, ranks.rank, ranks.count))
        try:
            return _work(ranks.rank, ranks.peers, task, look)
        except WorldlineError as error:  # The others know of it.
            return Failure((), error)

    return gathered(work, executor.patience_s)


def _work(number: int, peers: Peers, task: _Task, look: Look) -> CoreReport | Failure:
    """Be a worker, for a whole run; if this one can't go on, tell the others."""
    try:
        return _worked(number, peers, task, look)
    except PeerGone:
        raise
    except WorldlineError as error:
        for other in range(task[0]):
            if other != number:
                peers.post(other, packed_frame(error))
        raise


def _worked(number: int, peers: Peers, task: _Task, look: Look) -> CoreReport:
    begin_run()
    workers, setting, homes, bodies = task
    space, field, boundaries, seed, placing, is_traced = loaded(setting, _SETTING)
    core = Core(space, field, boundaries, seed, number)
    core.homes.update(homes)
    unpacked(core, bodies)
    if is_traced:
        core.trace = []
    SpacetimeWorker(core, peers, workers, placing).run(look)
    report = report_of(core)
    if report.failure is not None:
        return report._replace(failure=told(report.failure))
    return report._replace(states=states_of(core))


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
            f"{_SETTING} can't be sent to a worker: {error}",
            advice="define their functions at the top level of a module",
        ) from error


def _task(core: Core, setting: bytes, homes: dict[str, int], number: int, count: int) -> _Task:
    return count, setting, homes, packed(core, [body for body in core.bodies.values() if homes[body.name] == number])
