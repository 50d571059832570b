"""Worlds from SDF files, the format of Gazebo's worlds."""

from worldline.world.sdf.element import WorldFileError
from worldline.world.sdf.reader import read_world

__all__ = ["WorldFileError", "read_world"]
