"""SimPy's module of this name."""

from worldline.simpy.resources.shared import BaseResource, Get, Put

__all__ = ["BaseResource", "Get", "Put"]
