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
_IS_COMMAND = sys.orig_argv[1:3] == ["-m", "worldline"] or "".join(sys.orig_argv[1:2]).rpartition("/")[2] == "worldline"
if _IS_COMMAND and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from importlib import import_module  # noqa: E402

import worldline.builds  # noqa: E402, F401 - before anything else: it says which build of the lock is loaded.

if os.environ.get("WORLDLINE_RESTLESS_THREADS", "0") not in ("", "0"):
    from worldline.restless_threads import make_restless

    make_restless()

TYPE_CHECKING = False  # Not typing's: to load that takes longer than all the rest here.
if TYPE_CHECKING:
    from typing import Any

    from worldline import errors
    from worldline.federation.inprocess.checker import check
    from worldline.federation.inprocess.run import run
    from worldline.federation.participant.aio import connect_async
    from worldline.federation.participant.client import connect
    from worldline.federation.participant.participant import Participant
    from worldline.federation.participant.program import Federation, Program, run_program
    from worldline.federation.server.limits import Limits
    from worldline.federation.server.server import Server
    from worldline.lock import EmergencyStop, RunEnded
    from worldline.model import (
        MS,
        SECOND,
        Message,
        Network,
        Rule,
        WorldlineError,
        clock,
        format_time,
        hold,
        link,
        partition,
        payload,
        plan,
        uniform,
    )

__version__ = "0.1.0"

__all__ = [
    "MS",
    "SECOND",
    "EmergencyStop",
    "Federation",
    "Limits",
    "Message",
    "Network",
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
    "format_time",
    "hold",
    "link",
    "partition",
    "payload",
    "plan",
    "run",
    "run_program",
    "uniform",
]


# Whoever imports a part of Worldline, or starts its command, shouldn't have to wait for all of it.
_HOMES = {
    **dict.fromkeys(["Federation", "Program"], "worldline.federation.participant.program"),
    "Limits": "worldline.federation.server.limits",
    "Participant": "worldline.federation.participant.participant",
    **dict.fromkeys(["EmergencyStop", "RunEnded"], "worldline.lock"),
    "Server": "worldline.federation.server.server",
    "check": "worldline.federation.inprocess.checker",
    "connect": "worldline.federation.participant.client",
    "connect_async": "worldline.federation.participant.aio",
    "run": "worldline.federation.inprocess.run",
    "run_program": "worldline.federation.participant.program",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "errors":  # A module of its own.
        return import_module("worldline.errors")
    found = globals()[name] = getattr(import_module(_HOMES.get(name, "worldline.model")), name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
