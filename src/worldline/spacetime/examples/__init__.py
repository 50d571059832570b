"""Examples of agents in spacetime, each with what must come of it."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from worldline.model.errors import ConfigurationError, shown
from worldline.spacetime.loading import Example, example_of

NAMES = ("ping", "introduction", "flock", "epidemic", "relay", "pipeline")


def find(name: str) -> Example:
    """Return the example of that name."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        advice = f"did you mean {near[0]}?" if near else "`worldline spacetime list` names those that there are"
        raise ConfigurationError(f"there is no example {shown(name)}", advice=advice)
    return example_of(import_module(f"{__name__}.{name}"), name)
