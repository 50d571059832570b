"""Looks whether a participant's entry or command is there, without running any of it."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import all_suffixes
from pathlib import Path
from stat import S_ISREG
from types import ModuleType

from worldline.federation.participant.declaration import Plain, agreed
from worldline.federation.participant.program import Program
from worldline.launch.file.toml_document import nearest, quoted
from worldline.model import UsageError
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, shown
from worldline.programs.entries import check_script, read_machine, script_of

# Reads from a module's source which names it defines, without running it.

_ELUSIVE = {"globals", "locals", "vars", "setattr", "exec", "eval", "modules", "__getattr__", "*"}
"""A module that uses one of these may define names that no reader of the source finds."""


@lru_cache(maxsize=16)  # Many participants may be defined in one module.
def names_in(source: bytes) -> frozenset[str] | None:
    """Return what a module defines at its top level; None if that can't be told from its source."""
    tree = ast.parse(source)
    used = {name for node in ast.walk(tree) for name in _words(node)}
    if used & _ELUSIVE:
        return None
    return frozenset(name for node in _top_level(tree) for name in _bound(node))


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias | ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Global):
        yield "globals"


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when the module is imported: all but the bodies of functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _top_level(child)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name


# Python entry points: from ``module:name`` to the program of a participant.


def load_program(entry: str, directory: Path, stated: Plain | None = None, *, guest: bool = False) -> Program:
    """Import an entry point, as if from its directory: a function of a participant, or a whole `Program`.

    `stated` is what the federation's file declares. A `Program` may declare the same or more, but nothing else.
    """
    if (machine := read_machine(entry)) is not None:
        from worldline.programs.machine import program_of  # Few participants are machines.

        return program_of(machine, directory, guest=guest, **(stated or {}))
    found = load_object(entry, directory)
    if not isinstance(found, Program):
        if not callable(found):
            advice = "an entry is a function of a participant, or a Program"
            raise UsageError(f"{entry} is {shown(found)}", advice=advice)
        found = Program(found)
    if found.is_machine:
        raise UsageError(f"{entry} is a machine", advice='in a file, write script = "server.py" or module = "server"')
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
            known = [each for each in dir(found) if _is_own(each, getattr(found, each, None))]
            advice = nearest(part, known, f"{module_name} has") if known else None
            raise UsageError(f"{module_name} has no {name}", advice=advice)
        found = getattr(found, part)
    return found


def _is_own(name: str, value: object) -> bool:
    """Whether a module's author may have meant this: no module, nor `from __future__ import annotations`."""
    return not (name.startswith("_") or isinstance(value, ModuleType) or type(value).__module__ == "__future__")


def check_entry(entry: str, directory: Path) -> None:
    """Refuse ``module:name`` if the module isn't there, or if its source shows that it doesn't define the name."""
    if (machine := read_machine(entry)) is not None:
        if (script := script_of(machine, directory)) is not None:
            check_script(script)
        else:
            check_module(machine.words[0], directory)
        return
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
    """Return the files in a participant's directory that it is started from: those that its entry or command names."""
    machine = read_machine(entry)
    words = machine.words if machine is not None else (entry,) if entry is not None else command or ()
    return files_named(words, directory)


def files_named(words: Iterable[str], directory: Path) -> list[Path]:
    """Return the files in a directory that words name: by their paths, or as modules, also with a name in them."""
    return [file for word in words if (file := _file_named(word, directory)) is not None]


def _file_named(word: str, directory: Path) -> Path | None:
    if S_ISREG(mode_of(directory / word)):
        return directory / word
    module = word.partition(":")[0].split(".")
    return _file_in(directory, module) if all(part.isidentifier() for part in module) else None


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
