"""Looks whether a participant's entry or command is there, without running any of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path
from stat import S_ISREG

from worldline.launch.defined_names import names_in
from worldline.launch.toml_document import nearest, quoted
from worldline.model.errors import ConfigurationError


def check_entry(entry: str, directory: Path) -> None:
    """Refuse ``module:name`` if the module isn't there, or if its source shows that it doesn't define the name."""
    module, _, name = entry.partition(":")
    file = check_module(module, directory)
    if file is None or file.suffix != ".py":
        return
    try:
        names = names_in(file.read_bytes())
    except OSError:
        return
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ConfigurationError(f"{module} can't be imported: {file.name}{line}: {error.args[0]}") from None
    first = name.partition(".")[0]
    is_part = file.stem == "__init__" and _file_in(file.parent, [first]) is not None
    if names is not None and first not in names and not is_part:
        known = sorted(each for each in names if not each.startswith("_"))
        advice = nearest(first, known, f"{module} has") if known else None
        raise ConfigurationError(f"{module} has no {first}", advice=advice)


def check_module(module: str, directory: Path) -> Path | None:
    """Return the file of a module, if it has one; refuse a module that is neither in the directory nor installed."""
    first, *rest = module.split(".")
    if file := _file_in(directory, [first, *rest]):
        return file
    # Not importlib.util.find_spec: it runs a package to find what is inside, and finds whatever happens to be imported
    # in this process. The finders themselves do neither.
    spec = next((spec for finder in sys.meta_path if (spec := finder.find_spec(first, None)) is not None), None)
    if spec is not None:
        if not rest and spec.origin is not None:
            return Path(spec.origin) if spec.has_location else None
        folders = (spec.submodule_search_locations or ()) if rest else ()
        if file := next(filter(None, (_file_in(Path(folder), rest) for folder in folders)), None):
            return file
    advice = "leave out .py" if rest and rest[-1] == "py" else "directory says where it is"
    raise ConfigurationError(
        f"there is no module {quoted(module)} in {quoted(str(directory))}, nor is it installed", advice=advice
    )


def _file_in(folder: Path, module: Sequence[str]) -> Path | None:
    path = folder.joinpath(*module)
    files = (file for end in all_suffixes() for file in (path.with_name(path.name + end), path / f"__init__{end}"))
    return next((file for file in files if S_ISREG(mode_of(file))), None)


def files_of(entry: str | None, command: Sequence[str] | None, directory: Path) -> list[Path]:
    """Return the files in a participant's directory that it is started from: a module's, and those a command names."""
    if entry is not None:
        file = _file_in(directory, entry.partition(":")[0].split("."))
        return [] if file is None else [file]
    return [directory / word for word in command or () if S_ISREG(mode_of(directory / word))]


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
                advice=f"install it, or write ./{program} if it is in the directory",
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
