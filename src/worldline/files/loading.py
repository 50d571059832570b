"""What a user's file defines to be run: `model`, a value or a function that makes it.

That is the one name that every room looks for. Beside it may stand UNTIL, when a run ends unless options say otherwise,
and `outcome`, a function that says in words what has come of a run, and refuses what may not come of it.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from functools import lru_cache, partial, wraps
from hashlib import blake2b, file_digest
from importlib import invalidate_caches
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, getdoc, isasyncgenfunction, iscoroutinefunction, isfunction, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from worldline.model.blame import said_of
from worldline.model.errors import (
    FILE_MODULE,
    ConfigurationError,
    Interrupted,
    LossError,
    ModelError,
    UsageError,
    WorldlineError,
    shown,
)
from worldline.model.reading import as_time
from worldline.model.time import US

# Which code a run is made of: hashes of users' files, and versions of the libraries that they import.
#
# Nothing is imported or run for it: files are read and parsed. So the answer is the same whichever process asks, and on
# every executor.

_SIZE = 8
_OURS = "worldline"


@dataclass
class Sources:
    """The hashes of files by their names, as seen from a folder, and the versions of libraries by theirs."""

    code: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)


_seen: dict[Path, str] = {}
"""The hash of each file when it was looked at first, and again since it was forgotten."""


def sources_of(files: Iterable[Path], folder: Path) -> Sources:
    """Look at files, and at the modules that Python would find next to those that import them."""
    found: dict[Path, str] = {}
    libraries: set[str] = set()
    waiting = [(file.resolve(), file.resolve().parent) for file in files]
    while waiting:
        file, root = waiting.pop()
        if file in found or (digest := hash_of(file)) is None:
            continue
        found[file] = digest
        _seen.setdefault(file, digest)
        for module in _imported(file, root):
            if parts := list(_files_of(module, root)):
                waiting += [(part, root) for part in parts]
            else:
                libraries.add(module.partition(".")[0])
    names = {os.path.relpath(file, folder.resolve()).replace(os.sep, "/"): digest for file, digest in found.items()}
    return Sources(dict(sorted(names.items())), _versions(libraries))


def hash_of(file: Path) -> str | None:
    """Return the hash of a file, None if there is none that can be read."""
    try:
        with file.open("rb") as data:
            return file_digest(data, lambda: blake2b(digest_size=_SIZE)).hexdigest()
    except OSError:
        return None


def _imported(file: Path, root: Path) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it: a name that is imported from one may be another."""
    if file.suffix != ".py":
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # The run that imports it says so.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, root)
            yield from (".".join(filter(None, (base, alias.name))) for alias in node.names)


def _once(look: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """Look at a file once as long as it stays the same: in sweeps it is asked for again and again."""

    @lru_cache(maxsize=64)
    def known(path: str, _changed_ns: int, _size: int) -> bool:
        return look(Path(path))

    @wraps(look)
    def looked(file: Path) -> bool:
        try:
            stat = os.stat(file)  # noqa: PTH116 - Faster.
        except OSError:
            return look(file)
        return known(_resolved(str(file), os.getcwd()), stat.st_mtime_ns, stat.st_size)  # noqa: PTH109

    return looked


@_once
def imports_simpy(file: Path) -> bool:
    """Whether a file imports SimPy, by its own name or ours."""
    try:
        if b"simpy" not in file.read_bytes():
            return False
    except OSError:  # What loads it says so.
        return False
    names = _imported(file.resolve(), file.resolve().parent)
    return any(name.split(".")[0] == "simpy" or name.startswith("worldline.simpy") for name in names)


@_once
def binds_model(file: Path) -> bool:
    """Whether a file gives something the name of what is to be run, as far as that can be told without running it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # The run that loads it says so.
        return False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == MODEL:
            return True
        if isinstance(node, ast.Import | ast.ImportFrom):
            if any((alias.asname or alias.name) == MODEL for alias in node.names):
                return True
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
            if any(each.id == MODEL for each in stored):
                return True
    return False


def _absolute(node: ast.ImportFrom, file: Path, root: Path) -> str:
    """Return the module that something is imported from, by its full name where that was given in dots."""
    if not node.level:
        return node.module or ""
    inside = file.parent.relative_to(root).parts if file.is_relative_to(root) else ()
    packages = inside[: len(inside) - node.level + 1]
    return ".".join((*packages, *filter(None, (node.module,))))


def _files_of(module: str, root: Path) -> Iterator[Path]:
    """Yield the files that Python loads for a module, from the outermost package on, if they are here."""
    place = root
    for part in module.split("."):
        place /= part
        package, alone = place / "__init__.py", place.with_name(f"{part}.py")
        if package.is_file():
            yield package
        elif alone.is_file():
            yield alone
            return
        elif not place.is_dir():
            return


def _versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of what is installed. Python's own is said elsewhere, and so is ours."""
    from importlib.metadata import PackageNotFoundError, version  # Here, since it takes long to load.

    found = {}
    for name in sorted(libraries):
        if name and name != _OURS and name not in sys.stdlib_module_names:
            try:
                found[name] = version(name)
            except (PackageNotFoundError, ValueError):  # It is installed under another name, or not at all.
                continue
    return found


# Loads a user's Python file as a module.


class _Uncached(SourceFileLoader):
    """Reads the file itself: to Python, bytecode is that of a text of the same size and second, whatever is in it."""

    def path_stats(self, path: Any) -> Mapping[str, Any]:
        raise OSError(f"{path} has no bytecode")


def forget_changed() -> None:
    """Let users' modules be loaded anew if a file of theirs has changed: a notebook's process lives long.

    All of them, since those that haven't changed may have taken something from one that has. To be called before a run,
    and never during one, which is one version's from beginning to end.
    """
    invalidate_caches()
    if all(hash_of(file) == then for file, then in _seen.items()):
        return
    files = {str(file) for file in _seen}
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in files and name not in ("__main__", "__mp_main__"):
            del sys.modules[name]
    _seen.clear()


def load_module(path: Path) -> ModuleType:
    """Load a file once. It gets the same name in every process, so that what it defines can be sent between them."""
    name = FILE_MODULE + re.sub(r"\W", "_", path.stem)
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == _resolved(str(path), os.getcwd()):  # noqa: PTH109 - Faster.
        return loaded
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory", advice="name a file in it")
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}")
    file = str(path.resolve())
    spec = spec_from_file_location(name, file, loader=_Uncached(name, file)) if path.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} isn't a Python file", advice="its name ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # As for a script: it may import what lies beside it.
        sys.path.append(folder)  # At the end: workers get this path too, and its queue.py isn't the one they need.
    try:
        spec.loader.exec_module(module)
    except (Interrupted, LossError):  # It has printed something that has no reader, or the disk is full.
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # It is the user's code, and can raise anything.
        del sys.modules[name]
        raise ConfigurationError(f"{path} can't be loaded: {said_of(error)}") from error
    return module


@lru_cache(maxsize=64)
def _resolved(path: str, _folder: str) -> str:
    """Return where a path leads, seen from a folder: in sweeps it is asked again and again."""
    return os.path.realpath(path)


def loaded_files() -> list[Path]:
    """Return the files that have been loaded: a worker that is sent what they define loads them, too."""
    return [Path(module.__file__ or "") for name, module in sorted(sys.modules.items()) if name.startswith(FILE_MODULE)]


MODEL, SEED = "model", "seed"

_OLD_NAMES = ("federation", "ALGORITHM", "build")
_FUNCTION = "write def model(*, seed=0, size=10), where size is a parameter of your own"


class Maker(Struct, frozen=True):
    """A function that makes models. `parameters` are its own, with the values that they have otherwise.

    What is raised in it has the fact `maker`: the parameters have the right names and types, and the model is at fault.
    """

    where: str
    function: Callable[..., Any]
    parameters: dict[str, Any]
    takes_seed: bool

    def make(self, seed: int | None, parameters: Mapping[str, Any]) -> Any:
        """Make a model; without a seed, or if it takes none, with its own. Errors name the line that went wrong."""
        seeded = {SEED: seed} if self.takes_seed and seed is not None else {}
        try:
            return self.function(**seeded, **parameters)
        except WorldlineError as error:
            error.facts["maker"] = self.where
            raise
        except (Exception, SystemExit) as error:  # It is the user's code, and can raise anything.
            problem = f"{self.where}: its model can't be set up: {said_of(error)}"
            raise ConfigurationError(problem, maker=self.where) from error


class Definition(Struct, frozen=True):
    """What a file, or a module of ours, defines under a name."""

    where: str
    name: str
    module: ModuleType
    maker: Maker

    @property
    def about(self) -> str:
        """The first line of what it says of itself."""
        return (getdoc(self.module) or "").partition("\n")[0]

    @property
    def until(self) -> Any:
        """When a run ends, as it is written there; None if it isn't."""
        return getattr(self.module, "UNTIL", None)

    def judged(self, *run: Any) -> str:
        """Return what has come of a run, by its `outcome`; refuse what may not come of it."""
        judge = getattr(self.module, "outcome", None)
        if not callable(judge):  # A script may well call a result so.
            return ""
        try:
            return str(judge(*run))
        except (Interrupted, LossError):  # It has printed something that has no reader, or the disk is full.
            raise
        except AssertionError as error:
            raise ModelError(f"{self.name}: its outcome isn't what it should be: {said_of(error)}") from error
        except Exception as error:  # It is the user's code, and can raise anything.
            raise ModelError(f"{self.name}: its outcome() failed: {said_of(error)}") from error

    def measured(self, *run: Any) -> Any:
        """Return what its `measures` says of a run, numbers by their names; nothing if it has none."""
        measure = getattr(self.module, "measures", None)
        if not callable(measure):
            return {}
        try:
            return measure(*run)
        except (Interrupted, LossError):
            raise
        except Exception as error:  # It is the user's code, and can raise anything.
            raise ModelError(f"{self.name}: its measures() failed: {said_of(error)}") from error


def definition_in(path: Path, name: str, kinds: tuple[type, ...], form: str) -> Definition:
    """Return what a file defines. `kinds` are those that can be run, and `form` says how one is written."""
    module = load_module(path)
    if not hasattr(module, name):
        raise _missing(path, name, module, kinds, form)
    where = str(path) if name == MODEL else f"{path}:{name}"
    outcome = getattr(module, "outcome", None)
    if isinstance(outcome, int | float | str):
        raise ConfigurationError(
            f"{path}: its outcome is {shown(outcome)}, not a function",
            advice="write def outcome(simulation, result), or call it something else",
        )
    return Definition(where, path.stem, module, maker_of(where, getattr(module, name), kinds, form))


def defines_model(path: Path) -> bool:
    """Whether a file defines what is to be run, also if under a name that isn't the one."""
    module = load_module(path)
    return any(hasattr(module, name) for name in (MODEL, *_OLD_NAMES))


def maker_of(where: str, value: Any, kinds: tuple[type, ...], form: str) -> Maker:
    """Return what makes a model: a function does, and a model that is there already is made by taking it."""
    if isinstance(value, kinds):
        return Maker(where, lambda: value, {}, takes_seed=False)
    if isinstance(value, type) or not callable(value):
        raise unfit(where, "its model", value, form)
    if iscoroutinefunction(value) or isasyncgenfunction(value):
        raise ConfigurationError(f"{where}: its model can't be async", advice="write def model(...), without async")
    function, takes_seed = value, False
    own: dict[str, Any] = {}
    for name, parameter in (_signature if isfunction(value) else signature)(value).parameters.items():
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            raise ConfigurationError(
                f"{where}: its model takes *{name}, so its parameters can't be known", advice=_FUNCTION
            )
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            raise ConfigurationError(f"{where}: the parameter {name} of its model has to be named", advice=_FUNCTION)
        default = parameter.default
        if name == SEED:
            takes_seed = True
            if default is Parameter.empty:
                function = partial(value, seed=0)
        elif default is Parameter.empty:
            raise ConfigurationError(f"{where}: the parameter {name} of its model has no default", advice=_FUNCTION)
        else:
            own[name] = default
    return Maker(where, function, own, takes_seed)


_signature = lru_cache(maxsize=64)(signature)  # Of the same functions again and again, in sweeps.


def unfit(where: str, what: str, value: Any, form: str) -> ConfigurationError:
    """Return that something isn't what can be run, in terms of what it is."""
    if isinstance(value, type):
        found = f"is the class {value.__name__}"
    else:
        found = f"is {shown(value)}" if value is None or isinstance(value, int | float | str) else _kind_of(value)
    return ConfigurationError(f"{where}: {what} {found}", advice=form)


def _kind_of(value: Any) -> str:
    kind = type(value).__name__
    return f"is {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _missing(path: Path, name: str, module: ModuleType, kinds: tuple[type, ...], form: str) -> ConfigurationError:
    """Explain that a file doesn't define what is looked for, by what it does define."""
    known = [key for key, value in vars(module).items() if isinstance(value, kinds) and not key.startswith("_")]
    choice = f"it has {', '.join(known)}: write {path}:{known[0]}" if known else form
    if name != MODEL:
        return ConfigurationError(f"{path} has no {shown(name)}", advice=choice)
    old = [each for each in _OLD_NAMES if hasattr(module, each)]
    if len(old) == 1:
        return ConfigurationError(f"{path} defines {old[0]}, but no model", advice="call it model")
    near = get_close_matches(MODEL, vars(module), n=1, cutoff=0.8)
    if near:
        return ConfigurationError(f"{path} defines {near[0]}, but no model", advice="did you mean model?")
    return ConfigurationError(f"{path} defines no model", advice=choice)


# Parameters that are given as texts, such as those of ``--set NAME=VALUE``.


_BOOLS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_OPTIONS = ("seed", "until", "executor")  # What isn't a parameter, but an option of its own.
_KINDS = (bool, float, int, str)


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Take apart texts of the form NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text} sets nothing", advice="write --set NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def parsed(owner: str, defaults: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Read the parameters of something; each is of the kind of its default."""
    found: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in defaults:
            if name in _OPTIONS:
                advice = f"write --{name} {text}"
                raise ConfigurationError(f"{owner} has no parameter {shown(name)} of its own", advice=advice)
            there = ", ".join(f"{key}={value}" for key, value in defaults.items()) or "it has none"
            raise ConfigurationError(f"{owner} has no parameter {shown(name)}", advice=f"parameters: {there}")
        found[name] = _as_its_default(owner, name, defaults[name], text)
    return found


def _as_its_default(owner: str, name: str, default: Any, text: str) -> Any:
    kind = str if default is None else type(default)
    if kind is timedelta:
        return _as_timedelta(text, f"a value of {name}")
    if kind not in _KINDS:
        raise ConfigurationError(
            f"{owner}: {name} can't be set here: it is {shown(default)}",
            advice="numbers, text, times, yes and no can",
        )
    try:
        return _BOOLS[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"{owner}: {name} can't be {shown(text)}", advice=f"write a value like {default!r}"
        ) from None


def _as_timedelta(text: str, what: str) -> timedelta:
    time = as_time(text, what)
    if time % US:
        raise ConfigurationError(f"{what} can't be {text}", advice="a timedelta is in whole microseconds")
    return timedelta(microseconds=time // US)


# Which command takes which kind of file: for errors about one that was given to another command.


_COMMANDS = {
    ".toml": "worldline run {} runs it",
    ".py": "worldline run {} runs it",
    ".sdf": "worldline run {} --until 10s runs it",
    ".world": "worldline run {} --until 10s runs it",
    ".mcap": "worldline info {} shows it",
    ".sweep": "worldline sweep {} shows it",
    ".timing": "worldline why {} reads it",
    ".json": "if a search has saved it, worldline view {} --target TARGET shows it",
}


def command_for(file: object) -> str | None:
    """Return what takes a file with such a name, in words; None, if nothing does."""
    words = _COMMANDS.get(Path(str(file)).suffix)
    return None if words is None else words.format(file)
