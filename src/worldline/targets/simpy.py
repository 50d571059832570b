"""SimPy models, ready to run: environments that a file defines as its `model`, and scripts as they are."""

from __future__ import annotations

import random
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from worldline.files.loading import Definition, binds_model, pairs, parsed
from worldline.history.guarding import GuardedObserver
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model.errors import ConfigurationError, Interrupted, LossError, ModelError, ObserverFailure
from worldline.model.plan import Plan, plan
from worldline.model.reading import as_time
from worldline.model.text import counted
from worldline.processes.executor import Kind, as_executor
from worldline.processes.failures import is_from_outside
from worldline.simpy.border import ENVIRONMENT, unit_of, units
from worldline.simpy.engine import Environment, host_of
from worldline.simpy.hosting import EnvironmentHost, SimpyOutcome, first_of
from worldline.targets.ready import Ready, RunOptions

EXECUTORS: tuple[Kind, ...] = ("inline",)
"""What SimPy models run on: the order of their events is that of one process."""

_PACKAGE, _STANDS_FOR = "worldline.simpy", "simpy"
_SCRIPT_SETTINGS = {"unit": "1s", "args": ""}
"""How long a unit of a script's time is, and its command line."""


class ReadySimpy(Ready):
    """Environments that can be run once: `execute` runs them, and `judge` says what has come of it."""

    kind = "simpy"
    members = ("process", "processes")
    has_messages = False

    def __init__(
        self,
        name: str,
        host: EnvironmentHost,
        options: RunOptions,
        *,
        seed: int,
        unit: int,
        until: Any,
        execute: Callable[[], object],
        judge: Callable[[Outcome], list[str]] = lambda _: [],
    ) -> None:
        self.name = name
        self.seed = seed
        self.chosen = as_executor(options.executor or "inline", EXECUTORS)
        self._host = host
        self._unit = unit
        self._until = until
        self._execute = execute
        self._judge = judge

    def plan(self) -> Plan:
        return plan([ENVIRONMENT], seed=self.seed)

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        host = self._host
        host.begin(self._until, None if observer is None else GuardedObserver(observer), watch)
        try:
            with host, standing_in():
                self._execute()
        except (Interrupted, LossError, ObserverFailure):  # None is the model's fault.
            raise
        except BaseException as error:  # It is the user's code, and can raise anything.
            if is_from_outside(first_of(error)):
                raise
            raise host.blame(error) from error
        outcome = host.conclude()
        if not outcome.members:
            raise ConfigurationError(
                f"{self.name} has made no simpy.Environment, so there is nothing to run",
                advice="make one in this process: those of processes that it starts aren't seen",
            )
        return outcome

    def extent(self, outcome: Outcome) -> str:
        return f"{outcome.now / self._unit:,g} units of time"

    def taking_part(self, outcome: Outcome) -> str:
        assert isinstance(outcome, SimpyOutcome)
        return counted(outcome.processes, *self.members)

    def verify(self, outcome: Outcome) -> list[str]:
        return self._judge(outcome)


@contextmanager
def hosted(options: RunOptions) -> Iterator[EnvironmentHost]:
    """While it lasts, `import simpy` means ours, its environments have the seed, and so has Python's own `random`."""
    seed = options.seed or 0
    random.seed(seed)
    with EnvironmentHost(seed) as host, standing_in():
        yield host


@contextmanager
def standing_in() -> Iterator[None]:
    """While it lasts, our modules stand for SimPy's."""
    import worldline.simpy  # noqa: F401 - Loads them all.

    hidden = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == _STANDS_FOR}
    ours = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{_PACKAGE}.")}
    stand_ins = {name.removeprefix("worldline."): module for name, module in ours.items()}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


# -- Files that define a model


def ready_environment(found: Definition, env: Environment, options: RunOptions) -> ReadySimpy:
    """Take an environment that a definition has made; it runs until its end, or as long as anything happens."""
    if options.seed is not None and env.seed != options.seed:
        raise ConfigurationError(
            f"{found.where}: its model doesn't pass on its seed",
            advice="write def model(*, seed=0), and Environment(seed=seed) in it, or leave seed out there",
        )
    unit = unit_of(env)
    until = _end_in(found, unit) if options.until is None else units(options.until, unit)
    return ReadySimpy(
        found.name,
        host_of(env),
        options,
        seed=env.seed,
        unit=unit,
        until=until,
        execute=env.run,
        judge=lambda outcome: found.judged(env, outcome).splitlines(),
    )


def _end_in(found: Definition, unit: int) -> Any:
    """Return when a file says that its run ends: a number counts as the model does, a text is a time."""
    said = found.until
    return as_time(said, f"the UNTIL of {found.where}") / unit if isinstance(said, str) else said


# -- Scripts


def is_script(file: Path) -> bool:
    """Whether a file that imports SimPy is to be run as a script: it defines no model."""
    return not binds_model(file)


def from_script(file: Path, options: RunOptions) -> ReadySimpy:
    """Take a script as it is: whatever environments it makes and runs are those of the run."""
    if not file.is_file():
        raise ConfigurationError(f"there is no file {file}")
    settings = {**_SCRIPT_SETTINGS, **parsed(str(file), _SCRIPT_SETTINGS, pairs(options.settings))}
    unit = as_time(settings["unit"], "the unit of time")
    return ReadySimpy(
        file.stem,
        EnvironmentHost(options.seed or 0, settings["unit"]),
        options,
        seed=options.seed or 0,
        unit=unit,
        until=None if options.until is None else units(options.until, unit),
        execute=lambda: _execute(file, shlex.split(settings["args"]), options.seed or 0),
    )


def _execute(file: Path, arguments: list[str], seed: int) -> None:
    """Run a script as Python would."""
    random.seed(seed)
    before = sys.argv, list(sys.path)
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.resolve().parent))
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise ModelError(f"{file} has ended with the exit code {end.code}") from end
    finally:
        sys.argv, sys.path[:] = before
