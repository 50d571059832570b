"""SimPy's module of this name."""

from worldline.simpy.resources.shared import Container, ContainerGet, ContainerPut

__all__ = ["Container", "ContainerGet", "ContainerPut"]
