"""Loads an algorithm from a user's file, or a trial of one."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from worldline.files.loading import MODEL, defines_model, definition_in, load_module, unfit
from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Node
from worldline.nodes.trial import Trial

FORM = 'write model = Algorithm(name="mine", node=Mine, topology="clique:3"), from worldline.nodes'


def load_trial(path: Path, seed: int | None = None) -> Trial:
    """Return what a file defines: its `model`, or a single class of nodes; with its own seed, if none is given.

    The path may be that of another name in the file: FILE.py:NAME.
    """
    file, name = _parts_of(path)
    made = None if name or defines_model(file) else lone_algorithm(file)
    if made is None:
        found = definition_in(file, name or MODEL, (Algorithm, Trial), FORM)
        made = found.maker.make(seed, {})
        if not isinstance(made, Algorithm | Trial):
            raise unfit(found.where, "what its model returns", made, FORM)
    trial = Trial(algorithm=made) if isinstance(made, Algorithm) else made
    return trial if seed is None else structs.replace(trial, seed=seed)


def _parts_of(path: Path) -> tuple[Path, str]:
    before, _, name = str(path).rpartition(":")
    return (Path(before), name) if before.endswith(".py") else (path, "")


def load_file(path: Path) -> Algorithm:
    """Return the algorithm of what a file defines."""
    return load_trial(path).algorithm


def lone_algorithm(path: Path) -> Algorithm | None:
    """Return the algorithm of a file that defines nothing but a class of nodes; None if it has no such class.

    One class is enough for a first try, on three nodes that all know each other, and without properties.
    """
    module = load_module(path)
    defined = [thing for thing in vars(module).values() if isinstance(thing, type) and issubclass(thing, Node)]
    kinds = [kind for kind in defined if kind.__module__ == module.__name__] or [
        kind for kind in defined if not kind.__module__.startswith("worldline.")
    ]
    kinds = [kind for kind in kinds if not any(kind in other.__mro__[1:] for other in kinds)]
    if len(kinds) > 1:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise ConfigurationError(f"{path} defines {len(kinds)} classes of nodes, {names}, but no model", advice=FORM)
    return Algorithm(name=path.stem, node=kinds[0], topology="clique:3") if kinds else None
