"""`worldline spacetime`: run agents through spacetime, or look at such a run that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from math import isfinite
from pathlib import Path

import typer
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from worldline.cli.console import PlainConsole, output_free_for, print_json, progress
from worldline.cli.options import PAGE, PageOptions, RecordingOptions, refuse_given, takes
from worldline.cli.runner import page_of_ready, recording_of, run_to_end
from worldline.files.loading import pairs
from worldline.files.saving import destination
from worldline.files.saving import save as save_file
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.model import LossError, ModelError, UsageError, WorldlineError
from worldline.model.errors import Unread
from worldline.model.text import counted, printable
from worldline.pictures.spacetime import minkowski_svg
from worldline.processes.executor import Executor, as_executor
from worldline.recording import Condition, Recording, Shelf
from worldline.spacetime.causality import check
from worldline.spacetime.examples import NAMES, find
from worldline.spacetime.loading import Example, load_file
from worldline.spacetime.outcome import AgentRecord, Scene, SpacetimeOutcome, Told, recall
from worldline.spacetime.simulation import EXECUTORS, ForwardSimulation
from worldline.targets import RunOptions
from worldline.targets.models import ready_spacetime

# Shows a run through spacetime: as text, in pictures, checked.

_SHOWN_MAX = 10


class AgentsOptions(Struct, frozen=True, kw_only=True):
    """What is run, until when, and what executes it."""

    seed: int | None = None
    until: float | None = None
    executor: str = "inline"
    parameters: tuple[str, ...] = ()

    def end(self, example: Example) -> float:
        """Return the lab time at which an example ends."""
        end = example.until if self.until is None else self.until
        if end is None:
            raise UsageError(f"{example.name} doesn't say when it ends", advice="use --until, or write UNTIL = 100.0")
        if not isfinite(end):
            raise UsageError(f"a run can't end at {end}", advice="give a lab time: --until 100")
        return end


class SpacetimeOutputs(Struct, frozen=True, kw_only=True):
    """How a run is shown, where it is written to, and whether it is checked."""

    diagram: Path | None = None
    animation: Path | None = None
    recording: RecordingOptions = RecordingOptions()
    is_checked: bool = False
    as_json: bool = False
    quiet: bool = False

    @property
    def needs_records(self) -> bool:
        return self.is_checked or any((self.recording.record, self.diagram, self.animation))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        for path, suffix in ((self.recording.record, ".mcap"), (self.diagram, ".svg"), (self.animation, ".html")):
            if path is not None and not destination(path).is_stream and path.suffix != suffix:
                raise UsageError(f"{path} doesn't end in {suffix}", advice="its name says what it is")

    def tell(self, records: Sequence[AgentRecord]) -> None:
        """Print what agents have noted, or all records as JSON."""
        if self.quiet:
            return
        try:
            for record in records:
                if self.as_json:
                    print_json(record)
                elif record.kind == "log":
                    print(printable(f"{record.at[0]:12.6f}  {record.agent}: {record.what}"))
            sys.stdout.flush()
        except Unread:
            return  # The run is no failure for that, nor the rest of the output.

    def say(self, line: str) -> None:
        """Say something of the run that isn't part of what happens in it."""
        if not self.quiet and not self.as_json:
            PlainConsole().print(line)

    def conclude(self, *lines: str) -> None:
        """Say what has come of the run."""
        for line in filter(None, lines):
            PlainConsole(sys.stderr if self.as_json else None).print(line)


def drawn(
    records: Sequence[AgentRecord], scene: Scene, title: str, outputs: SpacetimeOutputs
) -> list[tuple[Path, str]]:
    """Return the pictures that are wanted, and where to."""
    pictures: list[tuple[Path, str]] = []
    if outputs.diagram is not None:
        picture = minkowski_svg(
            records, scene.n, field=scene.field, title=title, until=scene.until, boundaries=scene.boundaries
        )
        pictures.append((outputs.diagram, picture))
    if outputs.animation is not None:
        from worldline.watch.agents import agents_page  # Here, since few runs have one.

        pictures.append((outputs.animation, agents_page(records, scene, title)))
    return pictures


def save(pictures: Sequence[tuple[Path, str]]) -> None:
    for path, text in pictures:
        save_file(path, text.encode())


def checked(records: Sequence[AgentRecord], scene: Scene) -> str:
    """Return how much was checked, if the records keep the laws of spacetime; refuse them if they don't."""
    verdict = check(records, scene.space, scene.field)
    if not verdict.is_clean:
        count = len(verdict.violations)
        said = f"{count:,} violations of causality; the first are" if count > 1 else "a violation of causality"
        lines = [f"{said}:", *(f"  {each}" for each in verdict.violations[:_SHOWN_MAX])]
        raise ModelError("\n".join(lines), mistakes=lines)
    return f"checked {verdict}"


# Looks again at a run through spacetime that was recorded.


def retell(path: Path, outputs: SpacetimeOutputs) -> None:
    """Show a recorded run as if it had just been run."""
    recording = Recording(path)
    verdict = recording.verify()
    if verdict.condition is Condition.ALTERED:
        raise ModelError(f"{path} is {verdict}", advice="record the run again")
    if recording.outcome is None or verdict.condition is Condition.CUT_OFF:
        raise LossError(f"{path} is {verdict}", advice="record the run again")
    try:
        scene, records = recall(_kept(recording))
    except UsageError as error:
        raise UsageError(f"{path}: {error.problem}", advice=error.advice) from error
    save(drawn(records, scene, f"{recording.header.federation}, seed {recording.header.seed}", outputs))
    outputs.tell(records)
    outputs.conclude(
        checked(records, scene) if outputs.is_checked else "",
        f"{counted(len(records), 'record')}, {f'digest {digest}' if (digest := recording.outcome.digest) else verdict}",
    )


def _kept(recording: Recording) -> Iterator[Told]:
    """Yield all that was recorded."""
    yield from ((each.sender, each.sequence, each.topic, each.payload) for each in recording.arrivals())
    yield from ((each.sender, each.sequence, each.topic, each.payload) for each in recording.unheard())


# Runs agents through spacetime, on any executor.


def run_one(
    example: Example,
    target: str,
    options: AgentsOptions,
    executor: Executor,
    outputs: SpacetimeOutputs,
    shelf: Shelf | None,
    paging: PageOptions,
) -> None:
    """Set an example up and run it. All that is shown is shown after the run, also if that has failed.

    `target` is what `worldline run` would be given for the same.
    """
    end = options.end(example)
    parameters = example.parsed(pairs(options.parameters))
    outputs.check()
    simulation = example.build(seed=options.seed, trace=not outputs.quiet or outputs.needs_records, **parameters)
    simulation.executor = executor
    ready = ready_spacetime(example.definition, simulation, end)
    ready.target, ready.options = target, RunOptions(settings=options.parameters)

    def run(observer: Observer | None, watch: Watch | None) -> SpacetimeOutcome:
        try:
            return simulation.run(until=end, observer=observer, watch=watch)
        except WorldlineError:
            if simulation.is_main and simulation.records_of_failure is not None:
                _show_failure(example, simulation, outputs)
            raise

    def tell(outcome: SpacetimeOutcome) -> None:
        if simulation.is_main:
            pictures = drawn(outcome.kept or [], simulation.scene(outcome.until), _title(example, simulation), outputs)
            save(pictures)
            outputs.tell(outcome.kept or [])

    with page_of_ready(ready, paging) as page:
        outcome = run_to_end(
            run,
            recording_of(ready.recorder, shelf if simulation.is_main else None, outputs.say),
            showing=progress if simulation.is_main else nullcontext,
            ended=tell,
            page=page,
        )
    if not simulation.is_main:
        return
    verdict = checked(outcome.kept or [], simulation.scene(outcome.until)) if outputs.is_checked else ""
    words = ""
    try:
        words = example.judged(simulation, outcome)
    finally:  # What has happened is known, also if it may not.
        outputs.conclude(words, verdict, str(outcome))


def _title(example: Example, simulation: ForwardSimulation) -> str:
    return f"{example.name}, seed {simulation.seed}"


def _show_failure(example: Example, simulation: ForwardSimulation, outputs: SpacetimeOutputs) -> None:
    """Tell and draw what came before a failure, which helps to find out why. The failure stays the error."""
    records = simulation.records_of_failure or []
    scene = simulation.scene(max((record.at[0] for record in records), default=0.0))
    outputs.tell(records)
    try:
        save(drawn(records, scene, _title(example, simulation), outputs))
        if simulation.failure_of_observer is not None:
            raise simulation.failure_of_observer
    except WorldlineError as error:
        PlainConsole(sys.stderr).print(f"worldline: {error}")


LIST = "list"
_RECORDING = ".mcap"


@takes(
    """
    example: EXAMPLE|list|RUN.mcap  Name of an example; `list` lists them. A recording is shown, not run.
    --file FILE.py  Your own model: a file that defines `model`.
    --seed N  Seed of all random draws (default: the example's own).
    --until TIME  End of the run, in lab time (default: the example's own).
    --executor EXECUTOR  inline, processes(2), mpi or shuffled(7) (inline, order seeded by 7). All give the same result.
    parameters: --set NAME=VALUE  Set an example parameter.
    --diagram FILE.svg  Draw a Minkowski diagram.
    --animation FILE.html  Write a page that animates the agents.
    --record FILE.mcap  Record the run.
    --force
    is_checked: --check  Check that nothing was absorbed outside the future of its emission.
    as_json: --json  Print all records as JSON, one per line.
    --quiet
    """,
    PAGE,
)
def spacetime(
    context: typer.Context,
    example: str | None = None,
    *,
    file: Path | None = None,
    options: AgentsOptions,
    outputs: SpacetimeOutputs,
    paging: PageOptions,
) -> None:
    """Run agents that send each other functions at the speed of light, and print what they log.

    Options and seed determine the run; the executor doesn't affect it.
    """
    if example == LIST and file is None:
        _list(PlainConsole())
        return
    shelf = outputs.recording.shelf()
    context.with_resource(output_free_for(shelf))
    if example is not None and example.endswith(_RECORDING) and file is None:
        refuse_given(context, _BESIDE_A_RECORDING, "a recording: its run is over")
        outputs.check()
        retell(Path(example), outputs)
        return
    executor = as_executor(options.executor, EXECUTORS)
    try:
        run_one(_example(example, file), str(file or example), options, executor, outputs, shelf, paging)
    except WorldlineError as error:
        if executor.is_main:
            raise
        raise typer.Exit(error.exit_code) from error  # One rank says it.


# What goes with a recording: how it is shown, not what happens.
_BESIDE_A_RECORDING = ("example", "diagram", "animation", "is_checked", "as_json", "quiet")


def _example(name: str | None, file: Path | None) -> Example:
    if file is not None:
        if name is not None:
            raise UsageError(f"--file says what runs, and so does {name}", advice="use one of them")
        return load_file(file)
    if name is None:
        raise UsageError(
            "which example?", advice="name one, see `worldline spacetime list`, or give your own with --file"
        )
    if name.endswith(".py"):
        raise UsageError(f"{name} is a file", advice=f"write --file {name}")
    return find(name)


def _list(console: Console) -> None:
    """Show each example on two lines: how long it runs and what can be set, and what it is."""
    for name in NAMES:
        found = find(name)
        settings = " ".join(f"{key}={value}" for key, value in found.parameters.items())
        console.print(Text.assemble((f"{name:14}", "bold"), f"until {found.until:g}; {settings}"))
        console.print(f"  {found.about}", style="dim")
