"""Loads a user's Python file as a module."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from worldline.model.blame import said_of
from worldline.model.errors import FILE_MODULE, ConfigurationError, Interrupted, LossError


def load_module(path: Path) -> ModuleType:
    """Load a file once. It gets the same name in every process, so that what it defines can be sent between them."""
    name = FILE_MODULE + re.sub(r"\W", "_", path.stem)
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path.resolve()):
        return loaded
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory", advice="name a file in it")
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
    except (Interrupted, LossError):  # It has printed something, and nobody reads that, or the disk is full.
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # It is the user's code, and can raise anything.
        del sys.modules[name]
        raise ConfigurationError(f"{path} can't be loaded: {said_of(error)}") from error
    return module


def loaded_files() -> list[Path]:
    """Return the files that have been loaded: a worker that is sent what they define loads them, too."""
    return [Path(module.__file__ or "") for name, module in sorted(sys.modules.items()) if name.startswith(FILE_MODULE)]
