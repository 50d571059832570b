"""Pictures of runs of a world, from above: paths as SVG, and an animation as one HTML page."""

from worldline.pictures.world.animation import Animation
from worldline.pictures.world.paths import PathsPicture

__all__ = ["Animation", "PathsPicture"]
