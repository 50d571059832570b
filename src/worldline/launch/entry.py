"""Python entry points: from ``module:name`` to the program of a participant."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path

from worldline.federation.declaration import Plain, agreed
from worldline.federation.program import Program
from worldline.model import UsageError
from worldline.model.blame import said_of
from worldline.model.errors import shown


def load_program(entry: str, directory: Path, stated: Plain | None = None, *, guest: bool = False) -> Program:
    """Import an entry point, as if from its directory: a function of a participant, or a whole `Program`.

    `stated` is what the federation's file declares. A `Program` may declare the same or more, but nothing else.
    """
    found = load_object(entry, directory)
    if not isinstance(found, Program):
        if not callable(found):
            advice = "an entry is a function of a participant, or a Program"
            raise UsageError(f"{entry} is {shown(found)}", advice=advice)
        found = Program(found)
    declaration = agreed(stated or {}, found.said(), who=entry)
    return Program(found.run, guest=guest, **declaration.as_plain())


def _look_first_in(directory: Path, package: str) -> None:
    """Let modules be found in a directory before anywhere else, also if another of the name is loaded already."""
    if str(directory) in sys.path:
        sys.path.remove(str(directory))
    sys.path.insert(0, str(directory))
    loaded = getattr(sys.modules.get(package), "__file__", None)
    is_here = any((directory / package).with_suffix(end).exists() for end in (".py", "")) if loaded else False
    if loaded and is_here and directory not in Path(loaded).parents:
        for module in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[module]
        importlib.invalidate_caches()


def load_object(entry: str, directory: Path) -> object:
    """Import what ``module:name`` means, as if from a directory."""
    module_name, _, name = entry.partition(":")
    _look_first_in(directory, module_name.partition(".")[0])
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # Whatever a module raises when it is imported is its author's to know.
        raise UsageError(f"{module_name} can't be imported: {said_of(error)}") from error
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            meant = get_close_matches(part, [each for each in dir(found) if not each.startswith("_")], 1, 0.7)
            advice = f"did you mean {meant[0]}?" if meant else None
            raise UsageError(f"{module_name} has no {name}", advice=advice)
        found = getattr(found, part)
    return found
