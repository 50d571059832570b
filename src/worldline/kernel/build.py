"""Chooses the build of the engine: compiled where there is one, unless WORLDLINE_UNCOMPILED is set."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from worldline.builds import UNCOMPILED, is_unwanted


def compiled(name: str, needed: Iterable[str]) -> ModuleType:
    """Return a compiled module that has what is needed; an ImportError says in plain words why there is none."""
    if is_unwanted():
        raise ImportError(f"{UNCOMPILED} is set")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise ImportError("it isn't compiled for this Python") from None
        raise ImportError(f"{name} can't be loaded: {error}") from error
    except Exception as error:  # Of another version, or damaged: then the loader and Cython raise all sorts of things.
        raise ImportError(f"{name} can't be loaded: {error}") from error
    missing = [each for each in needed if not hasattr(module, each)]
    if missing:
        raise ImportError(f"{name} was compiled for another version: it has no {missing[0]}")
    return module


if TYPE_CHECKING:
    from random import Random

    from worldline.kernel.engine import Engine, EntityBase, Handlers, ScheduledEvent, handlers_of
    from worldline.kernel.plain import advance
    from worldline.kernel.process import Process, begin_process, end_entity, refused_generator

    build = ""

    class Draws(Random):
        """What it is to whoever draws: it isn't a `Random`, which is large, but has its methods, and two more."""

        def __init__(self, seed: int, *names: str) -> None: ...
        def exponential(self, mean: float | str) -> int: ...
        def spread(self, least: int, number: int) -> int: ...
else:
    _engine_names = ("EntityBase", "Engine", "Handlers", "ScheduledEvent", "handlers_of")
    _process_names = ("Process", "begin_process", "end_entity", "refused_generator")
    try:
        Draws = compiled("worldline.kernel._draws", ("Draws",)).Draws
        _engine = compiled("worldline.kernel._engine", _engine_names)
        _process = compiled("worldline.kernel._process", _process_names)
        advance = compiled("worldline.kernel._loop", ("advance",)).advance
        build = "compiled"
    except ImportError as reason:
        from worldline.kernel import engine as _engine
        from worldline.kernel import process as _process
        from worldline.kernel.draws import Draws
        from worldline.kernel.plain import advance

        build = f"plain Python ({reason})"
    globals().update({name: getattr(_engine, name) for name in _engine_names})
    globals().update({name: getattr(_process, name) for name in _process_names})

__all__ = [
    "Draws",
    "Engine",
    "EntityBase",
    "Handlers",
    "Process",
    "ScheduledEvent",
    "advance",
    "begin_process",
    "build",
    "end_entity",
    "handlers_of",
    "refused_generator",
]
