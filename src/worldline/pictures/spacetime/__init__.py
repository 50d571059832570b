"""Pictures of runs through spacetime: texts of SVG that need nothing else."""

from worldline.pictures.spacetime.diagram import minkowski_svg

__all__ = ["minkowski_svg"]
