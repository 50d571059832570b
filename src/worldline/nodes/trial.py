"""A trial: one run of an algorithm with everything that it depends on, so that it can be had again."""

from __future__ import annotations

import math
import os
import pickle
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, json, structs

from worldline.files.loading import MODEL, defines_model, definition_in, load_module, unfit
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.kernel.simulation import EXECUTORS
from worldline.model.draws.distributions import Chance
from worldline.model.errors import ConfigurationError, ModelError, Stuck, UsageError, shown
from worldline.model.links import Link
from worldline.model.links import link as as_link
from worldline.model.plan import Plan
from worldline.model.randomness import draw_bits, key_of
from worldline.model.reading import as_latency, as_time
from worldline.model.time import format_time
from worldline.nodes.algorithm import LATENCY, Algorithm
from worldline.nodes.algorithms import find
from worldline.nodes.faults import KINDS, SHARES, Fault, as_fault, draw_faults, parse_kinds, time_of
from worldline.nodes.node import Node
from worldline.nodes.scheduler import EVENTS_MAX, Scheduler, plan_of
from worldline.nodes.shapes import as_topology
from worldline.nodes.topology import Topology
from worldline.nodes.trace import Delays, Deliveries, MessageId, NodeRecord, Script
from worldline.processes.executor import Executor, as_executor
from worldline.search.day import USUAL_DAY, Day, DayDraws, as_day, draw_day
from worldline.search.properties import AT_END, Property, StoryStep
from worldline.search.searching import (
    SAVED_FORMAT,
    SECONDS_MAX,
    Recipe,
    Report,
    TrialOutcome,
    read_saved,
    search_seeds,
    write_saved,
)


class DayDeliveries:
    """Draws the fate of each message from the seed, its link and the day; `is_open` if no latency is stated."""

    def __init__(self, day: Day, seed: int, link: Link, *, is_open: bool) -> None:
        self._draws = DayDraws(day, seed)
        self._seed = seed
        self._link = link
        self._is_open = is_open
        self._keys: dict[tuple[int, int, str], int] = {}

    @property
    def felt(self) -> Collection[str]:
        """What of the day has made a difference so far."""
        return self._draws.felt

    def __call__(self, message: MessageId) -> Delays:
        if self._happens("loss", message, self._link.loss_at_receiver):
            return ()
        return (self._takes("latency", message),) + (
            (self._takes("latency-of-copy", message),)
            if self._happens("duplication", message, self._link.duplication)
            else ()
        )

    def _takes(self, purpose: str, message: MessageId) -> int:
        latency = self._link.latency
        stated = latency.draw(self._bits(purpose, message))
        *way, number = message
        path = (purpose, *map(str, way))
        return self._draws.latency(path, number, latency, stated, is_open=self._is_open)

    def _happens(self, purpose: str, message: MessageId, share: float) -> bool:
        if not share:
            return False
        chance = Chance(share)
        happens = chance.draw(self._bits(purpose, message))
        *way, number = message
        return self._draws.is_lost(("loss", *map(str, way)), number, chance, happens) if purpose == "loss" else happens

    def _bits(self, purpose: str, message: MessageId) -> int:
        sender, receiver, number = message
        key = self._keys.get((sender, receiver, purpose))
        if key is None:
            key = self._keys[sender, receiver, purpose] = key_of(self._seed, purpose, str(sender), str(receiver))
        return draw_bits(key, number)


class Trial(Struct, frozen=True, kw_only=True):
    """Everything that a run depends on. What isn't given is up to the algorithm.

    `kinds` are faults drawn from the seed, with how many of each; `faults` are written out. `day` is the kind of day;
    without one a run has a usual day, and a search draws one for each seed.
    """

    algorithm: Algorithm
    topology: str | Topology | None = None
    seed: int = 0
    parameters: dict[str, Any] = {}
    kinds: dict[str, float] = {}
    faults: tuple[Fault, ...] = ()
    latency: str | None = None
    fifo: bool | None = None
    until: int | None = None
    events_max: int = EVENTS_MAX
    script: Script | None = None
    day: Day | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ConfigurationError(
                f"{shown(self.algorithm)} isn't an algorithm", advice="use find(name), or Algorithm(...)"
            )
        if not isinstance(self.kinds, dict):
            raise ConfigurationError(
                f"{shown(self.kinds)} aren't kinds of faults", advice='write {"crash": 2, "loss": 0.1}'
            )
        parse_kinds(",".join(f"{kind}={number!r}" for kind, number in self.kinds.items()))

    @property
    def properties(self) -> tuple[Property, ...]:
        return self.algorithm.properties

    def graph(self) -> Topology:
        return as_topology(self.algorithm.topology if self.topology is None else self.topology, seed=self.seed)

    def end(self) -> int | None:
        if self.until is not None or self.algorithm.until is None:
            return self.until
        return as_time(self.algorithm.until, "the end")

    def link(self) -> Link:
        kinds = (self.day or USUAL_DAY).faults_of(self.kinds)
        return as_link(
            self.latency or self.algorithm.latency,
            loss=kinds.get("loss", 0.0),
            duplication=kinds.get("duplication", 0.0),
            fifo=self.algorithm.fifo if self.fifo is None else self.fifo,
        )

    def plan(self) -> Plan:
        """Return what determines a run apart from the nodes themselves, for the header of a recording."""
        return plan_of(self.graph(), self.link(), self.seed, self.end())

    def deliveries(self) -> Deliveries | None:
        """Return what decides how long messages take, unless they take what the seed draws for their links."""
        if self.script is None and self.day is not None and self.day.changes_messages:
            is_open = self.latency is None and self.algorithm.latency == LATENCY
            return DayDeliveries(self.day, self.seed, self.link(), is_open=is_open)
        return self.script

    def each_schedule(self) -> Iterator[Trial]:
        """Yield what is to be run of it: itself."""
        yield self

    def with_seed(self, seed: int) -> Trial:
        day = draw_day(seed, self.kinds) if self.day is None else self.day
        return structs.replace(self, seed=seed, day=day)

    def pinned(self) -> Trial:
        """Return the same trial with its topology and its faults written out."""
        graph = self.graph()
        kinds = (self.day or USUAL_DAY).faults_of(self.kinds)
        rest = {kind: number for kind, number in kinds.items() if kind in SHARES}
        drawn: tuple[Fault, ...] = ()
        if rest != kinds:
            drawn = draw_faults(kinds, graph, self.end() or self._length(graph), self.seed)
        return structs.replace(
            self, topology=graph, faults=tuple(sorted((*self.faults, *drawn), key=time_of)), kinds=rest
        )

    def _length(self, graph: Topology) -> int:
        """Return how long it takes if nothing goes wrong: faults that come after the end strike no node."""
        undisturbed = Scheduler.over(
            graph,
            self.algorithm.node,
            seed=self.seed,
            link=self.link(),
            parameters=self.parameters,
            script=self.deliveries(),
        )
        undisturbed.start_all_nodes()
        with suppress(ModelError):  # It will fail again, and is judged then.
            undisturbed.run(events_max=self.events_max)
        return undisturbed.now

    def scheduler(
        self,
        *,
        trace: bool | Callable[[NodeRecord], None] = False,
        properties: tuple[Property, ...] | None = None,
        deliveries: Deliveries | None = None,
    ) -> Scheduler:
        """Return the run, ready to start; properties and deliveries are the trial's own, unless others are given."""
        pinned = self.pinned()
        made = Scheduler.over(
            pinned.topology,
            self.algorithm.node,
            seed=self.seed,
            link=self.link(),
            parameters=self.parameters,
            faults=pinned.faults,
            properties=self.algorithm.properties if properties is None else properties,
            script=self.deliveries() if deliveries is None else deliveries,
            trace=trace,
        )
        made.start_all_nodes()
        return made

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it, and return how many lines its trace has as well."""
        count = 0

        def take(_: NodeRecord) -> None:
            nonlocal count
            count += 1

        outcome = self.run(trace=take)
        return outcome, count

    def run(
        self,
        *,
        executor: Executor | str = "inline",
        observer: Observer | None = None,
        watch: Watch | None = None,
        trace: Callable[[NodeRecord], None] | None = None,
    ) -> TrialOutcome:
        """Run it, and return the outcome; a failure of the model is an outcome, too.

        On executors other than inline, properties that are checked after every event are left out, as the outcome
        remarks; and of a run that fails before its end only the failure is known.
        """
        chosen = as_executor(executor, EXECUTORS)
        is_inline = chosen.kind == "inline"
        unseen = () if is_inline else tuple(each for each in self.algorithm.properties if each.when != AT_END)
        judged = tuple(each for each in self.algorithm.properties if each not in unseen)
        deliveries = self.deliveries()
        scheduler = self.scheduler(trace=trace or False, properties=judged, deliveries=deliveries)
        failure: ModelError | None = None
        try:
            scheduler.run(self.end(), events_max=self.events_max, executor=chosen, observer=observer, watch=watch)
        except ModelError as error:
            failure = error
            if not is_inline and not scheduler.is_over:
                if isinstance(error, Stuck):  # It was broken off somewhere, not where it went wrong.
                    raise
                return TrialOutcome.failed(self.seed, error)
        result = scheduler.result()
        return TrialOutcome(
            digest=result.digest,
            now=scheduler.now,
            events=result.events,
            members=result.members,
            dropped=result.dropped,
            monitors=result.monitors,
            failure=failure,
            is_cut=failure is not None and scheduler.is_cut,
            seed=self.seed,
            faults=scheduler.faults_so_far,
            faults_in_vain=scheduler.faults_in_vain if is_inline and failure is None else 0,
            unseen=tuple(map(str, unseen)),
            day=(self.day or USUAL_DAY).felt_by(deliveries, self.kinds) if is_inline else None,
        )


# -- Told step by step


def story_steps(trial: Trial, records: Iterable[NodeRecord]) -> Iterator[StoryStep]:
    """Yield what happened in a run of a trial. Faults matter, and messages that don't take the usual time."""
    exceptions = {} if trial.script is None else trial.script.exceptions
    numbers: dict[tuple[int, int], int] = {}
    for record in records:
        matters = record.is_fault or record.kind == "dropped"
        if record.kind == "sent" and record.node is not None and record.peer is not None:
            way = record.node, record.peer
            number = numbers[way] = numbers.get(way, -1) + 1
            matters = (*way, number) in exceptions or not record.arrivals
        who = "" if record.node is None else str(record.node)
        yield StoryStep(record.at, who, str(record).removeprefix(who).removeprefix(":").strip(), matters)


# -- Loaded from a user's file

FORM = 'write model = Algorithm(name="mine", node=Mine, topology="clique:3"), from worldline.nodes'


def load_trial(path: Path, seed: int | None = None) -> Trial:
    """Return what a file defines: its `model`, or a single class of nodes; with its own seed, if none is given.

    The path may be that of another name in the file: FILE.py:NAME.
    """
    file, name = _parts_of(path)
    made = None if name or defines_model(file) else lone_algorithm(file)
    if made is None:
        found = definition_in(file, name or MODEL, (Algorithm, Trial), FORM)
        made = found.maker.make(seed, {})
        if not isinstance(made, Algorithm | Trial):
            raise unfit(found.where, "what its model returns", made, FORM)
    trial = Trial(algorithm=made) if isinstance(made, Algorithm) else made
    return trial if seed is None else structs.replace(trial, seed=seed)


def _parts_of(path: Path) -> tuple[Path, str]:
    before, _, name = str(path).rpartition(":")
    return (Path(before), name) if before.endswith(".py") else (path, "")


def load_file(path: Path) -> Algorithm:
    """Return the algorithm of what a file defines."""
    return load_trial(path).algorithm


def lone_algorithm(path: Path) -> Algorithm | None:
    """Return the algorithm of a file that defines nothing but a class of nodes; None if it has no such class.

    One class is enough for a first try, on three nodes that all know each other, and without properties.
    """
    module = load_module(path)
    defined = [thing for thing in vars(module).values() if isinstance(thing, type) and issubclass(thing, Node)]
    kinds = [kind for kind in defined if kind.__module__ == module.__name__] or [
        kind for kind in defined if not kind.__module__.startswith("worldline.")
    ]
    kinds = [kind for kind in kinds if not any(kind in other.__mro__[1:] for other in kinds)]
    if len(kinds) > 1:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise ConfigurationError(f"{path} defines {len(kinds)} classes of nodes, {names}, but no model", advice=FORM)
    return Algorithm(name=path.stem, node=kinds[0], topology="clique:3") if kinds else None


# -- Many seeds


def search(
    trial: Trial,
    seeds: Sequence[int],
    *,
    workers: int = 1,
    file: Path | None = None,
    seconds_max: float | None = SECONDS_MAX,
    keeps_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Try seeds in order until one fails; `file` is the file that the algorithm was loaded from, if any.

    With `keeps_going`, the other seeds are tried too, and failures are counted.

    A seed that takes more than `seconds_max` seconds of real time counts as a failure: it probably never ends.
    """
    if not isinstance(trial, Trial):
        raise UsageError(f"{shown(trial)} isn't a trial", advice="search Trial(algorithm=...)")
    return search_seeds(
        trial,
        seeds,
        workers=workers,
        recipe=lambda: recipe_of(trial, file),
        seconds_max=seconds_max,
        keeps_going=keeps_going,
        progress=progress,
    )


def recipe_of(trial: Trial, file: Path | None) -> Recipe:
    """Say how another process makes the trial; `file` is the file that the algorithm was loaded from, if any."""
    fields = [name for name in trial.__struct_fields__ if file is None or name != "algorithm"]
    try:
        packed = pickle.dumps({name: getattr(trial, name) for name in fields})
    except Exception as error:  # Whatever the algorithm's own objects raise.
        raise UsageError(
            f"the algorithm can't be sent to other processes: {error}", advice="put it into a file of its own"
        ) from error
    return partial(_made, file, packed, bool(trial.algorithm.properties))


def _made(file: Path | None, packed: bytes, is_judged: bool) -> Trial:
    """Make the trial in another process, which loads the algorithm itself if it is a file's, and is given the rest.

    There may be no properties: a file's own may have been left out.
    """
    facts = pickle.loads(packed)
    if file is not None:
        loaded = load_file(file)
        facts["algorithm"] = loaded if is_judged else structs.replace(loaded, properties=())
    return Trial(**facts)


# Schedules as files: a trial that is written down whole, to be run again elsewhere.


class Delivery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message that isn't under way for the usual time; it takes several if it is duplicated, none if it is lost."""

    sender: int
    receiver: int
    number: int
    takes: tuple[str, ...]


class TrialFile(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All that a run depends on. `neighbors` are in the order of local links; weights are (a, b, weight)."""

    format: int
    algorithm: str = ""
    file: str = ""
    seed: int = 0
    parameters: dict[str, Any] = {}
    neighbors: tuple[tuple[int, ...], ...] = ()
    weights: tuple[tuple[int, int, int], ...] = ()
    latency: str = ""
    fifo: bool | None = None
    loss: float = 0.0
    duplication: float = 0.0
    until: str = ""
    events_max: int = EVENTS_MAX
    usual: str = ""
    messages: tuple[Delivery, ...] = ()
    faults: tuple[str, ...] = ()
    no_properties: bool = False
    day: str = ""


def save(trial: Trial, path: Path, *, file: Path | None = None) -> None:
    """Write a trial; `file` is where its algorithm was loaded from."""
    graph, end = trial.graph(), trial.end()
    exceptions = {} if trial.script is None else trial.script.exceptions
    try:
        given = {name: _finite(value) for name, value in trial.parameters.items()}
        parameters = json.decode(json.encode(given, order="deterministic"))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{trial.algorithm.name} has parameters that can't be written down: {error}") from error
    schedule = TrialFile(
        format=SAVED_FORMAT,
        algorithm="" if file is not None else trial.algorithm.name,
        file="" if file is None else os.path.relpath(file, path.parent),  # They are moved together.
        seed=trial.seed,
        parameters=parameters,
        neighbors=graph.neighbors,
        weights=tuple((a, b, weight) for (a, b), weight in sorted(graph.weights.items()) if weight != 1),
        latency=trial.latency or "",
        fifo=trial.fifo,
        loss=trial.kinds.get("loss", 0.0),
        duplication=trial.kinds.get("duplication", 0.0),
        until="" if end is None else format_time(end),
        events_max=trial.events_max,
        usual="" if trial.script is None else format_time(trial.script.usual[0]),
        messages=tuple(
            Delivery(sender=sender, receiver=receiver, number=number + 1, takes=tuple(map(format_time, delays)))
            for (sender, receiver, number), delays in sorted(exceptions.items())
        ),
        faults=tuple(map(str, trial.pinned().faults)),
        no_properties=not trial.algorithm.properties,
        day="" if trial.day is None or trial.script is not None else str(trial.day),
    )
    write_saved(path, schedule)


def load(path: Path, file: Path | None = None, option: str = "--file") -> tuple[Trial, Path | None]:
    """Read a trial, and return where its algorithm was loaded from if it isn't one of ours.

    That is `file`, which the caller names by an option: a schedule is data, and chooses no code.
    """
    schedule = read_saved(path, TrialFile, "a schedule")
    if schedule.file and file is None:
        named = os.path.normpath(path.parent / schedule.file)
        raise ConfigurationError(
            f"{path} is of an algorithm in a file, and runs only one that you name",
            advice=f"if you trust what it names: {option} {shlex.quote(named)}",
        )
    if file is not None and not schedule.file:
        raise ConfigurationError(
            f"{path} is of {shown(schedule.algorithm)}, not of a file", advice=f"leave out {option}"
        )
    try:
        trial = _trial(schedule, file)
        trial.scheduler()  # Whatever can't be run is refused there.
    except (ConfigurationError, OverflowError) as error:
        problem, advice = (error.problem, error.advice) if isinstance(error, ConfigurationError) else (str(error), None)
        raise ConfigurationError(f"{path}: {problem}", advice=advice) from error
    return trial, file


def _trial(schedule: TrialFile, file: Path | None) -> Trial:
    algorithm = find(schedule.algorithm) if file is None else load_file(file)
    if schedule.no_properties:
        algorithm = structs.replace(algorithm, properties=())
    script = None
    if schedule.usual:
        deliveries = {
            (each.sender, each.receiver, each.number - 1): tuple(as_latency(delay) for delay in each.takes)
            for each in schedule.messages
        }
        script = Script(as_latency(schedule.usual), deliveries)
    topology = Topology(schedule.neighbors, weights={(a, b): weight for a, b, weight in schedule.weights})
    for each in schedule.messages:
        _check(each, topology.num_nodes)
    if schedule.messages and not schedule.usual:
        raise ConfigurationError("it says how long single messages take, and not what is usual", advice='add "usual"')
    unknown = [name for name in schedule.parameters if name not in algorithm.parameters()]
    if unknown:
        raise ConfigurationError(f"{algorithm.name} has no parameter {shown(unknown[0])}")
    texts = {name: value for name, value in schedule.parameters.items() if isinstance(value, str)}
    return Trial(
        algorithm=algorithm,
        topology=topology,
        seed=schedule.seed,
        parameters={**schedule.parameters, **algorithm.parsed(texts)},
        faults=tuple(as_fault(text) for text in schedule.faults),
        latency=schedule.latency or None,
        fifo=schedule.fifo,
        kinds={kind: share for kind in SHARES if (share := getattr(schedule, kind))},
        until=as_time(schedule.until) if schedule.until else None,
        events_max=schedule.events_max,
        script=script,
        day=as_day(schedule.day, KINDS) if schedule.day else None,
    )


def _check(delivery: Delivery, num_nodes: int) -> None:
    """Refuse what names a message that no node can send."""
    for node in (delivery.sender, delivery.receiver):
        if not 0 <= node < num_nodes:
            raise ConfigurationError(
                f"a message goes from {delivery.sender} to {delivery.receiver}, and there is no {node}"
            )
    if delivery.sender == delivery.receiver or delivery.number < 1:
        raise ConfigurationError(
            f"there is no message {delivery.number} from {delivery.sender} to {delivery.receiver}",
            advice="they are counted from 1, and go to another node",
        )


def _finite(value: Any) -> Any:
    """Return a number that JSON doesn't have as a text, which is read like those of the command line."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
