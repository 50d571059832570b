"""Trials of federations by the names of their files and properties, as a search hands them to its processes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

from worldline.federation.program import Federation
from worldline.federation.trial import FederationTrial
from worldline.launch.entry import load_object
from worldline.model.errors import ConfigurationError, shown
from worldline.search.properties import AT_END, Property
from worldline.targets.finding import federation_like
from worldline.targets.ready import Options


def federation_trial(target: str, options: Options, properties: Sequence[str]) -> FederationTrial:
    """Return the trial of a target; properties are ``module:name``, as seen from the target's folder."""
    with quietly():
        found = federation_like(target, options)
        first = found if isinstance(found, Federation) else found()
        directory = Path(target.partition(":")[0]).resolve().parent
        judged = tuple(load_property(name, directory) for name in properties)
    return FederationTrial(
        make=(lambda: found) if isinstance(found, Federation) else found, properties=judged, seed=first.seed
    )


def load_property(name: str, directory: Path) -> Property:
    """Import a property: one that is decorated, or a function of a story that has to hold at the end."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigurationError(
            f"{shown(name)} doesn't name a property", advice="write module:function, as for an entry"
        )
    found = load_object(name, directory)
    if isinstance(found, Property):
        return found
    if not callable(found):
        raise ConfigurationError(
            f"{name} is {shown(found)}", advice='a property is a function of a story: @always("..."), @at_end("...")'
        )
    said = (getattr(found, "__doc__", None) or attribute.replace("_", " ")).strip().partition("\n")[0].rstrip(".")
    return Property(AT_END, said, found)


def quietly() -> contextlib.AbstractContextManager[object]:
    """Swallow what programs print: a thousand times over, it is in the way."""
    return contextlib.redirect_stdout(io.StringIO())
