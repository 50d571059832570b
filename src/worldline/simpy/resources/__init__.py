"""SimPy's resources, each in the module in which SimPy has it."""

from worldline.simpy.resources import base, container, resource, store

__all__ = ["base", "container", "resource", "store"]
