"""Examples of agents in spacetime, each with what must come of it."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from worldline.files.loading import Definition, maker_of
from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.loading import FORM, Example, example_of
from worldline.spacetime.simulation import ForwardSimulation

NAMES = ("ping", "introduction", "flock", "epidemic", "relay", "pipeline")


def find(name: str) -> Example:
    """Return the example of that name."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        advice = f"did you mean {near[0]}?" if near else "`worldline spacetime list` names those that there are"
        raise ConfigurationError(f"there is no example {shown(name)}", advice=advice)
    module = import_module(f"{__name__}.{name}")
    return example_of(Definition(name, name, module, maker_of(name, module.model, (ForwardSimulation,), FORM)))
