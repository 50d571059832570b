"""Levels as plain values, for tests of the cores."""

from __future__ import annotations

from typing import NamedTuple

from worldline.world.levels import Levels
from worldline.world.pose import Vector as Point


class PlainLevel(NamedTuple):
    name: str
    center: Point
    size: Point
    buffer: float = 0.0
    entities: tuple[str, ...] = ()


def along_x(name: str, start: float, stop: float, buffer: float = 0.0, entities: str = "") -> PlainLevel:
    """A level between two points of the x axis, ten wide and high. Its entities are given as one text."""
    return PlainLevel(name, ((start + stop) / 2, 0.0, 0.0), (stop - start, 10.0, 10.0), buffer, tuple(entities.split()))


def world(*levels: PlainLevel, others: str = "") -> Levels:
    """Levels, and entities that none of them names."""
    return Levels(levels, [*(entity for level in levels for entity in level.entities), *others.split()])


UNIT: Point = (1.0, 1.0, 1.0)


def at(x: float, y: float = 0.0, z: float = 0.0) -> Point:
    return (x, y, z)
