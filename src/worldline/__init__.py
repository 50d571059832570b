"""Worldline: deterministic distributed simulation.

Components that each keep a clock of their own exchange messages, and the history that they produce together depends
on their inputs alone: not on scheduling, machine, number of workers or luck.
"""

from worldline.federation.aio import connect_async
from worldline.federation.checker import check
from worldline.federation.client import connect
from worldline.federation.inprocess import run
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
    exponential,
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

__version__ = "0.1.0"

__all__ = [
    "MS",
    "SECOND",
    "Federation",
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
    "exponential",
    "format_time",
    "hold",
    "link",
    "normal",
    "partition",
    "payload",
    "plan",
    "run",
    "table",
    "uniform",
]
