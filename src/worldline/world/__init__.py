"""Robots in a physics world, in lockstep over several processes, the same bit for bit for any number of them."""

from worldline.world.description import WorldDescription
from worldline.world.run import World
from worldline.world.sdf import read_world
from worldline.world.spectator import Spectator

__all__ = ["Spectator", "World", "WorldDescription", "read_world"]
