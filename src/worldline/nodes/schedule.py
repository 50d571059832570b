"""Schedules as files: a trial that is written down whole, to be run again elsewhere."""

from __future__ import annotations

import math
import os
import shlex
from pathlib import Path
from typing import Any

from msgspec import Struct, json, structs

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.reading import as_latency, as_time
from worldline.model.time import format_time
from worldline.nodes.algorithms import find
from worldline.nodes.faults import KINDS, SHARES, as_fault
from worldline.nodes.scheduler import EVENTS_MAX
from worldline.nodes.topology import Topology
from worldline.nodes.trace import Script
from worldline.nodes.trial import Trial, load_file
from worldline.search.day import as_day
from worldline.search.searching import SAVED_FORMAT, read_saved, write_saved


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


def load(path: Path, file: Path | None = None) -> tuple[Trial, Path | None]:
    """Read a trial, and return where its algorithm was loaded from if it isn't one of ours.

    That is `file`, which the caller names: a schedule is data, and chooses no code.
    """
    schedule = read_saved(path, TrialFile, "a schedule")
    if schedule.file and file is None:
        named = os.path.normpath(path.parent / schedule.file)
        raise ConfigurationError(
            f"{path} is of an algorithm in a file, and runs only one that you name",
            advice=f"if you trust what it names: --file {shlex.quote(named)}",
        )
    if file is not None and not schedule.file:
        raise ConfigurationError(f"{path} is of {shown(schedule.algorithm)}, not of a file", advice="leave out --file")
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
