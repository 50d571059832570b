"""The source of a module that is compiled, for tests that compare the two in one process."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import worldline


def source_of(name: str) -> Any:
    """Load the source of a module, under another name: nothing else imports it."""
    file = Path(worldline.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    spec = spec_from_loader(f"{name}_source", SourceFileLoader(f"{name}_source", str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
