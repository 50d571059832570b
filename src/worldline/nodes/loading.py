"""Loads an algorithm from a user's file."""

from __future__ import annotations

from pathlib import Path

from worldline.loading.python_file import load_module
from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Node


def load_file(path: Path) -> Algorithm:
    """Return what a file defines: an `ALGORITHM`, or a single class of nodes."""
    module = load_module(path)
    given = getattr(module, "ALGORITHM", None)
    if given is not None:
        if not isinstance(given, Algorithm):
            raise ConfigurationError(f"{path}: its ALGORITHM isn't an Algorithm")
        return given
    defined = [thing for thing in vars(module).values() if isinstance(thing, type) and issubclass(thing, Node)]
    kinds = [kind for kind in defined if kind.__module__ == module.__name__] or [
        kind for kind in defined if not kind.__module__.startswith("worldline.")
    ]
    kinds = [kind for kind in kinds if not any(kind in other.__mro__[1:] for other in kinds)]
    if len(kinds) != 1:
        found = f"defines {len(kinds)} classes of nodes" if kinds else "defines no class of nodes"
        raise ConfigurationError(
            f"{path} {found}",
            advice="derive one class from Node, or say ALGORITHM = worldline.nodes.Algorithm(name=..., node=..., ...)",
        )
    return Algorithm(name=path.stem, node=kinds[0], topology="clique:3")
