"""SimPy's interface, compiled: `import worldline.simpy as simpy` runs models of SimPy 4.1 as they are.

Besides, an `Environment` has a digest of all that happened, random numbers that a seed decides, and can be recorded,
verified and compared by the commands.
"""

from __future__ import annotations

from worldline.simpy import core as core
from worldline.simpy import events as events
from worldline.simpy import exceptions as exceptions
from worldline.simpy import resources as resources
from worldline.simpy import rt as rt
from worldline.simpy import util as util
from worldline.simpy.core import Environment
from worldline.simpy.events import AllOf, AnyOf, Event, Process, Timeout
from worldline.simpy.exceptions import Interrupt, SimPyException
from worldline.simpy.resources.container import Container
from worldline.simpy.resources.resource import PreemptiveResource, PriorityResource, Resource
from worldline.simpy.resources.store import FilterStore, PriorityItem, PriorityStore, Store
from worldline.simpy.rt import RealtimeEnvironment

__version__ = "4.1.2"
"""The version of SimPy whose interface this is."""

__all__ = [
    "AllOf",
    "AnyOf",
    "Container",
    "Environment",
    "Event",
    "FilterStore",
    "Interrupt",
    "PreemptiveResource",
    "PriorityItem",
    "PriorityResource",
    "PriorityStore",
    "Process",
    "RealtimeEnvironment",
    "Resource",
    "SimPyException",
    "Store",
    "Timeout",
]
