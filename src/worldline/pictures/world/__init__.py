"""Pictures of runs of a world, from above: paths as SVG."""

from worldline.pictures.world.paths import PathsPicture

__all__ = ["PathsPicture"]
