"""SimPy's module of this name."""

from worldline.simpy.engine import (
    BoundClass,
    EmptySchedule,
    Environment,
    Infinity,
    SimTime,
    StopSimulation,
)

__all__ = ["BoundClass", "EmptySchedule", "Environment", "Infinity", "SimTime", "StopSimulation"]
