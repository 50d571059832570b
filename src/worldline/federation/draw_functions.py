"""Finds the functions that a table of draws names, as ``module:function``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from worldline.federation.environment import FUNCTIONS
from worldline.model import UsageError
from worldline.model.draw_rows import DrawFunction, DrawInputs, functions_in
from worldline.model.errors import shown


def with_functions(given: DrawInputs) -> DrawInputs:
    """Return a table of draws with all functions that its rows name: one that isn't there is refused before a run."""
    missing = [name for name in functions_in(given.rows) if name not in given.functions]
    return DrawInputs(given.rows, {**given.functions, **{name: load_draw_function(name) for name in missing}})


def loader_of(named: Collection[str]) -> Callable[[str], DrawFunction]:
    """Return what imports these functions and no others: a server may not choose what runs in a client's process."""

    def load(text: str) -> DrawFunction:
        if text not in named:
            raise UsageError(
                f"the server names the function {shown(text)}, and whoever started this participant didn't",
                advice=f"if you trust it, set {FUNCTIONS} to {text}",
            )
        return load_draw_function(text)

    return load


def load_draw_function(text: str) -> DrawFunction:
    """Import a function, from wherever this process finds its modules: the folder of the participant comes first."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise UsageError(f"{shown(text)} isn't a function", advice="write module:function")
    try:
        found: Any = import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # Whatever a module raises when it is imported is its author's to know.
        raise UsageError(f"the function {text} can't be imported here: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UsageError(f"{text} is {shown(found)}, and not a function")
    function: DrawFunction = found
    return function
