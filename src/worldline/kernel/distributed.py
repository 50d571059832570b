"""Runs a simulation on several workers: processes of this machine, or ranks of MPI, where each keeps its share of it.

A worker ends with a `WorkerReport` or a `Failure`; what is made of these is the same whatever the workers are.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.history.telling import Call, Merging, Teller, merged
from worldline.kernel.entity import Entity
from worldline.kernel.model import (
    KernelOutcome,
    Model,
    WorkerReport,
    combined,
    endless,
    final_state,
    restored,
    shares_of,
    state_of,
    tell_beginning,
    tell_end,
)
from worldline.kernel.roster import KernelNetwork, place
from worldline.kernel.waiting import Awaited
from worldline.kernel.worker import DistributedWorker, Pacing, Worker
from worldline.model.time import FOREVER, format_time
from worldline.processes.executor import Executor
from worldline.processes.failures import Failure, first_failure
from worldline.processes.forking import check_guarded
from worldline.processes.mesh import PeerGone, Peers
from worldline.processes.pool import WorkerLine, WorkerPool, check_loadable, loaded, some_of
from worldline.processes.ranks import RankGroup, gathered
from worldline.processes.status_timer import LOOK_EVERY_S, looks, telling

_CALLS_AT_ONCE = 4_000
_ADVICE_AFTER_S = 0.5
_ROUNDS_MIN = 100  # Before that, it is the machine that is busy with something else.
_GAIN_MIN = 0.9
_Reports = tuple[
    Sequence[WorkerReport | Failure], Merging | None
]  # And who has told the observer what happened, if any.


def run_distributed(
    executor: Executor,
    model: Model,
    end: int,
    watch: Watch | None,
    events_max: int | None,
    observer: Observer | None,
) -> KernelOutcome:
    """Run a model from its start to an end, and bring the entities' states back; or raise what failed first."""
    if executor.kind == "processes":
        reports, merging = _on_processes(executor, model, end, watch, events_max, observer)
    else:
        reports, merging = _on_ranks(executor, model, end, watch, observer)
    failure = first_failure(reports)
    if failure is not None:
        if merging is not None and failure.key:
            merging.break_off(failure.key)
        raise failure.error
    parts = [report for report in reports if isinstance(report, WorkerReport)]
    for part in parts:
        _bring_back(model, part)
    outcome = combined(parts, None if end == FOREVER else end)
    if observer is not None:
        tell_end(observer, outcome.members, outcome.now)
    return outcome


# -- On processes


_Task = tuple[list[list[int]], int, bytes, bool]  # Lookaheads, the end, the share, and whether it is observed.


def _on_processes(
    executor: Executor,
    model: Model,
    end: int,
    watch: Watch | None,
    events_max: int | None,
    observer: Observer | None,
) -> _Reports:
    check_guarded()
    workers = place(executor.placement, model.names, model.topology, executor.count)
    lookahead = model.topology.lookahead(model.names, workers, executor.count)
    shares = shares_of(model, workers, executor.count)
    check_loadable(model.entities.values(), "the entities' classes")
    tasks = [(lookahead, end, share, observer is not None) for share in shares]
    tell = telling(watch, end)

    def describe(number: int) -> str:
        here = [name for name, worker in zip(model.names, workers, strict=True) if worker == number]
        return some_of(here, "no entities")

    def reached(now: int, events: int) -> None:
        if events_max is not None and events > events_max:
            raise endless(events_max, now)
        tell(now, events)

    merging = None
    if observer is not None:
        merging = Merging(executor.count, observer)
        tell_beginning(observer, model)

    computing: list[float] = []  # For what share of the time each worker does, as soon as that is known.

    def told(number: int, what: float | tuple[list[Call], int]) -> None:
        if isinstance(what, float):
            computing.append(what)
            if len(computing) == executor.count and sum(computing) < _GAIN_MIN:
                _advise(executor, model, min(map(min, lookahead)), sum(computing))
        else:
            assert merging is not None
            merging.hear(number, *what)

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached, told), merging


def _advise(executor: Executor, model: Model, lookahead: int, gain: float) -> None:
    """Say that a run would be faster inline: `gain` is how long workers compute in a second, all together."""
    declared = "" if model.topology.declared_only else ", with declared_only=True if only linked entities talk"
    print(
        f"worldline: {executor} is slower than one process, at about {gain:.2g} × its speed: a worker may go on for "
        f"{format_time(lookahead)} until it has to hear from the others, and too little happens in that time "
        f"(run it inline, or put the fixed part of delays into links{declared}: see Lookahead in the guide)",
        file=sys.stderr,
        flush=True,
    )


class _TimedWorker(Worker):
    """Knows how long its entities have acted, in seconds."""

    computing_s = 0.0

    def advance(self, end: int, limit: int = FOREVER, stop: Awaited | None = None) -> int:
        began = time.monotonic()
        try:
            return super().advance(end, limit, stop)
        finally:
            self.computing_s += time.monotonic() - began


def _work(number: int, peers: Peers, task: _Task, line: WorkerLine) -> WorkerReport | Failure:
    """Do a share of a simulation; if it is observed, bring the program every now and then what the entities do."""
    lookahead, end, packed, is_observed = task
    names, workers, entities, network, declared_only, seed, sendings = loaded(packed, "the entities")
    topology = KernelNetwork(network, seed, declared_only=declared_only)
    own = {name: _unpacked(state) for name, state in entities.items()}
    worker = _TimedWorker(Model(names, own, topology, seed, sendings), workers, number)
    pacing = Pacing(number, lookahead)
    teller = worker.engine.observer = Teller(worker.key) if is_observed else None
    began = told_at = time.monotonic()
    rounds = 0
    has_advised = False

    def reached(now: int) -> None:
        nonlocal told_at, rounds, has_advised
        clock = time.monotonic()
        rounds += 1
        if not has_advised and rounds >= _ROUNDS_MIN and clock - began >= _ADVICE_AFTER_S:
            has_advised = True
            line.tell(worker.computing_s / (clock - began))
        if teller is not None and (len(teller) >= _CALLS_AT_ONCE or clock - told_at >= LOOK_EVERY_S):
            told_at = clock
            line.tell((teller.take(), now))

    try:
        failure = DistributedWorker(worker, pacing, peers).run(end, line, reached)
    except PeerGone as gone:
        gone.at = pacing.progress[gone.facts["worker"]].promise
        raise
    if teller is not None:
        line.tell((teller.take(), FOREVER if failure is None else failure.key[0]))
    return failure if failure is not None else _part_told(worker)


# -- On ranks


def _on_ranks(executor: Executor, model: Model, end: int, watch: Watch | None, observer: Observer | None) -> _Reports:
    batches: list[tuple[list[Call], int]] = []

    def work(ranks: RankGroup) -> WorkerReport | Failure:
        workers = ranks.agreed(lambda: place(executor.placement, model.names, model.topology, ranks.count))
        ranks.check_equal((model.outline(), workers, end))
        worker = ranks.agreed(lambda: Worker(model, workers, ranks.rank))
        pacing = Pacing(ranks.rank, model.topology.lookahead(model.names, workers, ranks.count))
        curious = [rank for rank, looks_on in enumerate(ranks.exchanged(observer is not None)) if looks_on]
        teller = Teller(worker.key) if curious else None
        worker.engine.observer = teller
        failure = DistributedWorker(worker, pacing, ranks.peers).run(end, looks(watch, end))
        if teller is not None:
            batches.extend(ranks.brought((teller.take(), FOREVER if failure is None else failure.key[0]), curious))
        return failure if failure is not None else _part_told(worker)

    if observer is not None:
        tell_beginning(observer, model)
    reports = gathered(work, executor.patience_s)
    return reports, None if observer is None else merged(observer, batches)


# -- The states of entities


def _part_told(worker: Worker) -> WorkerReport:
    """Return what a worker tells when all went well, the state of its entities included."""
    part = worker.part()
    packed = ((entity.name, final_state(type(entity), state_of(entity), is_opened=True)) for entity in worker.present())
    part.states = {name: state for name, state in packed if state is not None}
    return part


def _bring_back(model: Model, part: WorkerReport) -> None:
    """Give the entities of the model the state that they had at the end, in whichever process they were."""
    for name, packed in part.states.items():
        entity = _unpacked(packed)
        if name in model.entities:
            entity = restored(model.entities[name], state_of(entity))
        else:
            model.created[name] = entity
        entity._wl_call(name)


def _unpacked(packed: bytes) -> Entity:
    """Return the entity that was packed, new."""
    kind, state = loaded(packed, "the entities")
    entity: Entity = restored(kind.__new__(kind), state)
    return entity
