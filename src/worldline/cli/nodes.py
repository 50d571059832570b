"""`worldline nodes`: run a distributed algorithm, or try it on many seeds and shrink what fails."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from msgspec import json, structs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from worldline.model import Network, Plan, UsageError, WorldlineError, format_time
from worldline.model.errors import Stuck
from worldline.model.reading import as_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.deadline import deadline
from worldline.nodes.faults import as_fault, parse_kinds, time_of
from worldline.nodes.loading import load_file
from worldline.nodes.node import Node
from worldline.nodes.pictures import Routes, diagram_svg, topology_svg
from worldline.nodes.reading import FORMS, parse_edges
from worldline.nodes.schedule import load, save
from worldline.nodes.scheduler import EVENTS_MAX, Scheduler
from worldline.nodes.search import PATIENCE_S, Report, search
from worldline.nodes.shrink import RUNS_MAX, Shrunk, shrink
from worldline.nodes.testimony import testify
from worldline.nodes.trace import Record, line_of, text_of
from worldline.nodes.trial import Trial
from worldline.recording import Recorder

LIST = "list"


def nodes(
    algorithm: Annotated[
        str | None, typer.Argument(metavar="[ALGORITHM|list]", help="Its name; `list` shows those that there are.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Your own: a file with a class of nodes, or an ALGORITHM.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option(metavar="SHAPE|FILE", help=f"{FORMS}; a .graphml or .edges file.")
    ] = None,
    edges: Annotated[str | None, typer.Option(metavar="EDGES", help="0-1,0-2,1-2; with weights 0-1=5.")] = None,
    seed: Annotated[int, typer.Option(help="What every draw follows from; with --seeds, the first one.")] = 0,
    seeds: Annotated[int | None, typer.Option(min=1, help="Try that many seeds, until one fails.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that try seeds (default: one for each processor).")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the algorithm.")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="LATENCY", help='How long messages take: 5ms, "uniform(1ms, 9ms)", ...')
    ] = None,
    fifo: Annotated[bool, typer.Option("--fifo", help="Messages on a link don't overtake each other.")] = False,
    loss: Annotated[float, typer.Option(min=0.0, max=1.0, help="Which share of the messages gets lost.")] = 0.0,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="FAULT", help='What goes wrong, and when: "2s crash 1", "3s recover 1".')
    ] = None,
    faults: Annotated[
        str | None, typer.Option(metavar="KINDS", help="Faults that the seed draws: crash=2,partition,link,loss=0.1.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="When the run ends, if not by itself.")] = None,
    events_max: Annotated[
        int, typer.Option(min=1, help="After so many events it is taken to have no end.")
    ] = EVENTS_MAX,
    patience: Annotated[float, typer.Option(min=0.001, help="Seconds of real time that a run may take.")] = PATIENCE_S,
    schedule: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Run a schedule that --save has written.")
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.json", help="Write down the run, or the shrunk one, whole.")
    ] = None,
    no_shrink: Annotated[bool, typer.Option("--no-shrink", help="Leave what fails as it was found.")] = False,
    record: Annotated[Path | None, typer.Option(metavar="FILE.mcap", help="Record the run.")] = None,
    diagram: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw its space-time diagram.")] = None,
    topology_plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the topology, with routes.")
    ] = None,
    root: Annotated[
        int, typer.Option("--routes-to", metavar="NODE", help="Whither the routes lead that are drawn.")
    ] = 0,
    times: Annotated[bool, typer.Option("--times", help="Put the time in front of every line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trace as JSON, a record on each line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no trace.")] = False,
) -> None:
    """Run a distributed algorithm and print what happens, or try it on many seeds.

    A run is fixed by its options and its seed. What fails is repeated by the command that is printed with it.
    """
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, file=sys.stdout)
    if algorithm == LIST and file is None:
        _list(console)
        return
    if schedule is not None:
        if algorithm is not None or file is not None or topology or edges or seeds:
            raise UsageError("a schedule says all of that itself", advice="use --schedule FILE alone")
        trial, source = load(schedule)
    else:
        source = file
        trial = Trial(
            algorithm=_algorithm(algorithm, file),
            topology=parse_edges(edges) if edges is not None else topology,
            seed=seed,
            kinds={**parse_kinds(faults or ""), **({"loss": loss} if loss else {})},
            faults=tuple(sorted((as_fault(text) for text in fault or ()), key=time_of)),
            latency=latency,
            fifo=fifo,
            until=None if until is None else as_time(until, "the end"),
            events_max=events_max,
        )
        if edges is not None and topology is not None:
            raise UsageError("--edges and --topology both say what the network is", advice="use one of them")
        trial = structs.replace(trial, parameters=trial.algorithm.parsed(_pairs(parameters or [])))
    if seeds is None:
        _Show(console, times=times, as_json=as_json, quiet=quiet).run(
            trial,
            source,
            patience=patience,
            record=record,
            diagram=diagram,
            topology_plot=topology_plot,
            root=root,
            save_to=save_to,
        )
        return
    if record or diagram or topology_plot:
        raise UsageError("--record, --diagram and --topology-plot show one run", advice="use them with --seed")
    files = [] if source is None else [source]
    count = workers or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with _bar("seeds", seeds) as progress:
        report = search(
            trial, range(seed, seed + seeds), workers=count, files=files, patience_s=patience, progress=progress
        )
    _report(console, trial, report)
    if report.failure is None:
        return
    failed = structs.replace(trial, seed=report.failure.seed)
    console.print("to repeat it:")
    console.print(f"  {_command(failed, source)}")
    if not no_shrink and not isinstance(report.failure.failure, Stuck):  # What has no end has no short form either.
        with _bar("runs", RUNS_MAX) as progress:
            _show_shrunk(console, shrink(failed, progress=progress), source, save_to, times=times)
    raise typer.Exit(1)


# -- One run


class _Show:
    """Runs one trial and shows it."""

    def __init__(self, console: Console, *, times: bool, as_json: bool, quiet: bool) -> None:
        self._console = console
        self._times = times
        self._as_json = as_json
        self._quiet = quiet

    def run(
        self,
        trial: Trial,
        source: Path | None,
        *,
        patience: float,
        record: Path | None,
        diagram: Path | None,
        topology_plot: Path | None,
        root: int,
        save_to: Path | None,
    ) -> None:
        if not 0 <= root < trial.graph().num_nodes:
            raise UsageError(f"no route leads to {root}: there is no such node")
        keeps = record is not None or diagram is not None
        records: list[Record] = []
        run = trial.scheduler(trace=self._sink(records, keeps=keeps) if keeps or not self._quiet else False)
        run.records = records
        recorder = _recorder(record, trial, run)
        if not self._quiet and not self._as_json:
            self._console.print(run.topology.text())
        failure: WorldlineError | None = None
        try:
            with deadline(patience):
                run.run(trial.end(), events_max=trial.events_max)
        except WorldlineError as error:
            failure = error
        except BaseException:
            if recorder is not None:
                recorder.abandon("interrupted", at=run.now)
            raise
        if recorder is not None:
            _record(run, recorder, failure)
        title = f"{trial.algorithm.name}, {run.topology.name or f'{run.num_nodes} nodes'}, seed {trial.seed}"
        self._draw(run, title, diagram, topology_plot, root)
        if save_to is not None:
            save(trial, save_to, file=source)
        self._conclude(trial, run, failure)

    def _sink(self, records: list[Record], *, keeps: bool) -> Callable[[Record], None]:
        """Return what takes the records: printed as they come, and kept if they are needed."""

        def take(record: Record) -> None:
            if keeps:
                records.append(record)
            if not self._quiet:
                print(json.encode(record).decode() if self._as_json else line_of(record, times=self._times))

        return take

    def _draw(self, run: Scheduler, title: str, diagram: Path | None, topology_plot: Path | None, root: int) -> None:
        if diagram is not None:
            _write(diagram, diagram_svg(run.records, run.num_nodes, title=title, until=run.now))
        if topology_plot is not None:
            _write(topology_plot, topology_svg(run.topology, routes=_routes(run, root), title=title))

    def _conclude(self, trial: Trial, run: Scheduler, failure: WorldlineError | None) -> None:
        if self._as_json:
            self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)
        if not self._quiet and not self._as_json:
            self._console.print("---")
        if failure is not None:
            raise failure
        for each in trial.algorithm.properties:
            self._console.print(f"holds {each}")
        self._console.print(f"{format_time(run.now)} simulated, {run.result()}")


def _recorder(path: Path | None, trial: Trial, run: Scheduler) -> Recorder | None:
    """Open the recording before the run: what can't be written is refused before anything has happened."""
    if path is None:
        return None
    names = tuple(name for name, _, _ in run.histories())
    plan = Plan(roster=names, network=Network(default=trial.link()), seed=trial.seed, end=trial.end())
    return Recorder(path, plan, federation=trial.algorithm.name, encoding="json")


def _record(run: Scheduler, recorder: Recorder, failure: WorldlineError | None) -> None:
    testify(run, recorder)
    if failure is None:
        recorder.close()
    else:
        recorder.abandon(str(failure), participant=failure.participant, at=failure.at)


def _routes(run: Scheduler, root: int) -> Routes | None:
    """Return each node's way to one of them, if the algorithm finds ways."""
    ways = {node.id: node.route(root) for node in run.nodes if isinstance(node, Node)}
    links = {node: link for node, (link, _) in ways.items() if link is not None and node != root}
    distances = {node: distance for node, (_, distance) in ways.items() if distance is not None}
    return Routes(root, links, distances) if links else None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from error


# -- Many runs


def _report(console: Console, trial: Trial, report: Report) -> None:
    tried = f"{report.tried:,} seed{'' if report.tried == 1 else 's'}, {report.events:,} events"
    if report.failure is None:
        for each in trial.algorithm.properties:
            console.print(f"holds {each}")
        console.print(f"{tried}, digest {report.digest}")
    else:
        console.print(f"{tried}: seed {report.failure.seed} fails")
        console.print(f"  {report.failure.failure}", style="red")


def _show_shrunk(console: Console, shrunk: Shrunk, source: Path | None, save_to: Path | None, *, times: bool) -> None:
    console.print(
        f"shrunk in {shrunk.runs:,} runs, from {shrunk.drawn:,} draws to {shrunk.left}, "
        f"and from {shrunk.records_before:,} to {len(shrunk.records):,} lines of trace:"
    )
    console.print(shrunk.text())
    console.print("---")
    console.print(text_of(shrunk.records, times=times))
    console.print(str(shrunk.failure), style="red")
    if save_to is not None:
        save(shrunk.trial, save_to, file=source)
        console.print("to repeat it:")
        console.print(f"  worldline nodes --schedule {shlex.quote(str(save_to))}")


def _command(trial: Trial, source: Path | None) -> str:
    """Return the command that runs a trial again."""
    words = ["worldline", "nodes", *(["--file", str(source)] if source is not None else [trial.algorithm.name])]
    if isinstance(trial.topology, str):
        words += ["--topology", trial.topology]
    elif trial.topology is not None:
        weights = trial.topology.weights
        words += ["--edges", ",".join(f"{a}-{b}={weights[a, b]}" for a, b in trial.topology.edges)]
    words += [word for name, value in trial.parameters.items() for word in ("--set", f"{name}={value}")]
    words += ["--latency", trial.latency] if trial.latency else []
    words += ["--fifo"] if trial.fifo else []
    words += [word for fault in trial.faults for word in ("--fault", str(fault))]
    words += ["--faults", ",".join(f"{kind}={number:g}" for kind, number in trial.kinds.items())] if trial.kinds else []
    words += ["--until", format_time(trial.until)] if trial.until is not None else []
    return shlex.join([*words, "--seed", str(trial.seed)])


# -- What is asked for


def _algorithm(name: str | None, file: Path | None) -> Algorithm:
    if file is not None:
        if name is not None:
            raise UsageError(f"--file says which algorithm it is, and so does {name}", advice="use one of them")
        return load_file(file)
    if name is None:
        raise UsageError(
            "which algorithm?", advice="name one, see `worldline nodes list`, or give your own with --file"
        )
    return find(name)


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text} sets nothing", advice="write --set NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def _list(console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("algorithm", "topology", "what it does"):
        table.add_column(title, overflow="fold")
    for name in NAMES:
        found = find(name)
        table.add_row(name, found.topology, found.summary)
    if not console.is_terminal:
        console.width = 160
    console.print(table)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar, if somebody looks at a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)
