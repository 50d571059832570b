"""Examples and users' files that set up a simulation of agents, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.loading.definition import MODEL, Definition, definition_in, unfit
from worldline.loading.parameters import parsed
from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.outcome import SpacetimeOutcome
from worldline.spacetime.simulation import ForwardSimulation
from worldline.workers.executor import as_executor

FORM = "write def model(*, executor, seed, trace), which returns a ForwardSimulation"
_HAND_ON = "write ForwardSimulation(..., executor=executor, seed=seed, trace=trace)"


class Example(Struct, frozen=True):
    """Something that can be simulated: who sets it up, until when it runs, and what must come of it."""

    definition: Definition
    until: float | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def about(self) -> str:
        return self.definition.about

    @property
    def parameters(self) -> dict[str, Any]:
        """What can be set, and what it is otherwise."""
        return self.definition.maker.parameters

    def build(
        self, *, executor: Any = "inline", seed: int | None = None, trace: bool = False, **parameters: Any
    ) -> ForwardSimulation:
        """Set up a simulation; without a seed, with its own."""
        given = {"executor": executor, "trace": trace} | ({} if seed is None else {"seed": seed})
        made = self.definition.maker.make(given, parameters)
        if not isinstance(made, ForwardSimulation):
            raise unfit(self.definition.where, "what its model returns", made, FORM)
        check_handed_on(self.definition.where, made, executor, seed, trace=trace)
        return made

    def judged(self, simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
        """Return what has come of a run; refuse what may not come of it."""
        return self.definition.judged(simulation, result)

    def parsed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Read parameters that are given as texts; each is of the kind of its default."""
        return parsed(self.name, self.parameters, texts)


def check_handed_on(where: str, made: ForwardSimulation, executor: Any, seed: int | None, *, trace: bool) -> None:
    """Refuse a simulation that was set up otherwise than it was asked for; nothing was asked for where it is None."""
    handed_on = {
        "seed": seed is None or made.seed == seed,
        "trace": made.is_traced or not trace,
        "executor": executor is None or made.executor == as_executor(executor),
    }
    for what, is_so in handed_on.items():
        if not is_so:
            raise ConfigurationError(f"{where}: its model doesn't hand on its {what}", advice=_HAND_ON)


def load_file(path: Path) -> Example:
    """Return what a user's file sets up."""
    return example_of(definition_in(path, MODEL, (ForwardSimulation,), FORM))


def example_of(definition: Definition) -> Example:
    """Return what sets up a simulation of agents, with when it ends."""
    until = definition.until
    if until is None:
        return Example(definition)
    if isinstance(until, bool) or not isinstance(until, int | float) or not isfinite(until):
        raise ConfigurationError(
            f"{definition.where}: its UNTIL is {shown(until)}", advice="it's a lab time: UNTIL = 100.0"
        )
    return Example(definition, float(until))
