"""Pictures of runs of a world, from above: paths as SVG, and an animation as one HTML page."""

from worldline.world.pictures.animation import Animation
from worldline.world.pictures.paths import PathsPicture

__all__ = ["Animation", "PathsPicture"]
