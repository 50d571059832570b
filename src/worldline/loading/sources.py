"""Which code a run is made of: hashes of users' files, and versions of the libraries that they import.

Nothing is imported or run for it: files are read and parsed. So the answer is the same whichever process asks, and on
every executor.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b, file_digest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_SIZE = 8
_OURS = "worldline"


@dataclass
class Sources:
    """The hashes of files by their names, as seen from a folder, and the versions of libraries by theirs."""

    code: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)


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
    except (OSError, SyntaxError, ValueError, RecursionError):  # Whoever runs it is told.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, root)
            yield from (".".join(filter(None, (base, alias.name))) for alias in node.names)


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
    found = {}
    for name in sorted(libraries):
        if name and name != _OURS and name not in sys.stdlib_module_names:
            try:
                found[name] = version(name)
            except (PackageNotFoundError, ValueError):  # It is installed under another name, or not at all.
                continue
    return found
