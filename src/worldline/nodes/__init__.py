"""Nodes: a laboratory for distributed algorithms."""

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.faults import Fault, draw_faults, fault
from worldline.nodes.node import (
    Event,
    LinkDown,
    LinkUp,
    Meta,
    NeighborAdded,
    NeighborRemoved,
    Node,
    Protocol,
    Recover,
    Start,
    Timer,
)
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.shapes import as_topology
from worldline.nodes.shrinking import shrink
from worldline.nodes.topology import Topology
from worldline.nodes.trace import NodeRecord
from worldline.nodes.trial import Trial, search
from worldline.search.properties import Property, Violation, always, at_end, eventually, leads_to

__all__ = [
    "Algorithm",
    "Event",
    "Fault",
    "LinkDown",
    "LinkUp",
    "Meta",
    "NeighborAdded",
    "NeighborRemoved",
    "Node",
    "NodeRecord",
    "Property",
    "Protocol",
    "Recover",
    "Scheduler",
    "Start",
    "Timer",
    "Topology",
    "Trial",
    "Violation",
    "always",
    "as_topology",
    "at_end",
    "draw_faults",
    "eventually",
    "fault",
    "leads_to",
    "search",
    "shrink",
]
