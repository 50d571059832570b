"""Spacetime: agents with trajectories, that send each other functions at the speed of light."""

from worldline.builds import build
from worldline.processes.executor import shuffled as Shuffled  # noqa: N812 - It was a class.
from worldline.spacetime.agent import Agent, AgentWrapper, Channel, RemoteReference, current
from worldline.spacetime.boundary import Boundary, above, below, box
from worldline.spacetime.core import ClosedError
from worldline.spacetime.geometry import LambdaField, Trajectory, Vector
from worldline.spacetime.outcome import AgentRecord, SpacetimeOutcome
from worldline.spacetime.simulation import ForwardSimulation
from worldline.spacetime.space import Minkowski

__all__ = [
    "Agent",
    "AgentRecord",
    "AgentWrapper",
    "Boundary",
    "Channel",
    "ClosedError",
    "ForwardSimulation",
    "LambdaField",
    "Minkowski",
    "RemoteReference",
    "Shuffled",
    "SpacetimeOutcome",
    "Trajectory",
    "Vector",
    "above",
    "below",
    "box",
    "build",
    "current",
]
