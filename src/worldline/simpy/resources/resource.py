"""SimPy's module of this name."""

from worldline.simpy.resources.shared import (
    Preempted,
    PreemptiveResource,
    PriorityRequest,
    PriorityResource,
    Release,
    Request,
    Resource,
    SortedQueue,
)

__all__ = [
    "Preempted",
    "PreemptiveResource",
    "PriorityRequest",
    "PriorityResource",
    "Release",
    "Request",
    "Resource",
    "SortedQueue",
]
