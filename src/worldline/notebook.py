"""What notebooks need besides the front door: plots, diagrams, animations, and how far a run is."""

from worldline.pictures.diagrams import animation, diagram
from worldline.pictures.plot import Plot, plot
from worldline.pictures.progress import Progress

__all__ = ["Plot", "Progress", "animation", "diagram", "plot"]
