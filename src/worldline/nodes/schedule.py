"""Schedules as files: a trial that is written down whole, to be run again elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, json

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.reading import as_time
from worldline.model.time import format_time
from worldline.nodes.algorithms import find
from worldline.nodes.faults import as_fault
from worldline.nodes.loading import load_file
from worldline.nodes.script import Script
from worldline.nodes.topology import Topology
from worldline.nodes.trial import Trial

FORMAT = 1


class Delivery(Struct, frozen=True, kw_only=True):
    """A message that isn't under way for the usual time; it takes several if it is duplicated, none if it is lost."""

    sender: int
    receiver: int
    number: int
    takes: tuple[str, ...]


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a run depends on. `neighbours` are in the order of local links; weights are (a, b, weight)."""

    format: int = FORMAT
    algorithm: str = ""
    file: str = ""
    seed: int = 0
    parameters: dict[str, Any] = {}
    neighbours: tuple[tuple[int, ...], ...] = ()
    weights: tuple[tuple[int, int, int], ...] = ()
    latency: str = ""
    fifo: bool = False
    loss: float = 0.0
    until: str = ""
    usual: str = ""
    messages: tuple[Delivery, ...] = ()
    faults: tuple[str, ...] = ()


def save(trial: Trial, path: Path, *, file: Path | None = None) -> None:
    """Write a trial; `file` is where its algorithm was loaded from."""
    graph, end = trial.graph(), trial.end()
    exceptions = {} if trial.script is None else trial.script.exceptions
    schedule = Schedule(
        algorithm="" if file is not None else trial.algorithm.name,
        file="" if file is None else str(file),
        seed=trial.seed,
        parameters=trial.parameters,
        neighbours=graph.neighbours,
        weights=tuple((a, b, weight) for (a, b), weight in sorted(graph.weights.items()) if weight != 1),
        latency=trial.latency or "",
        fifo=trial.fifo,
        loss=trial.kinds.get("loss", 0.0),
        until="" if end is None else format_time(end),
        usual="" if trial.script is None else format_time(trial.script.usual[0]),
        messages=tuple(
            Delivery(sender=sender, receiver=receiver, number=number + 1, takes=tuple(map(format_time, delays)))
            for (sender, receiver, number), delays in sorted(exceptions.items())
        ),
        faults=tuple(map(str, trial.pinned().faults)),
    )
    text = json.format(json.encode(schedule, order="deterministic"), indent=1)
    try:
        path.write_bytes(text + b"\n")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from error


def load(path: Path) -> tuple[Trial, Path | None]:
    """Read a trial, and where its algorithm was loaded from if it isn't one of ours."""
    try:
        schedule = json.decode(path.read_bytes(), type=Schedule)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} isn't a schedule: {error}") from error
    if schedule.format != FORMAT:
        raise ConfigurationError(f"{path} has the format {schedule.format}", advice=f"this version reads {FORMAT}")
    file = None
    if schedule.file:
        # Beside the schedule, or where it says, seen from here: files are moved together.
        file = next((each for each in (path.parent / schedule.file, Path(schedule.file)) if each.is_file()), None)
        if file is None:
            raise ConfigurationError(f"{path} is for {shown(schedule.file)}, and there is no such file")
    algorithm = find(schedule.algorithm) if file is None else load_file(file)
    weights = {(a, b): weight for a, b, weight in schedule.weights}
    script = None
    if schedule.usual:
        script = Script(
            as_time(schedule.usual),
            {
                (each.sender, each.receiver, each.number - 1): tuple(as_time(delay) for delay in each.takes)
                for each in schedule.messages
            },
        )
    trial = Trial(
        algorithm=algorithm,
        topology=Topology(schedule.neighbours, weights=weights),
        seed=schedule.seed,
        parameters=schedule.parameters,
        faults=tuple(as_fault(text) for text in schedule.faults),
        latency=schedule.latency or None,
        fifo=schedule.fifo,
        kinds={"loss": schedule.loss} if schedule.loss else {},
        until=as_time(schedule.until) if schedule.until else None,
        script=script,
    )
    return trial, file
