"""What workers tell at the end of a run, on its way between processes, and what is made of it.

A report is a worker's `Part` of the run, or its `Failure`.
"""

from __future__ import annotations

from collections.abc import Sequence

from worldline.history.merging import Merging
from worldline.history.observer import Observer
from worldline.kernel.framing import tell_end
from worldline.kernel.model import Model, Part, restored, state_of
from worldline.kernel.result import Result, combined
from worldline.kernel.share import packed_state, unpacked
from worldline.kernel.worker import Worker
from worldline.model.time import FOREVER
from worldline.workers.failures import Failure, first_failure


def settled(
    model: Model, reports: Sequence[Part | Failure], end: int, observer: Observer | None, merging: Merging | None
) -> Result:
    """Return what came of a run, and bring the entities' states back; or raise the failure that happened first.

    An observer is told the end of it; what was told last may still be in the merging.
    """
    failure = first_failure(reports)
    if failure is not None:
        if merging is not None and failure.key:
            merging.break_off(failure.key)
        raise failure.error
    parts = [report for report in reports if isinstance(report, Part)]
    for part in parts:
        _bring_back(model, part)
    result = combined(parts, None if end == FOREVER else end)
    if observer is not None:
        tell_end(observer, (chain for part in parts for chain in part.chains), result.now)
    return result


def _bring_back(model: Model, part: Part) -> None:
    """Give the entities of the model the state that they had at the end, in whichever process they were."""
    for name, packed in part.states.items():
        entity = unpacked(packed)
        if name in model.entities:
            entity = restored(model.entities[name], state_of(entity))
        else:
            model.created[name] = entity
        entity._wl_call(name)


def part_told(worker: Worker) -> Part:
    """Return what a worker tells when all went well, the state of its entities included."""
    part = worker.part()
    packed = ((entity.name, packed_state(entity)) for entity in worker.present())
    part.states = {name: state for name, state in packed if state is not None}
    return part
