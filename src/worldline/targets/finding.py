"""Finds what a user's text means, and makes it ready to run.

Each room takes long to load, and a run needs few of them. So a room is loaded here only when it is known to be meant,
and a model is known by its class, if that is loaded: otherwise nothing can be of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from worldline.files.loading import (
    MODEL,
    Definition,
    command_for,
    defines_model,
    definition_in,
    forget_changed,
    imports_simpy,
    load_module,
    pairs,
    parsed,
    unfit,
)
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.time import format_time
from worldline.targets import federation, models
from worldline.targets.ready import PYTHON, TOML, WORLDS, Ready, RunOptions, end_in, parts_of

if TYPE_CHECKING:
    from worldline.federation.inprocess.checker import FederationLike
    from worldline.nodes.algorithm import Algorithm
    from worldline.nodes.trial import Trial

FORM = (
    "a model is a Federation, a kernel Simulation, a SimPy Environment, an Algorithm, a ForwardSimulation, or a "
    "function that makes one"
)

_FEDERATION = ("worldline.federation.participant.program", "Federation")
_SIMULATION = ("worldline.kernel.simulation", "Simulation")
_ALGORITHM, _TRIAL = ("worldline.nodes.algorithm", "Algorithm"), ("worldline.nodes.trial", "Trial")
_AGENTS = ("worldline.spacetime.simulation", "ForwardSimulation")
_ENVIRONMENT = ("worldline.simpy.engine", "Environment")
_RECORDING = ".mcap"
SEARCHED = "can be searched"


def prepare(target: str, options: RunOptions) -> Ready:
    """Make ready what `FILE.toml`, `FILE.py`, `FILE.py:NAME`, `FILE.sdf`, or the name of something of ours means."""
    ready = _found(target, os.getcwd())(options)  # noqa: PTH109 - Faster.
    if not isinstance(ready, federation.ReadyFederation):
        options.refuse_for(ready.name, ready.kind)
    ready.target, ready.options = target, options
    return ready


def look_again() -> None:
    """Let targets be found, and their files be loaded, anew where they have changed. To be called before a run."""
    _found.cache_clear()
    forget_changed()


@lru_cache(maxsize=64)  # In sweeps it is asked for again and again.
def _found(target: str, _folder: str) -> Callable[[RunOptions], Ready]:
    """Find what a target means, seen from a folder; return what makes it ready. A file's module is loaded once."""
    file, name = parts_of(target)
    if file.suffix == TOML:
        return partial(federation.from_file, file)
    if file.suffix in WORLDS:
        from worldline.targets import world

        return partial(world.from_file, file)
    if file.suffix != PYTHON:
        return partial(_built_in, target)
    if imports_simpy(file):
        return partial(_hosted, file, name)
    return _defined(file, name)


def _hosted(file: Path, name: str, options: RunOptions) -> Ready:
    """Make ready what imports SimPy: its module is loaded when it is known which seed it has."""
    from worldline.targets import simpy

    if not name and simpy.is_script(file):
        return simpy.from_script(file, options)
    with simpy.hosted(options):
        return _defined(file, name)(options)


def _defined(file: Path, name: str) -> Callable[[RunOptions], Ready]:
    if not name and not defines_model(file):
        from worldline.nodes.trial import lone_algorithm

        lone = lone_algorithm(file)
        if lone is not None:
            return partial(_algorithm, lone, {})
    return partial(_made, _definition(load_module(file), file, name))


@lru_cache(maxsize=64)  # In sweeps it is asked for again and again.
def _definition(_module: ModuleType, file: Path, name: str) -> Definition:
    """Return what the module of a file defines."""
    beside = file.with_suffix(TOML)
    form = f"the federation beside it is {beside}" if not name and beside.is_file() else FORM
    # Those that are loaded: the module has loaded the class of what it defines.
    kinds = _loaded(_FEDERATION, _SIMULATION, _ALGORITHM, _TRIAL, _AGENTS, _ENVIRONMENT)
    return definition_in(file, name or MODEL, kinds, form)


def found_federation(
    target: str, options: RunOptions, wanted_for: str = "have schedules to check"
) -> tuple[FederationLike, federation.ReadyFederation]:
    """Return the federation that a target means, in this process, or what makes it anew for every run; and one ready.

    What isn't one is refused, since only federations can do what is wanted.
    """
    is_file = target.endswith(TOML)
    wanted = replace(options, executor="in-process") if is_file else options

    def made() -> federation.ReadyFederation:
        # Of a world the options aren't looked at first: it would have to have an end, in vain.
        ready = None if parts_of(target)[0].suffix in WORLDS else prepare(target, wanted)
        if not isinstance(ready, federation.ReadyFederation):
            kind = "world" if ready is None else ready.kind
            advice = f"`worldline verify {target}{' --until 10s' if ready is None else ''}` runs it in many ways"
            if wanted_for == SEARCHED and kind == "nodes":
                named = f"--file {target}" if parts_of(target)[0].suffix == PYTHON else target
                advice = f"`worldline nodes {named} --seeds 100` tries it on many seeds"
            raise UsageError(f"only federations {wanted_for}, and {target} is of the kind {kind}", advice=advice)
        return ready

    first = made()
    return first.answering() if is_file else lambda: made().answering(), first


def _loaded(*classes: tuple[str, str]) -> tuple[type, ...]:
    return tuple(getattr(sys.modules[module], name) for module, name in classes if module in sys.modules)


def _is(made: Any, *classes: tuple[str, str]) -> bool:
    return isinstance(made, _loaded(*classes))


def _made(found: Definition, options: RunOptions) -> Ready:
    texts = pairs(options.settings)
    maker = found.maker
    own = parsed(found.name, maker.parameters, {name: text for name, text in texts.items() if name in maker.parameters})
    rest = {name: text for name, text in texts.items() if name not in maker.parameters}
    made = maker.make(options.seed, own)
    ready = _ready(found, made, rest, options)
    ready.own_measures = partial(found.measured, made)
    return ready


def _ready(found: Definition, made: Any, rest: Mapping[str, str], options: RunOptions) -> Ready:
    """Make ready what a definition has made; `rest` are settings that aren't its maker's."""
    maker = found.maker
    if _is(made, _FEDERATION, _ALGORITHM, _TRIAL):
        options = _ended(found, options)
    if _is(made, _ALGORITHM, _TRIAL):  # It may have parameters of its own.
        return _algorithm(made, rest, options, maker.parameters)
    parsed(found.name, maker.parameters, rest)  # None of these is one.
    if _is(made, _FEDERATION):
        return federation.from_python(found, made, options)
    if _is(made, _SIMULATION):
        return models.ready_simulation(found, made, options)
    if _is(made, _AGENTS):
        return models.ready_agents(found, made, options)
    if _is(made, _ENVIRONMENT):
        from worldline.targets import simpy

        return simpy.ready_environment(found, made, options)
    raise unfit(found.where, "what its model returns", made, FORM)


def _ended(found: Definition, options: RunOptions) -> RunOptions:
    """Return what is wanted of a run that ends when its file says so, unless the options say otherwise."""
    end = end_in(found) if options.until is None else None
    return options if end is None else replace(options, until=format_time(end))


def _algorithm(
    made: Algorithm | Trial, texts: Mapping[str, str], options: RunOptions, others: Mapping[str, Any] | None = None
) -> Ready:
    from worldline.nodes.trial import Trial

    trial = made if isinstance(made, Trial) else Trial(algorithm=made)
    return models.ready_algorithm(trial, texts, options, others)


def _built_in(target: str, options: RunOptions) -> Ready:
    """Make ready an algorithm or an example that comes with Worldline."""
    from worldline.nodes import algorithms
    from worldline.spacetime import examples

    room, _, name = target.rpartition(":")
    if room in ("", "nodes") and name in algorithms.NAMES:
        return _algorithm(algorithms.find(name), pairs(options.settings), options)
    if room in ("", "spacetime") and name in examples.NAMES:
        return _made(examples.find(name).definition, options)
    raise _unknown(target, name, (*algorithms.NAMES, *examples.NAMES))


def _unknown(target: str, name: str, known: Sequence[str]) -> UsageError:
    if target.endswith(_RECORDING) and Path(target).is_file():
        return UsageError(f"{target} is a recording, of a run that is over", advice=command_for(target))
    if target and Path(target).is_dir():
        return ConfigurationError(
            f"{target} is a directory", advice="name a file in it: FILE.toml, FILE.py or FILE.sdf"
        )
    if target and Path(target).exists():
        return ConfigurationError(
            f"{target} isn't a file that can be run",
            advice=command_for(target) or "the names of those end in .toml, .py or .sdf",
        )
    if command_for(target):
        return UsageError(f"there is no file {target}")
    near = get_close_matches(name, known, n=1)
    advice = (
        f"did you mean {near[0]}?"
        if near
        else "give FILE.toml, FILE.py, FILE.sdf, or a name: see `worldline nodes list`"
    )
    return UsageError(f"there is nothing to run called {shown(target)}", advice=advice)
