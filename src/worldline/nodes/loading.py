"""Loads an algorithm from a user's file."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from worldline.kernel.roster import described
from worldline.model.errors import ConfigurationError, ModelError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Node

_PREFIX = "worldline_file_"  # Of modules' names: a user's `random.py` mustn't take the place of Python's own.


def load_file(path: Path) -> Algorithm:
    """Return what a file defines: an `ALGORITHM`, or a single class of nodes."""
    module = _module(path)
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


def _module(path: Path) -> ModuleType:
    """Load a file once. It gets the same name in every process, so that what it defines can be sent between them."""
    name = _PREFIX + re.sub(r"\W", "_", path.stem)
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path.resolve()):
        return loaded
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}")
    spec = spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} isn't a Python file", advice="its name ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # As for a script: it may import what lies beside it.
        sys.path.append(folder)  # At the end: workers get this path too, and its queue.py isn't the one they need.
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # It is the user's code, and can raise anything.
        del sys.modules[name]
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path.resolve())]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f", in line {line}" if line else ""
        raise ModelError(f"{path} can't be loaded{where}: {described(error)}") from error
    return module
