"""`worldline nodes`: run a distributed algorithm, or try it on many seeds and shrink what fails."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import typer
from msgspec import Struct, json, structs
from rich.console import Console
from rich.text import Text

from worldline.cli.console import PlainConsole, output_free_for, own_lines, progress
from worldline.cli.options import PAGE, PageOptions, RecordingOptions, refuse_given, takes
from worldline.cli.runner import interruptible, page_of_ready, recording_of, run_to_end
from worldline.cli.search_story import OF_SEEDS, Searched, SeedsOptions, run_search
from worldline.files.loading import pairs
from worldline.files.saving import destination
from worldline.files.saving import save as save_file
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model import UsageError, WorldlineError, format_time
from worldline.model.errors import Unread
from worldline.model.reading import as_time
from worldline.model.text import counted, printable_json
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import KINDS, SHARES, as_fault, parse_kinds, time_of
from worldline.nodes.node import Node
from worldline.nodes.scheduler import EVENTS_MAX, Scheduler
from worldline.nodes.shapes import parse_edges
from worldline.nodes.shrinking import as_kept, shrink
from worldline.nodes.trace import NodeRecord, line_of, text_of
from worldline.nodes.trial import Trial, load, load_trial, recipe_of, save
from worldline.pictures.nodes import Routes, diagram_svg, topology_svg
from worldline.processes.executor import Executor
from worldline.recording import Shelf
from worldline.search.day import USUAL_DAY, as_day
from worldline.search.searching import SECONDS_MAX, deadline, remarks_on
from worldline.search.shrinking import Shrunk
from worldline.targets import RunOptions
from worldline.targets.models import ready_trial

# What stands below the options in `worldline nodes --help`: all that has a syntax of its own, for 80 columns.

SYNTAX = """\
Shapes, for --topology:
  clique:5  ring:8  line:4  star:6  hypercube:4  grid:4x5  torus:4x4
  tree:15,arity=2             a root, its children, and so on
  random:20,p=0.2             each edge with probability p
  random:20,degree=4          this many neighbors on average
  scale-free:50,m=2           each new node links to m older ones
  small-world:50,k=4,p=0.1    a ring with k neighbors each, some links rewired
  geometric:40,radius=0.25    random points in a square, linked if near
  Append to any:  ,connected  ,shuffled  ,weights=1-10  ,weights=1-999,distinct

Latencies, for --latency:
  5ms  "uniform(1ms, 9ms)"  "exponential(1ms, 20ms)"  "normal(6ms, 1ms, 4ms)"
  "table(3ms, 3ms, 17ms)"

Faults, for --fault:
  "2s crash 1"  "3s recover 1"  "1s partition 0 1"  "2s repair"
  "1s down 0 2"  "2s up 0 2"  "1s add 0 3"  "1s remove 0 1"

Kinds of faults, for --faults:
  crash=2,partition=1,link=2,loss=0.1,duplication=0.1   or any of these

What shrinking leaves alone, for --keep:
  nodes        the number of nodes
  topology     the graph itself
  parameters   all parameters; or name them: rounds
  faults       all faults, including those drawn from the seed
  messages     the latency of every message
  seed         everything drawn from the seed
"""


EPILOG = SYNTAX
LIST = "list"
CLAIMED = "claimed"
_SUMMARY_MAX = 78


class TrialOptions(Struct, frozen=True, kw_only=True):
    """What is tried: on which network, with which faults, and until when."""

    topology: str | None = None
    edges: str | None = None
    seed: int | None = None
    parameters: tuple[str, ...] = ()
    latency: str | None = None
    fifo: bool | None = None
    loss: float = 0.0
    fault: tuple[str, ...] = ()
    faults: str | None = None
    until: str | None = None
    events_max: int | None = None
    day: str | None = None
    no_properties: bool = False

    def applied(self, trial: Trial) -> tuple[Trial, bool]:
        """Return a trial as these options want it, and whether `worldline run` could say as much."""
        chosen = trial.algorithm
        if self.edges is not None and self.topology is not None:
            raise UsageError("--edges and --topology both say what the network is", advice="use one of them")
        loss = {"loss": self.loss} if self.loss else {}
        said = {
            "algorithm": structs.replace(chosen, properties=()) if self.no_properties else None,
            "topology": self.topology if self.edges is None else parse_edges(self.edges).name,
            "parameters": {**trial.parameters, **chosen.parsed(pairs(self.parameters))},
            "kinds": {**parse_kinds(_faults(chosen, self.faults)), **loss} or None,
            "faults": tuple(sorted(map(as_fault, self.fault), key=time_of)) or None,
            "latency": self.latency,
            "fifo": self.fifo,
            "until": None if self.until is None else as_time(self.until),
            "events_max": self.events_max,
            "day": None if self.day is None else as_day(self.day, KINDS),
        }
        is_plain = all(value is None or name in ("parameters", "until") for name, value in said.items())
        return structs.replace(trial, **{name: value for name, value in said.items() if value is not None}), is_plain


class NodesOutputs(Struct, frozen=True, kw_only=True):
    """How a run is shown, and where it is written to. Routes are drawn to `root`."""

    recording: RecordingOptions = RecordingOptions()
    diagram: Path | None = None
    topology_plot: Path | None = None
    root: int = 0
    times: bool = False
    as_json: bool = False
    quiet: bool = False

    @property
    def shows_one_run(self) -> bool:
        return any((self.recording.record, self.diagram, self.topology_plot, self.as_json))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        for path in (self.diagram, self.topology_plot):
            if path is not None and not destination(path).is_stream and path.suffix != ".svg":
                raise UsageError(f"{path} isn't the name of a picture", advice="they are SVG: FILE.svg")


class SourcedTrial(NamedTuple):
    """A trial, and where it is from.

    `source` is the file that its algorithm was loaded from, `save_to` where it is saved. `target` is what `worldline
    run` would be given for the same, if it could be, and `settings` what it would be given besides.
    """

    trial: Trial
    source: Path | None
    seconds_max: float
    save_to: Path | None = None
    target: str = ""
    settings: tuple[str, ...] = ()

    def save(self, trial: Trial | None = None) -> None:
        """Save it as a schedule, or what was made of it, if that is wanted."""
        if self.save_to is not None:
            save(trial or self.trial, self.save_to, file=self.source)


# Runs one trial of a distributed algorithm, and shows it: as a trace, recorded, in pictures.

NO_PROPERTIES = "no properties: only errors would have been noticed"


def _sink(outputs: NodesOutputs, kept: list[NodeRecord] | None) -> bool | Callable[[NodeRecord], None]:
    """Return what takes the records: prints them as they come, and keeps them if they are needed."""
    if outputs.quiet:
        return False if kept is None else kept.append
    is_read = True

    def take(record: NodeRecord) -> None:
        nonlocal is_read
        if kept is not None:
            kept.append(record)
        if is_read:  # As long as there is a reader: what is recorded and drawn doesn't depend on that.
            as_json, times = outputs.as_json, outputs.times
            try:
                print(printable_json(json.encode(record).decode()) if as_json else line_of(record, times=times))
            except Unread:
                is_read = False

    return take


def run_one(asked: SourcedTrial, outputs: NodesOutputs, shelf: Shelf | None, paging: PageOptions) -> None:
    """Run a trial, tell it as it happens, and draw it; a failure is raised when all of that is done."""
    trial = asked.trial
    if not 0 <= outputs.root < trial.graph().num_nodes:
        raise UsageError(f"no route leads to {outputs.root}: there is no such node")
    console = PlainConsole(sys.stderr if outputs.as_json else None)
    kept: list[NodeRecord] | None = [] if outputs.diagram else None
    scheduler = trial.scheduler(trace=_sink(outputs, kept))
    ready = ready_trial(trial, Executor("inline"))
    ready.target, ready.options = asked.target, RunOptions(settings=asked.settings)

    def say(line: str | Text) -> None:
        """Say something of the run that isn't part of what happens in it."""
        if not outputs.quiet and not outputs.as_json:
            console.print(line)

    def run(observer: Observer | None, watch: Watch | None) -> Outcome:
        try:
            say(own_lines(scheduler.topology.text()))
            with deadline(asked.seconds_max):
                return scheduler.run(trial.end(), events_max=trial.events_max, observer=observer, watch=watch)
        except WorldlineError as error:
            return replace(scheduler.result(), failure=error, is_cut=scheduler.is_cut)

    with page_of_ready(ready, paging) as page:
        outcome = run_to_end(
            run,
            recording_of(ready.recorder, shelf, say),
            showing=progress if outputs.quiet else nullcontext,
            ended=lambda _: say("---"),
            page=page,
        )
    _draw(trial, scheduler, kept, outputs, outcome.failure)
    asked.save()
    if outcome.failure is not None:
        raise outcome.failure
    for line in [f"holds {each}" for each in trial.properties] or [NO_PROPERTIES]:
        console.print(line)
    console.print(f"{format_time(scheduler.now)} simulated, {scheduler.result()}")
    for remark in remarks_on(scheduler.faults_so_far, scheduler.faults_in_vain):
        console.print(remark)


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


# Tries a distributed algorithm on many seeds, shrinks what fails, and says how to repeat it.


def _searched(
    console: Console, asked: SourcedTrial, kept: frozenset[str], outputs: NodesOutputs, paging: PageOptions
) -> Searched[Trial]:
    """Return what is searched; `kept` is what shrinking leaves as it is."""
    trial, source, seconds_max, *_ = asked
    file = [] if source is None else ["--file", str(source)]

    def tell(shrunk: Shrunk[Trial]) -> None:
        if not outputs.quiet:
            console.print("---")
            console.print(own_lines(text_of(shrunk.records, times=outputs.times)))
        console.print(str(shrunk.failure), style="red")

    def show(failing: Trial) -> None:
        from worldline.cli.view import show_nodes_trial  # Here, since few searches have a page.

        show_nodes_trial(trial.algorithm.name, failing, paging)

    return Searched(
        trial=trial,
        seconds_max=seconds_max,
        save_to=asked.save_to,
        unjudged=NO_PROPERTIES,
        recipe=lambda: recipe_of(trial, source),
        command=lambda failing: command_of(failing, source, seconds_max),
        command_of_saved=lambda path: shlex.join(["worldline", "nodes", *file, "--schedule", str(path)]),
        save=lambda found, path: save(found, path, file=source),
        shrink=lambda failing, progress: shrink(failing, keep=kept, seconds_max=seconds_max, progress=progress),
        describe=lambda shrunk: _describe(console, shrunk),
        tell=tell,
        show=show if paging.watch else None,
        tells_faults=bool(trial.faults) or any(kind not in SHARES for kind in trial.kinds),
    )


def _describe(console: Console, shrunk: Shrunk[Trial]) -> None:
    lines = len(shrunk.records)
    fewer = f", and from {shrunk.records_before:,} to {lines:,} lines of trace" if lines < shrunk.records_before else ""
    runs, draws = counted(shrunk.runs, "run"), counted(shrunk.drawn, "draw")
    console.print(f"shrunk in {runs}, from {draws} to {shrunk.left}{fewer}:")
    console.print(own_lines(shrunk.text()))
    if shrunk.unsure:
        least = ", ".join(f'"{name}": ...' for name in shrunk.unsure)
        stay = "stays" if len(shrunk.unsure) == 1 else "stay"
        console.print(
            f"(how small it may be isn't known, so {' and '.join(shrunk.unsure)} {stay}: set the minimum in its model:"
            f" least={{{least}}})"
        )


def _exact(number: float) -> str:
    """Write a number as a person would: 2, not 2.0."""
    return str(int(number)) if number == int(number) else repr(number)


def command_of(trial: Trial, source: Path | None, seconds_max: float = SECONDS_MAX) -> str:
    """Return the command that runs a trial again."""
    words = ["worldline", "nodes", *(["--file", str(source)] if source is not None else [trial.algorithm.name])]
    if isinstance(trial.topology, str):  # A file has others in itself.
        words += ["--edges" if trial.topology[:1].isdecimal() else "--topology", trial.topology]
    words += [word for name, value in trial.parameters.items() for word in ("--set", f"{name}={value}")]
    words += ["--latency", trial.latency] if trial.latency else []
    words += [] if trial.fifo is None else ["--fifo"] if trial.fifo else ["--no-fifo"]
    words += [word for fault in trial.faults for word in ("--fault", str(fault))]
    words += (
        ["--faults", ",".join(f"{kind}={_exact(number)}" for kind, number in trial.kinds.items())]
        if trial.kinds
        else []
    )
    words += ["--until", format_time(trial.until)] if trial.until is not None else []
    words += ["--events-max", str(trial.events_max)] if trial.events_max != EVENTS_MAX else []
    words += ["--day", str(trial.day)] if trial.day is not None and trial.day != USUAL_DAY else []
    words += ["--no-properties"] if not trial.algorithm.properties else []
    words += ["--seconds-max", f"{seconds_max:g}"] if seconds_max != SECONDS_MAX else []
    return shlex.join([*words, "--seed", str(trial.seed)])


@interruptible()
@takes(
    f"""
    algorithm: ALGORITHM|list  Name of a built-in algorithm; `list` lists them.
    --file FILE.py[:NAME]  Your own algorithm: a file with `model`, or NAME, or with one node class. With --schedule:
        that of a file, which a schedule doesn't choose.
    --seed N  Seed of all random draws; with --seeds, the first one (default: 0).
    parameters: --set NAME=VALUE  Set an algorithm parameter.
    --day
    --schedule FILE.json  Run a schedule written by --save.
    save_to: --save FILE.json  Save the run, or the shrunk failure, as a schedule.
    Network:
    --topology SHAPE|FILE  A shape (below), or a .graphml or .edges file.
    --edges EDGES  The edges: 0-1,0-2,1-2; with weights: 0-1=5.
    --latency LATENCY  Message latency (below): 5ms.
    fifo: --fifo/--no-fifo  Keep messages on a link in order, or not.
    Faults:
    --loss 0.0 to 1.0  Fraction of messages to lose.
    --fault FAULT  A fault and its time (below): "2s crash 1".
    --faults KINDS  Faults to draw from the seed (below): crash,loss=0.1; or `claimed`: those the algorithm claims to
        tolerate.
    End of the run:
    --until TIME  End the run at this time, if it hasn't ended by itself.
    --events-max at least 1  Consider a run endless after this many events (default: {EVENTS_MAX:,}).
    --seconds-max at least 0.001  Consider a run endless after this many seconds of real time.
    Many seeds:
    --no-properties  Check no properties, which is faster.
    """,
    OF_SEEDS,
    """
    Many seeds:
    --keep NAMES  What shrinking leaves alone (below): nodes,rounds.
    Output:
    --record FILE.mcap  Record the run.
    --force
    --diagram FILE.svg  Draw a space-time diagram.
    --topology-plot FILE.svg  Draw the topology and routes.
    root: --routes-to NODE  Node that the drawn routes lead to.
    --times  Prefix each line with the time.
    as_json: --json  Print the trace as JSON, one record per line.
    --quiet, -q  Print no trace.
    """,
    PAGE,
)
def nodes(
    context: typer.Context,
    algorithm: str | None = None,
    *,
    file: Path | None = None,
    options: TrialOptions,
    seconds_max: float = SECONDS_MAX,
    search: SeedsOptions,
    schedule: Path | None = None,
    save_to: Path | None = None,
    outputs: NodesOutputs,
    paging: PageOptions,
) -> None:
    """Run a distributed algorithm and print what happens, or try it on many seeds.

    Options and seed determine the run. A failure comes with the command that repeats it.
    """
    console = PlainConsole()
    if algorithm == LIST and file is None:
        _list(console)
        return
    target = ""
    if schedule is not None:
        refuse_given(context, _BESIDE_A_SCHEDULE, "--schedule: a schedule says all of that itself")
        trial, source = load(schedule, file)
    else:
        trial, source = _trial(algorithm, file, options.seed), file
        trial, is_plain = options.applied(trial)
        target = str(file or algorithm) if is_plain else ""
    if search.keep is not None and (search.seeds is None or search.no_shrink):
        raise UsageError("--keep is about shrinking, and nothing is shrunk", advice="use --seeds, without --no-shrink")
    sourced = SourcedTrial(trial, source, seconds_max, save_to, target, options.parameters)
    shelf = outputs.recording.shelf()
    if save_to is not None:
        destination(save_to)
    outputs.check()
    if search.seeds is None:
        context.with_resource(output_free_for(shelf))
        run_one(sourced, outputs, shelf, paging)
        return
    if outputs.shows_one_run:
        raise UsageError("--record, --diagram, --topology-plot and --json show one run", advice="use them with --seed")
    kept = as_kept(search.keep or (), trial.algorithm)
    run_search(console, _searched(console, sourced, kept, outputs, paging), search)


# What goes with a schedule: how it is shown, not what happens.
_BESIDE_A_SCHEDULE = (
    "schedule",
    "file",
    "seconds_max",
    "record",
    "force",
    "diagram",
    "topology_plot",
    "root",
    "times",
    "as_json",
    "quiet",
    "watch",
    "port",
    "host",
    "no_browser",
)


def _trial(name: str | None, file: Path | None, seed: int | None) -> Trial:
    """Return what is to be tried, as far as it says itself how."""
    if file is not None:
        if name is not None:
            raise UsageError(f"--file says which algorithm it is, and so does {name}", advice="use one of them")
        return load_trial(file, seed)
    if name is None:
        raise UsageError(
            "which algorithm?", advice="name one, see `worldline nodes list`, or give your own with --file"
        )
    return Trial(algorithm=find(name), seed=seed or 0)


def _faults(algorithm: Algorithm, text: str | None) -> str:
    if text != CLAIMED:
        return text or ""
    if not algorithm.faults:
        raise UsageError(f"{algorithm.name} doesn't claim to tolerate any faults", advice="name some: --faults crash")
    return algorithm.faults


def _list(console: Console) -> None:
    """Show each algorithm on two lines of 80 columns: where it runs and what it stands, and what it does."""
    for name in NAMES:
        found = find(name)
        kinds = parse_kinds(found.faults)
        stands = "all faults" if set(kinds) == set(KINDS) else ", ".join(kinds)
        console.print(Text.assemble((f"{name:23}", "bold"), found.topology, f"; tolerates {stands}" if stands else ""))
        what, _, how = found.summary.partition(": ")
        does = found.summary if len(found.summary) <= _SUMMARY_MAX else f"{how[:1].upper()}{how[1:]}" or what
        console.print(f"  {does}", style="dim")
