"""Runs agents through spacetime, on any executor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from worldline.cli.spacetime_recording import write
from worldline.cli.spacetime_show import Narrator, Outputs, checked, drawn, save
from worldline.kernel.executors import Executor, Inline, as_executor
from worldline.model import ConfigurationError
from worldline.spacetime.loading import Example
from worldline.spacetime.simulation import Shuffled
from worldline.spacetime.testimony import check_end, setting_of

_SHUFFLED = re.compile(r"\s*shuffled\s*\(\s*(-?[0-9]+)\s*\)\s*")


def read_executor(text: str) -> Executor | Inline | Shuffled:
    """Read what is to execute a run."""
    match = _SHUFFLED.fullmatch(text)
    if match is not None:
        return Shuffled(int(match[1]))
    try:
        return as_executor(text)
    except ConfigurationError as error:
        if "isn't an executor" not in error.problem:
            raise
        raise ConfigurationError(error.problem, advice="use inline, processes(4), mpi or shuffled(7)") from error


def run_one(
    example: Example,
    parameters: Mapping[str, Any],
    seed: int,
    until: float,
    executor: Executor | Inline | Shuffled,
    narrator: Narrator,
    outputs: Outputs,
) -> None:
    """Set an example up and run it. All that is written is written after the run, or not at all."""
    if outputs.record is not None:
        check_end(until)
    simulation = example.build(
        executor=executor, seed=seed, trace=narrator.is_told or outputs.needs_records, **parameters
    )
    result = simulation.run(until=until)
    if not simulation.is_main:
        return
    setting = setting_of(simulation, result.until)
    pictures = drawn(result.records, setting, f"{example.name}, seed {seed}", outputs)
    if outputs.record is not None:
        write(outputs.record, example.name, seed, setting, result)
    save(pictures)
    narrator.tell(result.records)
    verdict = checked(result.records, setting) if outputs.is_checked else ""
    narrator.conclude(example.judged(simulation, result), verdict, str(result))
