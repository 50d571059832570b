"""Worldline: deterministic distributed simulation.

Components, each with its own clock, exchange messages. The history that they produce together depends on their inputs
alone: not on scheduling, machine, number of workers or luck.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # Not signal, for which others have to be loaded first.
import os
import sys

# The command ends at once on Ctrl-C until all is loaded (`cli/__init__.py`): what is half loaded has nothing to tidy
# up. By `orig_argv`, since processes that the command starts may have its `argv`.
_WORDS = [word for word in sys.orig_argv[1:4] if word != "-P"]
_IS_COMMAND = _WORDS[:2] == ["-m", "worldline"] or "".join(_WORDS[:1]).rpartition("/")[2] == "worldline"
if _IS_COMMAND and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from importlib import import_module  # noqa: E402

import worldline.builds  # noqa: E402, F401 - before anything else: it says which build of the lock is loaded.

if os.environ.get("WORLDLINE_RESTLESS_THREADS", "0") not in ("", "0"):
    from worldline.restless_threads import make_restless

    make_restless()

TYPE_CHECKING = False  # Not typing's: to load that takes longer than all the rest here.
if TYPE_CHECKING:
    from typing import Any, overload

    from worldline import errors
    from worldline.experiments.sweeping import sweep
    from worldline.federation.inprocess.checker import check
    from worldline.federation.outcome import FederationOutcome
    from worldline.federation.participant.aio import connect_async
    from worldline.federation.participant.client import connect
    from worldline.federation.participant.participant import Participant
    from worldline.federation.participant.program import Federation, Program, run_program
    from worldline.federation.participant.sometimes import sometimes
    from worldline.federation.server.limits import Limits
    from worldline.federation.server.server import Server
    from worldline.history.observer import Observer
    from worldline.history.outcome import Outcome
    from worldline.lock import Crashed, EmergencyStop, RunEnded
    from worldline.model import (
        MS,
        SECOND,
        Message,
        Network,
        Rule,
        WorldlineError,
        clock,
        exponential,
        fixed,
        format_time,
        hold,
        link,
        normal,
        partition,
        payload,
        plan,
        table,
        uniform,
    )
    from worldline.model.time import TimeLike
    from worldline.pictures.plot import plot
    from worldline.programs.machine import Machine
    from worldline.testing.simulated import host, test

__version__ = "0.1.0"

__all__ = [
    "MS",
    "SECOND",
    "Crashed",
    "EmergencyStop",
    "Federation",
    "Limits",
    "Machine",
    "Message",
    "Network",
    "Observer",
    "Outcome",
    "Participant",
    "Program",
    "Rule",
    "RunEnded",
    "Server",
    "WorldlineError",
    "check",
    "clock",
    "connect",
    "connect_async",
    "errors",
    "exponential",
    "fixed",
    "format_time",
    "hold",
    "host",
    "link",
    "normal",
    "partition",
    "payload",
    "plan",
    "plot",
    "run",
    "run_program",
    "sometimes",
    "sweep",
    "table",
    "test",
    "uniform",
]


# A program that imports a part of Worldline, or the command, shouldn't have to wait for all of it.
_HOMES = {
    **dict.fromkeys(["Federation", "Program"], "worldline.federation.participant.program"),
    "Limits": "worldline.federation.server.limits",
    "Machine": "worldline.programs.machine",
    "Observer": "worldline.history.observer",
    "Outcome": "worldline.history.outcome",
    "Participant": "worldline.federation.participant.participant",
    **dict.fromkeys(["Crashed", "EmergencyStop", "RunEnded"], "worldline.lock"),
    "Server": "worldline.federation.server.server",
    "check": "worldline.federation.inprocess.checker",
    "connect": "worldline.federation.participant.client",
    "connect_async": "worldline.federation.participant.aio",
    "run_program": "worldline.federation.participant.program",
    **dict.fromkeys(["host", "test"], "worldline.testing.simulated"),
    "sometimes": "worldline.federation.participant.sometimes",
    "sweep": "worldline.experiments.sweeping",
    "plot": "worldline.pictures.plot",
}


if TYPE_CHECKING:

    @overload
    def run(runnable: Federation, until: TimeLike | None = None, **options: Any) -> FederationOutcome: ...
    @overload
    def run(runnable: Any, until: TimeLike | float | None = None, **options: Any) -> Any: ...


def run(runnable: Any, until: TimeLike | float | None = None, **options: Any) -> Any:
    """Run something that can be run to its end, and return its outcome.

    That is a Federation, whose participants run in this process, or what has a `run` of its own: a kernel Simulation,
    a Scheduler of nodes, a ForwardSimulation of agents in spacetime, a World. If `until` is given, the run ends there.
    The other options are those of that `run`; all but worlds take an `observer`, which is told all that happens, and a
    `watch`, which is told the status now and then. Of a federation, `draws` replaces random draws, by name, and
    `keep_journals` puts what each participant has seen into the outcome; of other models, `executor` says what executes
    them.
    """
    own = getattr(type(runnable), "run", None)
    if own is None:
        from worldline.federation.inprocess.run import run as run_in_process

        return run_in_process(runnable, until, **options)  # type: ignore[arg-type]
    return own(runnable, **options) if until is None else own(runnable, until, **options)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "errors":  # A module of its own.
        return import_module("worldline.errors")
    found = globals()[name] = getattr(import_module(_HOMES.get(name, "worldline.model")), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
