"""Runs a simulation on several workers: processes of this machine, or ranks of MPI."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.history.status import Watch
from worldline.loading.python_file import load_module, loaded_files
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.spacetime.build import Core
from worldline.spacetime.crew import Crew, broken_off
from worldline.spacetime.moving import bring_back, packed, states_of, unpacked
from worldline.spacetime.placement import Placing, Resident, as_placing
from worldline.spacetime.result import Part, Result, combined, failed, part_of
from worldline.spacetime.story import records_of
from worldline.spacetime.waiting import Wait, living, stood_still, waits_of
from worldline.workers.executor import Mpi, Processes
from worldline.workers.failures import Failure, first_error, told
from worldline.workers.forking import check_guarded
from worldline.workers.interruptions import begin_run
from worldline.workers.looks import Look, looks, telling
from worldline.workers.mesh import PeerGone
from worldline.workers.peers import Peers
from worldline.workers.pool import WorkerPool, some_of
from worldline.workers.rank_group import RankGroup, gathered


class Task(NamedTuple):
    """What a worker is given: the setting, and its agents, packed; and users' files that define them."""

    workers: int
    files: list[Path]
    setting: bytes
    homes: dict[str, int]
    bodies: bytes


class Report(NamedTuple):
    """What a worker tells at the end. Who still waits does so for ever."""

    part: Part
    states: list[Any]
    waits: dict[str, Wait]
    alive: list[str]
    failure: Failure | None


def run_elsewhere(executor: Processes | Mpi, core: Core, until: float, watch: Watch | None, shown_end: int) -> Result:
    """Run what was set up in a core on other workers, and bring the agents' states back."""
    if isinstance(executor, Processes):
        reports = _on_processes(executor, core, telling(watch, shown_end))
    else:
        reports = _on_ranks(executor, core, looks(watch, shown_end))
    error = first_error(reports)
    if error is not None:
        raise error
    heard = [report for report in reports if isinstance(report, Report)]
    before = Part(0, [], records_of(core.trace or ()))
    result = combined([before, *(report.part for report in heard)], until, is_traced=core.trace is not None)
    failures = [report.failure for report in heard if report.failure is not None]
    if failures:
        first = min(failures, key=lambda failure: failure.key)
        raise failed(first.error, first.key[0], result)
    alive = [name for report in heard for name in report.alive]
    if alive:
        raise stood_still({name: wait for report in heard for name, wait in report.waits.items()}, alive, result)
    bring_back(core, (state for report in heard for state in report.states))
    return result


def _on_processes(executor: Processes, core: Core, reached: Callable[[int, int], None]) -> Sequence[Report | Failure]:
    check_guarded()
    _check_main(core)
    placing = as_placing(executor.placement, core.n)
    homes = _placed(core, placing, executor.count)
    setting = _setting(core, placing)
    tasks = [_task(core, setting, homes, number, executor.count) for number in range(executor.count)]

    def describe(number: int) -> str:
        return some_of([name for name, home in homes.items() if home == number], "no agents")

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached)


def _on_ranks(executor: Mpi, core: Core, look: Look) -> Sequence[Report | Failure]:
    placing = as_placing(executor.placement, core.n)

    def work(ranks: RankGroup) -> Report | Failure:
        homes = ranks.agreed(lambda: _placed(core, placing, ranks.count))
        ranks.check_equal((homes, repr(core.field), core.seed, [str(each) for each in core.boundaries], _outline(core)))
        task = ranks.agreed(lambda: _task(core, _setting(core, placing), homes, ranks.rank, ranks.count))
        try:
            return _work(ranks.rank, ranks.peers, task, look)
        except WorldlineError as error:  # The others know of it.
            return Failure((), error)

    return gathered(work, executor.patience_s)


def _work(number: int, channel: Peers, task: Task, look: Look) -> Report | Failure:
    """Be a worker, for a whole run; if this one can't go on, tell the others."""
    try:
        return _worked(number, channel, task, look)
    except PeerGone:
        raise
    except WorldlineError as error:
        for other in range(task.workers):
            if other != number:
                channel.post(other, broken_off(error))
        raise


def _worked(number: int, channel: Peers, task: Task, look: Look) -> Report | Failure:
    begin_run()
    for path in task.files:
        load_module(path)
    space, field, boundaries, seed, placing, is_traced = _loaded(task.setting)
    core = Core(space, field, boundaries, seed, number)
    core.homes.update(task.homes)
    unpacked(core, task.bodies)
    if is_traced:
        core.trace = []
    Crew(core, channel, task.workers, placing).run(look)
    if core.failures:
        lab, name, error = min(core.failures, key=lambda failure: failure[:2])
        return Report(part_of(core), [], {}, [], told(Failure((lab, name), error)))
    return Report(part_of(core), states_of(core), waits_of(core), living(core), None)


def _placed(core: Core, placing: Placing, count: int) -> dict[str, int]:
    residents = [
        Resident(
            body.name,
            body.position(core.n),
            1,
            tuple(dict.fromkeys(lane.source.name for lane in body.lanes if lane.source is not body)),
        )
        for _, body in sorted(core.bodies.items())
    ]
    return placing.place(residents, count)


def _outline(core: Core) -> list[Any]:
    """Return what two processes that set up the same agree on, besides who takes part."""
    lanes = [(name, lane.source.name, lane.target.name, lane.sent) for name, lane in core.lanes.items()]
    bodies = [
        (body.name, type(body.agent).__qualname__, tuple(body.point), tuple(body.trajectory.velocity), body.chain)
        for body in core.bodies.values()
    ]
    return [sorted(bodies), sorted(lanes)]


def _setting(core: Core, placing: Placing) -> bytes:
    setting = (core.space, core.field, core.boundaries, core.seed, placing, core.trace is not None)
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
    return Task(count, loaded_files(), setting, homes, packed(core, own))


def _check_main(core: Core) -> None:
    main = sys.modules.get("__main__")
    if not Path(getattr(main, "__file__", None) or "").is_file() and any(
        type(body.agent).__module__ == "__main__" for body in core.bodies.values()
    ):
        raise ConfigurationError(
            "workers can't load what was typed in, or comes from a pipe", advice="put the agents' classes into a file"
        )
