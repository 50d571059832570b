"""Worldline: deterministic distributed simulation.

Components that each keep a clock of their own exchange messages, and the history that they produce together depends
on their inputs alone: not on scheduling, machine, number of workers or luck.
"""

from typing import TYPE_CHECKING, Any

from worldline.federation.checker import check
from worldline.federation.client import connect
from worldline.federation.inprocess import run
from worldline.federation.limits import Limits
from worldline.federation.participant import Participant
from worldline.federation.program import Federation, Program
from worldline.federation.server import Server
from worldline.lock import RunEnded
from worldline.model import (
    MS,
    SECOND,
    Message,
    Network,
    Rule,
    WorldlineError,
    errors,
    format_time,
    hold,
    link,
    partition,
    payload,
    plan,
    uniform,
)

if TYPE_CHECKING:
    from worldline.federation.aio import connect_async

__version__ = "0.1.0"

__all__ = [
    "MS",
    "SECOND",
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
    "uniform",
]


def __getattr__(name: str) -> Any:
    """Import the asyncio client when it is asked for: asyncio takes longer to load than all the rest together."""
    if name == "connect_async":
        from worldline.federation.aio import connect_async

        return connect_async
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
