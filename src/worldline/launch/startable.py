"""Looks whether a participant's module or command is there, without running any of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path
from stat import S_ISREG

from worldline.launch.toml_document import quoted
from worldline.model.errors import ConfigurationError


def check_module(module: str, directory: Path) -> None:
    """Refuse a module that is neither in the directory nor installed."""
    first, *rest = module.split(".")
    if _holds(directory, [first, *rest]):
        return
    # Not importlib.util.find_spec: it runs a package to find what is inside, and finds whatever happens to be imported
    # in this process. The finders themselves do neither.
    spec = next((spec for finder in sys.meta_path if (spec := finder.find_spec(first, None)) is not None), None)
    if spec is not None:
        folders = spec.submodule_search_locations or ()
        if any(_holds(Path(folder), rest) for folder in folders) if rest else spec.origin is not None:
            return
    advice = "leave out .py" if rest and rest[-1] == "py" else "directory says where it lies"
    raise ConfigurationError(
        f"there is no module {quoted(module)} in {quoted(str(directory))}, nor is it installed", advice=advice
    )


def _holds(folder: Path, module: Sequence[str]) -> bool:
    path = folder.joinpath(*module)
    files = (file for end in all_suffixes() for file in (path.with_name(path.name + end), path / f"__init__{end}"))
    return any(S_ISREG(mode_of(file)) for file in files)


def search_path(environment: Mapping[str, str]) -> str:
    """Return where a participant's commands are looked for.

    The Python that runs Worldline comes first, so that ``python`` is an interpreter that has it, whether its
    environment is activated or not. A PATH that the file gives is taken as it is.
    """
    if "PATH" in environment:
        return environment["PATH"]
    usual, ours = os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)
    return usual if usual.split(os.pathsep)[0] == ours else f"{ours}{os.pathsep}{usual}"


def check_command(program: str, directory: Path, search: str | None) -> None:
    """Look for a command: a plain name on the search path, anything else from the directory."""
    if "/" not in program:
        if shutil.which(program, path=search) is None:
            raise ConfigurationError(
                f"there is no command {quoted(program)}",
                advice=f"install it, or write ./{program} if it lies in the directory",
            )
        return
    file = directory / program
    if not S_ISREG(mode_of(file)):
        raise ConfigurationError(f"there is no file {quoted(str(file))}")
    if not os.access(file, os.X_OK):
        raise ConfigurationError(f"{quoted(str(file))} can't be executed", advice="chmod +x makes it executable")


def mode_of(path: Path) -> int:
    """Return the kind of a file, or 0 if there is none that we can see."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
