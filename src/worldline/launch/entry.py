"""Python entry points: from ``module:name`` to the program of a participant."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

from worldline.federation.declaration import Declaration
from worldline.federation.program import Program
from worldline.model import UsageError
from worldline.model.errors import shown
from worldline.model.own_line import own_line


def load_program(entry: str, directory: Path, declaration: Declaration, *, guest: bool = False) -> Program:
    """Import an entry point, as if from its directory: a function of a participant, or a whole `Program`.

    A function does what the declaration says; a `Program` says it itself, and may not be given another.
    """
    found = _load(entry, directory)
    if isinstance(found, Program):
        if declaration != Declaration():
            raise UsageError(f"{entry} is a Program and declares all itself", advice="declare it in one place only")
        return replace(found, guest=guest)
    if not callable(found):
        raise UsageError(f"{entry} is {shown(found)}", advice="an entry is a function of a participant, or a Program")
    return Program(found, guest=guest, **declaration.as_plain())  # type: ignore[arg-type]


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


def _load(entry: str, directory: Path) -> object:
    module_name, _, name = entry.partition(":")
    _look_first_in(directory, module_name.partition(".")[0])
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # Whatever a module raises when it is imported is its author's to know.
        line = own_line(error)
        raise UsageError(
            f"{module_name} can't be imported: {type(error).__name__}: {error}",
            advice=None if line is None else str(line),
        ) from error
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{module_name} has no {name}")
        found = getattr(found, part)
    return found
