"""Shrinking: from a trial that fails to a short schedule that fails in the same way.

First the algorithm is tried with fewer nodes and smaller parameters, on a few seeds each. Then all that the seed has
drawn is written down: the faults, and how long each message was under way. What is written down is taken out again as
far as the failure stays: a fault doesn't happen, a message takes the usual time. What is left is what it takes.

What must not happen is that it slips into a failure that isn't the one that was found, in which a correct program would
fail as well. These keep it from that:

S1. It is the same failure: see `likeness_of`.
S2. Circumstances only get milder: nothing is amiss that wasn't at that time (`faults.are_milder`), no more messages get
    lost than did, latencies stay in their range, and a network that was connected stays connected. The end of the run
    stays where it was. So fewer nodes have those of the faults that concern them, not others that another seed draws.
S3. Nothing goes below what the algorithm states as its least. Where it states nothing, it isn't known from where on
    nothing can work. A parameter without a stated least stays as it is: it may be how often something is tried again,
    without which a correct program couldn't stand a slow message. Fewer nodes count only if they can do what more
    could: if these pass without faults, when every message takes the usual time, or on some of the seeds, then so must
    the fewer. If they pass nowhere, there is nothing to go by, and they stay.
S4. What the user wants kept is kept.
S5. It isn't longer to read than the failure that was found: see `search.shrinking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from msgspec import structs

from worldline.model.errors import ConfigurationError, ModelError, Stuck, UsageError, shown
from worldline.model.latency import Latency
from worldline.model.text import counted
from worldline.model.time import format_time
from worldline.nodes.algorithm import NODES, Algorithm
from worldline.nodes.faults import ENDINGS, Fault, are_milder, check_faults, time_of
from worldline.nodes.shapes import smaller
from worldline.nodes.topology import Topology
from worldline.nodes.trace import Delays, MessageId, NodeRecord, Script, script_of
from worldline.nodes.trial import Trial
from worldline.search.day import USUAL_DAY, Day
from worldline.search.searching import SECONDS_MAX, deadline
from worldline.search.shrinking import RUNS_MAX, CountedRuns, Shrinking, Shrunk, lessened, rounded, usual

_SEEDS_MIN, _SEEDS_MAX = 100, 500  # For each simpler form of the trial: more for failures that are rare.
_SMALLER_MAX = 12  # Forms that are tried at most, of topologies and of each parameter.
_LONGER = 100
_PASSING = 20  # Seeds of which one should pass, where some pass.
_UNTROUBLED = 10  # Seeds that should all pass without faults.


# -- What shrinking leaves as it was found, by name

TOPOLOGY = "topology"
PARAMETERS = "parameters"
FAULTS = "faults"
MESSAGES = "messages"
SEED = "seed"

KEPT = {
    NODES: "how many nodes there are",
    TOPOLOGY: "the graph itself",
    PARAMETERS: "all parameters",
    FAULTS: "all faults, those too that the seed drew",
    MESSAGES: "how long every message takes",
    SEED: "what the seed draws",
}
"""What can be kept, besides single parameters."""


def as_kept(names: str | Iterable[str], algorithm: Algorithm) -> frozenset[str]:
    """Take names of what is to be kept, or a text such as ``"nodes,rounds"``."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    parameters = tuple(algorithm.parameters())
    for name in given:
        if name not in KEPT and name not in parameters:
            own = f"; and of {algorithm.name}: {', '.join(parameters)}" if parameters else ""
            raise UsageError(f"{shown(name)} can't be kept", advice=f"there are {', '.join(KEPT)}{own}")
    kept = frozenset(given)
    return kept | frozenset(parameters) if PARAMETERS in kept else kept


def in_words(trial: Trial, day: Day) -> list[str]:
    """Describe a schedule; `day` is what of the kind of day makes a difference to it."""
    graph, script = trial.graph(), trial.script
    exceptions = {} if script is None else script.exceptions
    words = day.words()
    usual = f"messages take what seed {trial.seed} draws{f' on this day: {words}' if words else ''}"
    if script is not None:
        usual = f"every message takes {format_time(script.usual[0])}"
    if exceptions or trial.faults:
        usual += ", but"
    parameters = "".join(f", {name} = {value}" for name, value in trial.parameters.items())
    name = f" ({graph.name})" if graph.name else ""
    lines = [f"{counted(graph.num_nodes, 'node')}{name}{parameters}; {usual}"]
    for (sender, receiver, number), delays in sorted(exceptions.items()):
        takes = " and ".join(map(format_time, delays))
        fate = f"takes {takes}" if delays else "gets lost"
        lines.append(f"  message {number + 1} from {sender} to {receiver} {fate}")
    return lines + [f"  at {fault}" for fault in trial.faults]


def shrink(
    trial: Trial,
    *,
    keep: str | Iterable[str] = (),
    runs_max: int = RUNS_MAX,
    seconds_max: float | None = SECONDS_MAX,
    progress: Callable[[int], None] | None = None,
) -> Shrunk[Trial]:
    """Return the shortest schedule found that fails in the same way as the trial.

    No run that it tries takes longer than `seconds_max`; if the trial itself does, it is `Stuck`, and that is raised.
    `keep` names what must stay as it is: ``"nodes,rounds"``.
    """
    if not isinstance(trial, Trial):
        raise UsageError(f"{shown(trial)} isn't a trial", advice="shrink Trial(algorithm=...)")
    kept = as_kept(keep, trial.algorithm)
    with deadline(seconds_max):
        outcome, records_before = trial.measured()
    failure = outcome.failure
    if failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    if isinstance(failure, Stuck) and failure.facts.get("is_expired"):
        raise failure
    events_max = trial.events_max
    # What takes much longer than the failure that is looked for isn't it.
    trial = structs.replace(trial, events_max=min(trial.events_max, _LONGER * outcome.events + _LONGER))
    before = _written_down(trial)
    if FAULTS in kept:
        trial = trial.pinned()
    elif TOPOLOGY in kept:
        trial = structs.replace(trial, topology=trial.graph())
    runs = CountedRuns(failure, records_before, runs_max, seconds_max, progress)
    unsure: tuple[str, ...] = ()
    if MESSAGES not in kept:  # They are those of this very form.
        forms = _Forms(trial, kept, runs)
        trial, unsure = forms.smallest(), tuple(forms.unsure)
    written = structs.replace(_written_down(trial), day=USUAL_DAY)
    if runs.fails(written):
        trial = _taken_out(written, kept, runs)
    trial = structs.replace(trial, events_max=events_max)  # When it is mended, it may take as long as it takes.
    found = trial.run()
    assert found.failure is not None
    return Shrunk(
        trial=trial,
        failure=found.failure,
        records=_history(trial),
        records_before=records_before,
        drawn=_decisions(before),
        left=_decisions(trial),
        lines=in_words(trial, found.day or USUAL_DAY),
        runs=runs.done,
        unsure=unsure,
    )


def _decisions(trial: Trial) -> int:
    """Return how much is written down of a trial."""
    return len(trial.faults) + (0 if trial.script is None else len(trial.script.exceptions))


def _history(trial: Trial) -> list[NodeRecord]:
    run = trial.scheduler(trace=True)
    try:
        run.run(trial.end(), events_max=trial.events_max)
    except ModelError:
        return run.records
    raise AssertionError("a trial that failed doesn't fail any more")


# -- Smaller forms


class _Forms:
    """Looks for the smallest form of a trial: with the fewest nodes, and the least values of whole-number parameters.

    `unsure` gets the names of what stays as it was because nothing is known of it.
    """

    def __init__(self, trial: Trial, kept: frozenset[str], runs: CountedRuns) -> None:
        self._trial = trial
        self._kept = kept
        self._runs = runs
        self._graph = trial.graph()
        self._pinned = trial.pinned()
        self._abilities: list[Callable[[Trial, CountedRuns], bool]] | None = None
        self.unsure: list[str] = []

    def smallest(self) -> Trial:
        """Return the smallest form that is found."""
        trial, least = self._trial, self._trial.algorithm.least
        topology = trial.topology or trial.algorithm.topology
        if isinstance(topology, str) and not trial.faults and not {NODES, TOPOLOGY} & self._kept:  # Faults name nodes.
            shapes = islice(smaller(topology, least.get(NODES, 1)), _SMALLER_MAX)
            trial = self._first(NODES, [structs.replace(trial, topology=shape) for shape in shapes]) or trial
        for name, value in {**trial.algorithm.parameters(), **trial.parameters}.items():
            if type(value) is int and name not in self._kept:
                values = range(least.get(name, 1), value)[:_SMALLER_MAX]
                forms = [structs.replace(trial, parameters={**trial.parameters, name: each}) for each in values]
                trial = self._first(name, forms) or trial
        return trial

    def _first(self, name: str, forms: Sequence[Trial]) -> Trial | None:
        """Return the first of some forms, which differ in one thing, that fails as the trial does."""
        if not forms:
            return None
        is_stated = name in self._trial.algorithm.least
        if not is_stated and not (name == NODES and self._known_abilities()):
            self.unsure.append(name)
            return None
        for form in forms:
            found = self._failing(form)
            if found is not None and (is_stated or all(each(found, self._runs) for each in self._known_abilities())):
                return found
        return None

    def _failing(self, form: Trial) -> Trial | None:
        """Return a form with the first seed on which it fails."""
        seeds: Iterable[int] = range(max(_SEEDS_MIN, min(2 * form.seed, _SEEDS_MAX)))
        for seed in [form.seed] if SEED in self._kept else seeds:
            tried = self._with_faults(structs.replace(form, seed=seed))
            if (not self._graph.is_connected or tried.graph().is_connected) and self._runs.fails(tried):
                return tried
        return None

    def _with_faults(self, form: Trial) -> Trial:
        """Return a form with those of the trial's own faults that it can have."""
        graph, faults = form.graph(), self._pinned.faults
        if graph != self._graph:
            faults = tuple(each for each in faults if _can_be(each, graph))
        return structs.replace(form, faults=faults, kinds=self._pinned.kinds)

    def _known_abilities(self) -> list[Callable[[Trial, CountedRuns], bool]]:
        if self._abilities is None:  # It takes some runs.
            trial = self._with_faults(self._trial)  # As the forms have them.
            self._abilities = [each for each in _ABILITIES if each(trial, self._runs)]
        return self._abilities


def _can_be(fault: Fault, graph: Topology) -> bool:
    try:
        check_faults([fault], graph)
    except ConfigurationError:
        return False
    return True


def _is_untroubled(trial: Trial) -> bool:
    return not trial.faults and not trial.kinds


def _passes_untroubled(trial: Trial, runs: CountedRuns) -> bool:
    """Whether faults are to blame: without any, it passes."""
    if _is_untroubled(trial):
        return False
    untroubled = structs.replace(trial, faults=(), kinds={})
    return all(runs.passes(structs.replace(untroubled, seed=seed)) for seed in range(_UNTROUBLED))


def _passes_calmly(trial: Trial, runs: CountedRuns) -> bool:
    """Whether it passes if nothing out of the ordinary happens at all."""
    return runs.passes(structs.replace(trial, faults=(), kinds={}, script=Script(_usual(trial), {})))


def _passes_sometimes(trial: Trial, runs: CountedRuns) -> bool:
    """Whether it depends on the seed."""
    return any(runs.passes(structs.replace(trial, seed=seed)) for seed in range(_PASSING))


_ABILITIES = (_passes_untroubled, _passes_calmly, _passes_sometimes)


# -- Written down, and taken out


def _written_down(trial: Trial) -> Trial:
    """Return the same trial with everything written down that the seed draws for it."""
    script = script_of(_history(trial), _usual(trial))
    return structs.replace(trial.pinned(), script=script, kinds={})


def _usual(trial: Trial) -> int:
    return usual(trial.link().latency)


def _taken_out(trial: Trial, kept: frozenset[str], runs: CountedRuns) -> Trial:
    assert trial.script is not None
    usual, latency = trial.script.usual[0], trial.link().latency
    unit = max(1, usual // 5)  # Round times are whole numbers of it.

    def made(faults: tuple[Fault, ...], messages: dict[MessageId, Delays] | None) -> Trial:
        return structs.replace(trial, faults=faults, script=Script(usual, messages or {}))

    messages = trial.script.exceptions
    shrinking = Shrinking(runs, trial.faults, messages, drawn=len(messages), make=made, is_milder=are_milder)
    for _ in range(2):  # Without some of the messages, faults may turn out to be needless too.
        if FAULTS not in kept:
            shrinking.leave_out_faults()
        if MESSAGES not in kept:
            shrinking.leave_out_draws()
            shrinking.make_earlier(
                lambda message: (message[:2], message[2]), lambda message, number: (*message[:2], number)
            )
    if MESSAGES not in kept:
        for _ in range(2):  # A message may have to be as slow as another one is.
            for message in tuple(shrinking.draws or ()):
                _round_delays(shrinking, message, latency, unit)
    if FAULTS not in kept:
        for fault in shrinking.faults:
            _round_fault(shrinking, fault, unit)
    return made(shrinking.faults, shrinking.draws)


_Messages = Shrinking[Fault, MessageId, Delays]


def _round_delays(shrinking: _Messages, message: MessageId, latency: Latency, unit: int) -> None:
    delays = (shrinking.draws or {})[message]
    if len(delays) == 1 and delays[0] > latency.maximum:  # On another day than a usual one.
        lessened(delays[0], lambda delay: shrinking.attempt_draw(message, (delay,)))
    else:
        near = tuple(rounded(latency, delay, unit) for delay in delays)
        if near != delays:
            shrinking.attempt_draw(message, near)


def _round_fault(shrinking: _Messages, fault: Fault, unit: int) -> None:
    """Let what goes wrong begin a bit later, or end a bit earlier: never the other way round."""
    at = fault.at // unit * unit if fault.verb in ENDINGS else -(-fault.at // unit) * unit
    changed = [structs.replace(fault, at=at) if each is fault else each for each in shrinking.faults]
    faults = tuple(sorted(changed, key=time_of))
    if at != fault.at and are_milder(faults, shrinking.faults):
        shrinking.attempt(faults=faults)
