"""Shrinking: from a trial that fails to a short schedule that fails in the same way.

First the algorithm is tried with fewer nodes and smaller parameters, on a few seeds each. Then all that the seed has
drawn is written down: the faults, and how long each message was under way. What is written down is taken out again as
far as the failure stays: a fault doesn't happen, a message takes the usual time. What is left is what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError
from worldline.model.time import format_time
from worldline.nodes.deadline import PATIENCE_S, deadline
from worldline.nodes.faults import Fault, is_over
from worldline.nodes.properties import Violation
from worldline.nodes.reading import smaller
from worldline.nodes.script import Delays, MessageId, Script, script_of
from worldline.nodes.trace import Record
from worldline.nodes.trial import Trial

_SEEDS_MIN, _SEEDS_MAX = 100, 500  # For each simpler form of the trial: more for failures that are rare.
_SMALLER_MAX = 12  # Forms that are tried at most, of topologies and of each parameter.
_LONGER = 100
RUNS_MAX = 5_000

T = TypeVar("T")


class Shrunk(Struct, frozen=True, kw_only=True):
    """A trial that fails, with little left to leave out, and its history.

    `drawn` is what the seed had decided before: how many messages take how long, and how many faults there are.
    """

    trial: Trial
    failure: WorldlineError
    records: list[Record]
    records_before: int
    drawn: int
    runs: int

    @property
    def left(self) -> int:
        """How much of that it takes."""
        return _decisions(self.trial)

    def text(self) -> str:
        """Say what the schedule is, in words."""
        graph, script = self.trial.graph(), self.trial.script
        exceptions = {} if script is None else script.exceptions
        usual = f"messages take what seed {self.trial.seed} draws"
        if script is not None:
            usual = f"every message takes {format_time(script.usual[0])}"
        if exceptions or self.trial.faults:
            usual += ", but"
        parameters = "".join(f", {name} = {value}" for name, value in self.trial.parameters.items())
        size = f"{graph.num_nodes} node{'' if graph.num_nodes == 1 else 's'}"
        lines = [f"{size}{f' ({graph.name})' if graph.name else ''}{parameters}; {usual}"]
        for (sender, receiver, number), delays in sorted(exceptions.items()):
            takes = " and ".join(map(format_time, delays))
            fate = f"takes {takes}" if delays else "gets lost"
            lines.append(f"  message {number + 1} from {sender} to {receiver} {fate}")
        lines += [f"  at {fault}" for fault in self.trial.faults]
        return "\n".join(lines)


def shrink(
    trial: Trial,
    *,
    runs_max: int = RUNS_MAX,
    patience_s: float | None = PATIENCE_S,
    progress: Callable[[int], None] | None = None,
) -> Shrunk:
    """Return the shortest schedule that is found for the failure of a trial; no run of it takes longer than that."""
    runs = _Runs(runs_max, patience_s, progress)
    outcome = trial.run()
    failure = outcome.failure
    if failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    # What takes much longer than the failure that is looked for isn't it.
    trial = structs.replace(trial, events_max=min(trial.events_max, _LONGER * outcome.events + _LONGER))
    before = _written_down(trial)
    records_before = len(_history(trial))
    sign = _sign(failure)
    for simpler in _simplified(trial, sign, runs):
        trial = simpler
    written = _written_down(trial)
    if runs.fails(written, sign):
        trial = _taken_out(written, sign, runs)
    found = trial.run().failure
    assert found is not None
    return Shrunk(
        trial=trial,
        failure=found,
        records=_history(trial),
        records_before=records_before,
        drawn=_decisions(before),
        runs=runs.done,
    )


def _decisions(trial: Trial) -> int:
    """Return how much is written down of a trial."""
    return len(trial.faults) + (0 if trial.script is None else len(trial.script.exceptions))


class _Runs:
    """Runs trials, and counts them: at some point it is enough."""

    def __init__(self, runs_max: int, patience_s: float | None, progress: Callable[[int], None] | None) -> None:
        self.done = 0
        self._max = runs_max
        self._patience_s = patience_s
        self._progress = progress

    def fails(self, trial: Trial, sign: str) -> bool:
        """Whether a trial fails in the way that is looked for; no trial does once there were too many."""
        if self.done >= self._max:
            return False
        self.done += 1
        if self._progress is not None:
            self._progress(self.done)
        try:
            with deadline(self._patience_s):
                failure = trial.run().failure
        except (UsageError, Stuck):  # A parameter doesn't fit: the node that it names isn't there, or it has no end.
            return False
        if isinstance(failure, Stuck) and sign != _sign(failure):
            self.done = self._max  # Nobody wants to wait for more of that.
        return failure is not None and _sign(failure) == sign


def _sign(failure: WorldlineError) -> str:
    """Return what two failures of the same kind have in common: the property, or the kind of error."""
    if isinstance(failure, Violation):
        return str(failure.facts["property"])
    return f"{type(failure).__name__} {type(failure.__cause__).__name__}"


def _history(trial: Trial) -> list[Record]:
    run = trial.scheduler(trace=True)
    try:
        run.run(trial.end(), events_max=trial.events_max)
    except ModelError:
        return run.records
    raise AssertionError("a trial that failed doesn't fail any more")


# -- Simpler forms


def _simplified(trial: Trial, sign: str, runs: _Runs) -> Iterator[Trial]:
    """Yield ever simpler trials that fail in the same way."""
    topology = trial.topology or trial.algorithm.topology
    if isinstance(topology, str) and not trial.faults:
        sizes = [structs.replace(trial, topology=text) for text in smaller(topology)[:_SMALLER_MAX]]
        found = _first_failing(sizes, sign, runs)
        if found is not None:
            trial = found
            yield trial
    defaults = trial.algorithm.parameters()
    for name, value in {**defaults, **trial.parameters}.items():
        if type(value) is int:
            forms = [
                structs.replace(trial, parameters={**trial.parameters, name: less})
                for less in range(1, min(value, _SMALLER_MAX))
            ]
            found = _first_failing(forms, sign, runs)
            if found is not None:
                trial = found
                yield trial


def _first_failing(forms: Sequence[Trial], sign: str, runs: _Runs) -> Trial | None:
    for form in forms:
        for seed in range(max(_SEEDS_MIN, min(2 * form.seed, _SEEDS_MAX))):
            tried = structs.replace(form, seed=seed)
            if runs.fails(tried, sign):
                return tried
    return None


# -- Written down, and taken out


def _written_down(trial: Trial) -> Trial:
    """Return the same trial with everything written down that the seed draws for it."""
    latency = trial.link().latency
    middle = latency.draw(2**63)
    usual = min(max(_nearest(middle, 10 ** max(0, len(str(middle)) - 2)), latency.minimum), latency.maximum)
    script = script_of(_history(trial), usual)
    return structs.replace(trial.pinned(), script=script, kinds={})


def _taken_out(trial: Trial, sign: str, runs: _Runs) -> Trial:
    ends_well = is_over(trial.faults)

    def with_faults(faults: Sequence[Fault]) -> Trial:
        return structs.replace(trial, faults=tuple(faults))

    def fails_with(faults: Sequence[Fault]) -> bool:
        # Who stands a crash needn't stand one for ever: what ends it stays, unless nothing did in the first place.
        return (is_over(faults) or not ends_well) and runs.fails(with_faults(faults), sign)

    def with_messages(kept: Sequence[tuple[MessageId, Delays]]) -> Trial:
        assert trial.script is not None
        return structs.replace(trial, script=Script(trial.script.usual[0], dict(kept)))

    for _ in range(2):  # Without some of the messages, faults may turn out to be needless too.
        trial = with_faults(_least(trial.faults, fails_with))
        assert trial.script is not None
        messages = list(trial.script.exceptions.items())
        trial = with_messages(_least(messages, lambda kept: runs.fails(with_messages(kept), sign)))
    return _rounded(trial, sign, runs)


def _least(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out as much as possible: ever smaller parts, until not a single one can be left out."""
    kept = list(items)
    size = len(kept)
    while size:
        start, before = 0, len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
            else:
                start += size
        if size > 1:
            size //= 2
        elif len(kept) == before:
            break
    return kept


def _rounded(trial: Trial, sign: str, runs: _Runs) -> Trial:
    """Replace odd times by round ones where that changes nothing."""
    assert trial.script is not None
    latency, unit = trial.link().latency, max(1, trial.script.usual[0] // 5)
    for message, delays in list(trial.script.exceptions.items()):
        near = tuple(min(max(_nearest(delay, unit), latency.minimum), latency.maximum) for delay in delays)
        if near != delays:
            script = Script(trial.script.usual[0], {**trial.script.exceptions, message: near})
            changed = structs.replace(trial, script=script)
            if runs.fails(changed, sign):
                trial = changed
    rounded = structs.replace(
        trial, faults=tuple(structs.replace(fault, at=_nearest(fault.at, unit)) for fault in trial.faults)
    )  # All at once: one by one, a recovery might come to lie before its crash.
    return rounded if rounded != trial and runs.fails(rounded, sign) else trial


def _nearest(time: int, unit: int) -> int:
    """Round to a whole number of units."""
    return (time + unit // 2) // unit * unit
