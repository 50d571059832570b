"""Runs agents through spacetime, on any executor."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from worldline.cli.bar import progress
from worldline.cli.spacetime_recording import write
from worldline.cli.spacetime_show import Narrator, Outputs, checked, drawn, save
from worldline.model import WorldlineError
from worldline.spacetime.loading import Example
from worldline.spacetime.pictures.animation import check_moves
from worldline.spacetime.simulation import ForwardSimulation
from worldline.spacetime.testimony import check_end, setting_of
from worldline.workers.executor import Executor


def run_one(
    example: Example,
    parameters: Mapping[str, Any],
    seed: int,
    until: float,
    executor: Executor,
    narrator: Narrator,
    outputs: Outputs,
) -> None:
    """Set an example up and run it. All that is written is written after the run, also if that has failed."""
    if outputs.record is not None:
        check_end(until)
    simulation = example.build(
        executor=executor, seed=seed, trace=narrator.is_told or outputs.needs_records, **parameters
    )
    if outputs.animation is not None:
        check_moves(simulation.space.n)
    try:
        with progress() if simulation.is_main else nullcontext() as watch:
            result = simulation.run(until=until, watch=watch)
    except WorldlineError as error:
        if simulation.is_main and simulation.records_of_failure is not None:
            _show_failure(example, seed, simulation, error, narrator, outputs)
        raise
    if not simulation.is_main:
        return
    setting, records = setting_of(simulation, result.until), result.kept or []
    pictures = drawn(records, setting, f"{example.name}, seed {seed}", outputs)
    if outputs.record is not None:
        write(outputs.record, example.name, seed, setting, records, result.chains)
    save(pictures)
    narrator.tell(records)
    verdict = checked(records, setting) if outputs.is_checked else ""
    narrator.conclude(example.judged(simulation, result), verdict, str(result))


def _show_failure(
    example: Example,
    seed: int,
    simulation: ForwardSimulation,
    failure: WorldlineError,
    narrator: Narrator,
    outputs: Outputs,
) -> None:
    """Tell, draw and record what came before a failure, which helps to find out why. The failure stays the error."""
    records = simulation.records_of_failure or []
    setting = setting_of(simulation, max((record.at[0] for record in records), default=0.0))
    narrator.tell(records)
    try:
        save(drawn(records, setting, f"{example.name}, seed {seed}", outputs))
        if outputs.record is not None:
            write(outputs.record, example.name, seed, setting, records, (), failure)
    except WorldlineError as error:
        narrator.warn(str(error))
