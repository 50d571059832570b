"""Shows a run through spacetime: as text, in pictures, checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, print_json
from worldline.cli.recorded import recording_of
from worldline.files.saving import destination
from worldline.files.saving import save as save_file
from worldline.model import LossError, ModelError, UsageError, WorldlineError
from worldline.model.errors import Unread
from worldline.model.text import counted, printable
from worldline.pictures.spacetime import animation_html, minkowski_svg
from worldline.pictures.spacetime.animation import check_moves
from worldline.processes.executor import Executor
from worldline.recording import Condition, Recording, Shelf
from worldline.spacetime.causality import check
from worldline.spacetime.loading import Example
from worldline.spacetime.outcome import AgentRecord, Scene, recall
from worldline.spacetime.simulation import ForwardSimulation
from worldline.targets.spacetime import ReadySpacetime

_SHOWN_MAX = 10


class SpacetimeOutputs(NamedTuple):
    """Where a run is written to, besides the terminal, and whether it is checked."""

    record: Shelf | None
    diagram: Path | None
    animation: Path | None
    is_checked: bool

    @property
    def needs_records(self) -> bool:
        return self.is_checked or any((self.record, self.diagram, self.animation))

    def check(self) -> None:
        """Refuse what can't be written before anything has happened."""
        record = None if self.record is None else self.record.path
        for path, suffix in ((record, ".mcap"), (self.diagram, ".svg"), (self.animation, ".html")):
            if path is not None and not destination(path).is_stream and path.suffix != suffix:
                raise UsageError(f"{path} doesn't end in {suffix}", advice="its name says what it is")


class SpacetimeNarrator:
    """Tells a run when it is over: only then is the order of what happened known."""

    def __init__(self, console: Console, *, as_json: bool, quiet: bool) -> None:
        self._console = PlainConsole(sys.stderr) if as_json else console
        self._as_json = as_json
        self.is_told = not quiet

    def tell(self, records: Sequence[AgentRecord]) -> None:
        """Print what agents have noted, or all records as JSON."""
        if not self.is_told:
            return
        try:
            for record in records:
                if self._as_json:
                    print_json(record)
                elif record.kind == "log":
                    print(printable(f"{record.at[0]:12.6f}  {record.agent}: {record.what}"))
            sys.stdout.flush()
        except Unread:
            return  # The run is no failure for that, nor the rest of the output.

    def say(self, line: str) -> None:
        """Say something of the run that isn't part of what happens in it."""
        if self.is_told and not self._as_json:
            self._console.print(line)

    def warn(self, text: str) -> None:
        """Say what went wrong besides."""
        PlainConsole(sys.stderr).print(f"worldline: {text}")

    def conclude(self, *lines: str) -> None:
        for line in lines:
            if line:
                self._console.print(line)


def drawn(
    records: Sequence[AgentRecord], scene: Scene, title: str, outputs: SpacetimeOutputs
) -> list[tuple[Path, str]]:
    """Return the pictures that are wanted, and where to."""
    pictures = []
    if outputs.diagram is not None:
        picture = minkowski_svg(
            records, scene.n, field=scene.field, title=title, until=scene.until, boundaries=scene.boundaries
        )
        pictures.append((outputs.diagram, picture))
    if outputs.animation is not None:
        page = animation_html(records, scene.n, title=title, until=scene.until, boundaries=scene.boundaries)
        pictures.append((outputs.animation, page))
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


def retell(path: Path, narrator: SpacetimeNarrator, outputs: SpacetimeOutputs) -> None:
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
    narrator.tell(records)
    narrator.conclude(
        checked(records, scene) if outputs.is_checked else "",
        f"{counted(len(records), 'record')}, {f'digest {digest}' if (digest := recording.outcome.digest) else verdict}",
    )


def _kept(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """Yield topic and payload of all that was recorded."""
    yield from ((arrival.topic, arrival.payload) for arrival in recording.arrivals())
    yield from ((message.topic, message.payload) for message in recording.unheard())


# Runs agents through spacetime, on any executor.


def run_one(
    example: Example,
    parameters: Mapping[str, Any],
    seed: int | None,
    until: float,
    executor: Executor,
    narrator: SpacetimeNarrator,
    outputs: SpacetimeOutputs,
    *,
    target: str,
    settings: tuple[str, ...],
) -> None:
    """Set an example up and run it. All that is shown is shown after the run, also if that has failed.

    `target` and `settings` are what `worldline run` would be given for the same.
    """
    simulation = example.build(seed=seed, trace=narrator.is_told or outputs.needs_records, **parameters)
    simulation.executor = executor
    if outputs.animation is not None:
        check_moves(simulation.space.n)
    ready = ReadySpacetime(example.definition, simulation, until)
    ready.target, ready.settings = target, settings
    with recording_of(ready, outputs.record, narrator.say) as recording:
        try:
            with progress() if simulation.is_main else nullcontext() as watch:
                outcome = ready.run(recording.observer, watch)
        except WorldlineError:
            if simulation.is_main and simulation.records_of_failure is not None:
                _show_failure(example, simulation, narrator, outputs)
            raise
        recording.conclude(outcome)
        if not simulation.is_main:
            return
        scene, records = simulation.scene(outcome.until), outcome.kept or []
        save(drawn(records, scene, f"{example.name}, seed {simulation.seed}", outputs))
        narrator.tell(records)
    verdict = checked(records, scene) if outputs.is_checked else ""
    words = ""
    try:
        words = example.judged(simulation, outcome)
    finally:  # What has happened is known, also if it may not.
        narrator.conclude(words, verdict, str(outcome))


def _show_failure(
    example: Example, simulation: ForwardSimulation, narrator: SpacetimeNarrator, outputs: SpacetimeOutputs
) -> None:
    """Tell and draw what came before a failure, which helps to find out why. The failure stays the error."""
    records = simulation.records_of_failure or []
    scene = simulation.scene(max((record.at[0] for record in records), default=0.0))
    narrator.tell(records)
    try:
        save(drawn(records, scene, f"{example.name}, seed {simulation.seed}", outputs))
        if simulation.failure_of_observer is not None:
            raise simulation.failure_of_observer
    except WorldlineError as error:
        narrator.warn(str(error))
