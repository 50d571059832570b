"""Pictures of runs through spacetime: texts of SVG and HTML that need nothing else."""

from worldline.pictures.spacetime.animation import animation_html
from worldline.pictures.spacetime.diagram import minkowski_svg

__all__ = ["animation_html", "minkowski_svg"]
