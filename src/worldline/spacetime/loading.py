"""Examples and users' files that set up a simulation of agents, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.files.loading import MODEL, Definition, definition_in, parsed, unfit
from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.outcome import SpacetimeOutcome
from worldline.spacetime.simulation import ForwardSimulation

FORM = "write def model(*, seed), which returns a ForwardSimulation"


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

    def build(self, *, seed: int | None = None, trace: bool = False, **parameters: Any) -> ForwardSimulation:
        """Set up a simulation; without a seed, with its own."""
        made = self.definition.maker.make(seed, parameters)
        if not isinstance(made, ForwardSimulation):
            raise unfit(self.definition.where, "what its model returns", made, FORM)
        check_handed_on(self.definition.where, made, seed)
        made.is_traced = trace
        return made

    def judged(self, simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
        """Return what has come of a run; refuse what may not come of it."""
        return self.definition.judged(simulation, result)

    def parsed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Read parameters that are given as texts; each is of the kind of its default."""
        return parsed(self.name, self.parameters, texts)


def check_handed_on(where: str, made: ForwardSimulation, seed: int | None) -> None:
    """Refuse a simulation that was set up with another seed than it was asked for."""
    if seed is not None and made.seed != seed:
        raise ConfigurationError(
            f"{where}: its model doesn't pass on its seed", advice="write ForwardSimulation(..., seed=seed)"
        )


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


def at_least(least: int, **given: int) -> None:
    """Refuse an example's parameters with which there would be nothing to see."""
    for name, number in given.items():
        if number < least:
            raise ConfigurationError(f"{name} is {number}", advice=f"use {least} or more")
