"""Finds what a user's text means, and makes it ready to run."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from worldline.federation.program import Federation
from worldline.kernel.simulation import Simulation
from worldline.loading.definition import MODEL, Definition, defines_model, definition_in, unfit
from worldline.loading.parameters import pairs, parsed
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.nodes import algorithms
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.loading import lone_algorithm
from worldline.nodes.trial import Trial
from worldline.spacetime import examples
from worldline.spacetime.simulation import ForwardSimulation
from worldline.targets import algorithm, federation, simulation, spacetime
from worldline.targets.ready import Options, Ready
from worldline.targets.texts import PYTHON, TOML, parts_of
from worldline.workers.executor import readable_executor

KINDS = (Federation, Simulation, Algorithm, Trial, ForwardSimulation)
FORM = "a model is a Federation, a kernel Simulation, an Algorithm, a ForwardSimulation, or a function that makes one"

_RECORDING = ".mcap"


def prepare(target: str, options: Options) -> Ready:
    """Make ready what `FILE.toml`, `FILE.py`, `FILE.py:NAME`, or the name of something of ours means."""
    file, name = parts_of(target)
    if file.suffix == TOML:
        return federation.from_file(file, options)
    if file.suffix != PYTHON:
        return _built_in(target, options)
    if not name and not defines_model(file):
        lone = lone_algorithm(file)
        if lone is not None:
            return algorithm.ready(Trial(algorithm=lone), {}, options)
    beside = file.with_suffix(TOML)
    form = f"the federation beside it is {beside}" if not name and beside.is_file() else FORM
    return _made(definition_in(file, name or MODEL, KINDS, form), options)


def _made(found: Definition, options: Options) -> Ready:
    texts = pairs(options.settings)
    maker = found.maker
    own = parsed(found.name, maker.parameters, {name: text for name, text in texts.items() if name in maker.parameters})
    rest = {name: text for name, text in texts.items() if name not in maker.parameters}
    given: dict[str, Any] = {} if options.seed is None else {"seed": options.seed}
    # What can't be read is refused by whoever knows what can be used there.
    executor = None if options.executor is None else readable_executor(options.executor)
    if executor is not None and not isinstance(executor, federation.EXECUTORS):  # Those aren't for a function to use.
        given["executor"] = executor
    made = maker.make(given, own)
    if isinstance(made, Algorithm | Trial):  # It may have parameters of its own.
        trial = Trial(algorithm=made) if isinstance(made, Algorithm) else made
        return algorithm.ready(trial, rest, options, others=maker.parameters)
    parsed(found.name, maker.parameters, rest)  # None of these is one.
    if isinstance(made, Federation):
        return federation.from_python(found, made, options)
    if isinstance(made, Simulation):
        return simulation.ready(found, made, options)
    if isinstance(made, ForwardSimulation):
        return spacetime.ready(found, made, options)
    raise unfit(found.where, "what its model returns", made, FORM)


def _built_in(target: str, options: Options) -> Ready:
    """Make ready an algorithm or an example that comes with Worldline."""
    room, _, name = target.rpartition(":")
    if room in ("", "nodes") and name in algorithms.NAMES:
        return algorithm.ready(Trial(algorithm=algorithms.find(name)), pairs(options.settings), options)
    if room in ("", "spacetime") and name in examples.NAMES:
        return _made(examples.find(name).definition, options)
    raise _unknown(target, name)


def _unknown(target: str, name: str) -> UsageError:
    if target.endswith(_RECORDING):
        return UsageError(f"{target} is a recording, of a run that is over", advice=f"worldline info {target} shows it")
    if target and Path(target).is_dir():
        return ConfigurationError(f"{target} is a directory", advice="name a file in it: FILE.toml or FILE.py")
    if target and Path(target).exists():
        return ConfigurationError(f"{target} isn't a file that can be run", advice="its name ends in .toml or .py")
    known = (*algorithms.NAMES, *examples.NAMES)
    near = get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]}?" if near else "give FILE.toml, FILE.py, or a name: see `worldline nodes list`"
    return UsageError(f"there is nothing to run called {shown(target)}", advice=advice)
