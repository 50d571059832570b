"""The kernel: many entities in one program, the same result on any number of workers."""

from worldline.builds import build
from worldline.history.monitor import Monitor
from worldline.kernel.engine import ScheduledEvent
from worldline.kernel.entity import Entity, process
from worldline.kernel.model import KernelOutcome
from worldline.kernel.process import Process
from worldline.kernel.simulation import Simulation
from worldline.kernel.waiting import EntityMessage, Interrupt, Resource, Signal, receive, wait
from worldline.processes.executor import as_executor, inline, mpi, processes

__all__ = [
    "Entity",
    "EntityMessage",
    "Interrupt",
    "KernelOutcome",
    "Monitor",
    "Process",
    "Resource",
    "ScheduledEvent",
    "Signal",
    "Simulation",
    "as_executor",
    "build",
    "inline",
    "mpi",
    "process",
    "processes",
    "receive",
    "wait",
]
