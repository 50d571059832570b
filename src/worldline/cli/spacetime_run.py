"""Runs agents through spacetime, on any executor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from worldline.cli.bar import progress
from worldline.cli.recorded import recording_of
from worldline.cli.spacetime_show import SpacetimeNarrator, SpacetimeOutputs, checked, drawn, save
from worldline.model import WorldlineError
from worldline.spacetime.loading import Example
from worldline.spacetime.pictures.animation import check_moves
from worldline.spacetime.simulation import ForwardSimulation
from worldline.targets.spacetime import ReadySpacetime
from worldline.workers.executor import Executor


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
