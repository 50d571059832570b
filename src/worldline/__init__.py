"""Worldline: deterministic distributed simulation.

Components that each keep a clock of their own exchange messages, and the history that they produce together depends
on their inputs alone: not on scheduling, machine, number of workers or luck.
"""

from worldline.federation.checker import check
from worldline.federation.inprocess import Outcome, run
from worldline.federation.participant import Participant
from worldline.federation.program import Federation, Program
from worldline.lock import RunEnded
from worldline.model import (
    MS,
    SECOND,
    US,
    Message,
    Network,
    Rule,
    WorldlineError,
    exponential,
    fixed,
    format_time,
    hold,
    link,
    normal,
    parse_time,
    partition,
    table,
    uniform,
)

__version__ = "0.1.0"

__all__ = [
    "MS",
    "SECOND",
    "US",
    "Federation",
    "Message",
    "Network",
    "Outcome",
    "Participant",
    "Program",
    "Rule",
    "RunEnded",
    "WorldlineError",
    "check",
    "exponential",
    "fixed",
    "format_time",
    "hold",
    "link",
    "normal",
    "parse_time",
    "partition",
    "run",
    "table",
    "uniform",
]
