"""Runs one trial of a distributed algorithm, and shows it: as a trace, recorded, in pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from msgspec import json
from rich.console import Console
from rich.text import Text

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, own_lines
from worldline.cli.recorded import recording_of
from worldline.files.saving import destination
from worldline.files.saving import save as save_file
from worldline.model import UsageError, WorldlineError, format_time
from worldline.model.errors import Unread
from worldline.model.text import printable_json
from worldline.nodes.node import Node
from worldline.nodes.schedule import save
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.trace import NodeRecord, line_of
from worldline.nodes.trial import Trial
from worldline.pictures.nodes import Routes, diagram_svg, topology_svg
from worldline.processes.executor import Inline
from worldline.recording import Shelf
from worldline.search.searching import deadline, remarks_on
from worldline.targets.algorithm import ReadyTrial

NO_PROPERTIES = "no properties: only errors would have been noticed"


class NodesOutputs(NamedTuple):
    """Where a run is written to, besides the terminal. Routes are drawn to `root`."""

    record: Shelf | None
    diagram: Path | None
    topology_plot: Path | None
    root: int
    save: Path | None

    @property
    def shows_one_run(self) -> bool:
        return any((self.record, self.diagram, self.topology_plot))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        if self.save is not None:
            destination(self.save)
        for path in (self.diagram, self.topology_plot):
            if path is not None and not destination(path).is_stream and path.suffix != ".svg":
                raise UsageError(f"{path} isn't the name of a picture", advice="they are SVG: FILE.svg")


class NodesNarrator:
    """Tells a run as it happens."""

    def __init__(self, console: Console, *, times: bool, as_json: bool, quiet: bool) -> None:
        self._console = PlainConsole(sys.stderr) if as_json else console
        self._times = times
        self._as_json = as_json
        self.is_told = not quiet
        self._is_read = True
        self._is_text = not quiet and not as_json

    def sink(self, kept: list[NodeRecord] | None) -> bool | Callable[[NodeRecord], None]:
        """Return what takes the records: tells them as they come, and keeps them if they are needed."""
        if not self.is_told:
            return False if kept is None else kept.append

        def take(record: NodeRecord) -> None:
            if kept is not None:
                kept.append(record)
            as_json = self._as_json
            self._tell(printable_json(json.encode(record).decode()) if as_json else line_of(record, times=self._times))

        return take

    def _tell(self, line: str) -> None:
        """Print a line, as long as somebody reads: what is recorded and drawn doesn't depend on that."""
        if self._is_read:
            try:
                print(line)
            except Unread:
                self._is_read = False

    def say(self, line: str | Text) -> None:
        """Say something of the run that isn't part of what happens in it."""
        if self._is_text:
            self._console.print(line)

    def begin(self, run: Scheduler) -> None:
        self.say(own_lines(run.topology.text()))

    def end(self, trial: Trial, run: Scheduler, failure: WorldlineError | None) -> None:
        if failure is not None:
            raise failure
        for each in trial.algorithm.properties:
            self._console.print(f"holds {each}")
        if not trial.algorithm.properties:
            self._console.print(NO_PROPERTIES)
        self._console.print(f"{format_time(run.now)} simulated, {run.result()}")
        for remark in remarks_on(run.faults_so_far, run.faults_in_vain):
            self._console.print(remark)


def run_one(
    trial: Trial,
    source: Path | None,
    narrator: NodesNarrator,
    outputs: NodesOutputs,
    seconds_max: float,
    *,
    target: str = "",
    settings: tuple[str, ...] = (),
) -> None:
    """Run a trial; `source` is the file that its algorithm was loaded from.

    `target` and `settings` are what `worldline run` would be given for the same, if it could be.
    """
    if not 0 <= outputs.root < trial.graph().num_nodes:
        raise UsageError(f"no route leads to {outputs.root}: there is no such node")
    kept: list[NodeRecord] | None = [] if outputs.diagram else None
    run = trial.scheduler(trace=narrator.sink(kept))
    failure: WorldlineError | None = None
    ready = ReadyTrial(trial, Inline())
    ready.target, ready.settings = target, settings
    with recording_of(ready, outputs.record, narrator.say) as recording:
        try:
            narrator.begin(run)
            with deadline(seconds_max), nullcontext() if narrator.is_told else progress() as watch:
                outcome = run.run(trial.end(), events_max=trial.events_max, observer=recording.observer, watch=watch)
            recording.conclude(outcome)
        except WorldlineError as error:
            failure = error
            recording.break_off(error, end=run.now + (not run.is_cut))
        narrator.say("---")
    _draw(trial, run, kept, outputs, failure)
    if outputs.save is not None:
        save(trial, outputs.save, file=source)
    narrator.end(trial, run, failure)


def _draw(
    trial: Trial,
    run: Scheduler,
    records: list[NodeRecord] | None,
    outputs: NodesOutputs,
    failure: WorldlineError | None,
) -> None:
    title = f"{trial.algorithm.name}, {run.topology.name or f'{run.num_nodes} nodes'}, seed {trial.seed}"
    if outputs.diagram is not None and records is not None:
        picture = diagram_svg(records, run.num_nodes, title=title, until=run.now, failure=failure)
        save_file(outputs.diagram, picture.encode())
    if outputs.topology_plot is not None:
        routes = _routes(run, outputs.root)
        save_file(outputs.topology_plot, topology_svg(run.topology, routes=routes, title=title).encode())


def _routes(run: Scheduler, root: int) -> Routes | None:
    """Return each node's way to one of them, if the algorithm finds ways."""
    ways = {node.id: node.route(root) for node in run.nodes if isinstance(node, Node)}
    links = {node: link for node, (link, _) in ways.items() if link is not None and node != root}
    distances = {node: distance for node, (_, distance) in ways.items() if distance is not None}
    return Routes(root, links, distances) if links else None
