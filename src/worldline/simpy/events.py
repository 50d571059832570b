"""SimPy's module of this name."""

from worldline.simpy.engine import (
    NORMAL,
    PENDING,
    URGENT,
    AllOf,
    AnyOf,
    Condition,
    ConditionValue,
    Event,
    EventPriority,
    Initialize,
    Interruption,
    Process,
    ProcessGenerator,
    Timeout,
)
from worldline.simpy.exceptions import Interrupt

__all__ = [
    "NORMAL",
    "PENDING",
    "URGENT",
    "AllOf",
    "AnyOf",
    "Condition",
    "ConditionValue",
    "Event",
    "EventPriority",
    "Initialize",
    "Interrupt",
    "Interruption",
    "Process",
    "ProcessGenerator",
    "Timeout",
]
