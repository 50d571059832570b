"""`worldline nodes`: run a distributed algorithm, or try it on many seeds and shrink what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs
from rich.console import Console
from rich.text import Text

from worldline.cli.console import PlainConsole, words_aside
from worldline.cli.interruption import interruptible
from worldline.cli.nodes_run import NodesNarrator, NodesOutputs, run_one
from worldline.cli.nodes_search import Algorithms
from worldline.cli.options import KindOfDay
from worldline.cli.search_story import SearchOptions, run_search
from worldline.files.parameters import pairs
from worldline.model import UsageError
from worldline.model.reading import as_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import KINDS, as_fault, parse_kinds, time_of
from worldline.nodes.schedule import load
from worldline.nodes.scheduler import EVENTS_MAX
from worldline.nodes.shapes import parse_edges
from worldline.nodes.shrinking import as_kept
from worldline.nodes.trial import Trial, load_trial
from worldline.recording import Shelf
from worldline.search.day import as_day
from worldline.search.searching import SECONDS_MAX

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
_NETWORK, _FAULTS, _END, _SEEDS, _SHOWN = "Network", "Faults", "End of the run", "Many seeds", "Output"


@interruptible()
def nodes(
    context: typer.Context,
    algorithm: Annotated[
        str | None, typer.Argument(metavar="ALGORITHM|list", help="Name of a built-in algorithm; `list` lists them.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.py[:NAME]",
            help="Your own algorithm: a file with `model`, or NAME, or with one node class. With --schedule: that of a"
            " file, which a schedule doesn't choose.",
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_NETWORK, metavar="SHAPE|FILE", help="A shape (below), or a .graphml or .edges file."
        ),
    ] = None,
    edges: Annotated[
        str | None,
        typer.Option(rich_help_panel=_NETWORK, metavar="EDGES", help="The edges: 0-1,0-2,1-2; with weights: 0-1=5."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of all random draws; with --seeds, the first one (default: 0)."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(rich_help_panel=_SEEDS, min=1, help="Try this many seeds, until one fails.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(rich_help_panel=_SEEDS, min=1, help="Number of worker processes (default: one per processor)."),
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set an algorithm parameter.")
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(rich_help_panel=_NETWORK, metavar="LATENCY", help="Message latency (below): 5ms."),
    ] = None,
    fifo: Annotated[
        bool | None,
        typer.Option("--fifo/--no-fifo", rich_help_panel=_NETWORK, help="Keep messages on a link in order, or not."),
    ] = None,
    loss: Annotated[
        float, typer.Option(rich_help_panel=_FAULTS, min=0.0, max=1.0, help="Fraction of messages to lose.")
    ] = 0.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_FAULTS, metavar="FAULT", help='A fault and its time (below): "2s crash 1".'),
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_FAULTS,
            metavar="KINDS",
            help="Faults to draw from the seed (below): crash,loss=0.1; or `claimed`: those the algorithm claims to"
            " tolerate.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_END, metavar="TIME", help="End the run at this time, if it hasn't ended by itself."
        ),
    ] = None,
    events_max: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_END,
            min=1,
            help=f"Consider a run endless after this many events (default: {EVENTS_MAX:,}).",
        ),
    ] = None,
    seconds_max: Annotated[
        float,
        typer.Option(
            rich_help_panel=_END, min=0.001, help="Consider a run endless after this many seconds of real time."
        ),
    ] = SECONDS_MAX,
    day: KindOfDay = None,
    schedule: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Run a schedule written by --save.")
    ] = None,
    save_to: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE.json", help="Save the run, or the shrunk failure, as a schedule."),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", rich_help_panel=_SEEDS, help="Try all seeds and count failures.")
    ] = False,
    no_properties: Annotated[
        bool, typer.Option("--no-properties", rich_help_panel=_SEEDS, help="Check no properties, which is faster.")
    ] = False,
    no_shrink: Annotated[
        bool, typer.Option("--no-shrink", rich_help_panel=_SEEDS, help="Don't shrink the failure.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_SEEDS, metavar="NAMES", help="What shrinking leaves alone (below): nodes,rounds."
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(rich_help_panel=_SHOWN, metavar="FILE.mcap", help="Record the run.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", rich_help_panel=_SHOWN, help="Replace existing files even if they aren't recordings."),
    ] = False,
    diagram: Annotated[
        Path | None, typer.Option(rich_help_panel=_SHOWN, metavar="FILE.svg", help="Draw a space-time diagram.")
    ] = None,
    topology_plot: Annotated[
        Path | None, typer.Option(rich_help_panel=_SHOWN, metavar="FILE.svg", help="Draw the topology and routes.")
    ] = None,
    root: Annotated[
        int,
        typer.Option("--routes-to", rich_help_panel=_SHOWN, metavar="NODE", help="Node that the drawn routes lead to."),
    ] = 0,
    times: Annotated[
        bool, typer.Option("--times", rich_help_panel=_SHOWN, help="Prefix each line with the time.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=_SHOWN, help="Print the trace as JSON, one record per line.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=_SHOWN, help="Print no trace.")] = False,
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
        _check_alone(context)
        trial, source = load(schedule, file)
    else:
        source = file
        trial = _trial(algorithm, file, seed)
        chosen = trial.algorithm
        if edges is not None and topology is not None:
            raise UsageError("--edges and --topology both say what the network is", advice="use one of them")
        said = {
            "algorithm": structs.replace(chosen, properties=()) if no_properties else None,
            "topology": topology if edges is None else parse_edges(edges).name,
            "parameters": {**trial.parameters, **chosen.parsed(pairs(parameters or []))},
            "kinds": {**parse_kinds(_faults(chosen, faults)), **({"loss": loss} if loss else {})} or None,
            "faults": tuple(sorted((as_fault(text) for text in fault or ()), key=time_of)) or None,
            "latency": latency,
            "fifo": fifo,
            "until": None if until is None else as_time(until),
            "events_max": events_max,
            "day": None if day is None else as_day(day, KINDS),
        }
        trial = structs.replace(trial, **{name: value for name, value in said.items() if value is not None})
        if all(value is None or name in ("parameters", "until") for name, value in said.items()):
            target = str(file or algorithm)  # `worldline run` can say as much.
    if keep is not None and (seeds is None or no_shrink):
        raise UsageError("--keep is about shrinking, and nothing is shrunk", advice="use --seeds, without --no-shrink")
    kept = as_kept(keep or (), trial.algorithm)
    shelf = None if record is None else Shelf(record, force=force)
    outputs = NodesOutputs(shelf, diagram, topology_plot, root, save_to)
    outputs.check()
    if seeds is None:
        context.with_resource(words_aside(shelf))
        narrator = NodesNarrator(PlainConsole(), times=times, as_json=as_json, quiet=quiet)
        run_one(trial, source, narrator, outputs, seconds_max, target=target, settings=tuple(parameters or ()))
        return
    if outputs.shows_one_run or as_json:
        raise UsageError("--record, --diagram, --topology-plot and --json show one run", advice="use them with --seed")
    shown = "" if quiet else "times" if times else "plain"
    room = Algorithms(trial, source, seconds_max=seconds_max, kept=kept, trace=shown)
    run_search(console, room, SearchOptions(seeds, workers, seconds_max, keep_going, not no_shrink, save_to))


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
)


def _check_alone(context: typer.Context) -> None:
    """Refuse options that a schedule would silently ignore: it says all of that itself."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in _BESIDE_A_SCHEDULE:
            given = next(each for each in context.command.params if each.name == name)
            words = given.opts[0] if given.param_type_name == "option" else f"the argument {given.name}"
            raise UsageError(f"{words} can't be used with --schedule: a schedule says all of that itself")


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
