"""Pictures of topologies and of runs, as SVG texts that need nothing else."""

from worldline.pictures.nodes.diagram import diagram_svg
from worldline.pictures.nodes.topology import Routes, routes_to, topology_svg

__all__ = ["Routes", "diagram_svg", "routes_to", "topology_svg"]
