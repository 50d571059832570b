"""Examples and users' files: modules that build a simulation, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc, signature
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from worldline.loading.parameters import parsed
from worldline.loading.python_file import load_module
from worldline.model.blame import described, own_line
from worldline.model.errors import ConfigurationError, ModelError, WorldlineError, shown
from worldline.spacetime.outcome import SpacetimeOutcome
from worldline.spacetime.simulation import ForwardSimulation

GIVEN = ("executor", "seed", "trace")
"""What every builder is given."""

_FORM = "write def build(*, executor, seed, trace, size=10), where size is a parameter of your own"


class Example(Struct, frozen=True, kw_only=True):
    """Something that can be simulated: who builds it, until when it runs, and what must come of it.

    `outcome` says in a line what has come of a run, and raises an AssertionError if that isn't what has to.
    """

    name: str
    about: str
    builder: Callable[..., ForwardSimulation]
    parameters: dict[str, Any]
    until: float | None = None
    outcome: Callable[[ForwardSimulation, SpacetimeOutcome], str] | None = None

    def build(
        self, *, executor: Any = "inline", seed: int = 0, trace: bool = False, **parameters: Any
    ) -> ForwardSimulation:
        """Set up a simulation. What goes wrong in the builder is an error that names its line."""
        try:
            made = self.builder(executor=executor, seed=seed, trace=trace, **parameters)
        except WorldlineError:
            raise
        except Exception as error:  # It is the user's code, and can raise anything.
            where = _line_of(error)
            raise ConfigurationError(f"{self.name} can't be set up{where}: {described(error)}") from error
        if not isinstance(made, ForwardSimulation):
            raise ConfigurationError(
                f"{self.name}: build returns {shown(made)}", advice="return the ForwardSimulation that it has set up"
            )
        handed_on = {"seed": made.seed == seed, "trace": made.is_traced == trace}
        if not isinstance(executor, str):
            handed_on["executor"] = made.executor is executor
        for what, is_so in handed_on.items():
            if not is_so:
                raise ConfigurationError(
                    f"{self.name}: build doesn't hand on its {what}",
                    advice="write ForwardSimulation(..., executor=executor, seed=seed, trace=trace)",
                )
        return made

    def judged(self, simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
        """Return what has come of a run; refuse what may not come of it."""
        if self.outcome is None:
            return ""
        try:
            return str(self.outcome(simulation, result))
        except AssertionError as error:
            where, said = _line_of(error), f": {error}" if str(error) else ""
            raise ModelError(f"{self.name}: what has come of it isn't what should{where}{said}") from error
        except Exception as error:  # It is the user's code, and can raise anything.
            where = _line_of(error)
            raise ModelError(f"{self.name}: its outcome can't be told{where}: {described(error)}") from error

    def parsed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Read parameters that are given as texts; each is of the kind of its default."""
        return parsed(self.name, self.parameters, texts)


def _line_of(error: BaseException) -> str:
    """Say which line of the author's own has led to an error."""
    line = own_line(error)
    return "" if line is None else f", in {line}"


def load_file(path: Path) -> Example:
    """Return what a user's file builds."""
    return example_of(load_module(path), path.stem)


def example_of(module: ModuleType, name: str) -> Example:
    """Return what a module builds: it has a function `build`, and perhaps UNTIL and `outcome`."""
    builder = getattr(module, "build", None)
    if not callable(builder):
        raise ConfigurationError(f"{name} has no function build", advice=_FORM)
    return Example(
        name=name,
        about=(getdoc(module) or "").partition("\n")[0],
        builder=builder,
        parameters=_parameters(builder, name),
        until=_until(module, name),
        outcome=getattr(module, "outcome", None),
    )


def _parameters(builder: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return what a builder takes besides what every one is given, and the values that it has otherwise."""
    taken = signature(builder).parameters
    for each in GIVEN:
        if each not in taken or taken[each].kind is Parameter.POSITIONAL_ONLY:
            raise ConfigurationError(f"{name}: its build doesn't take {each}=", advice=_FORM)
    own = {key: parameter for key, parameter in taken.items() if key not in GIVEN}
    for key, parameter in own.items():
        if parameter.default is Parameter.empty or parameter.kind is Parameter.POSITIONAL_ONLY:
            raise ConfigurationError(f"{name}: the parameter {key} of its build has no default", advice=_FORM)
    return {key: parameter.default for key, parameter in own.items()}


def _until(module: ModuleType, name: str) -> float | None:
    until = getattr(module, "UNTIL", None)
    if until is None:
        return None
    if isinstance(until, bool) or not isinstance(until, int | float) or not isfinite(until):
        raise ConfigurationError(f"{name}: its UNTIL is {shown(until)}", advice="it's a lab time: UNTIL = 100.0")
    return float(until)
