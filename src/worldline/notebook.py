"""What notebooks need besides the front door: plots, diagrams, pages of runs, and how far a run is."""

from typing import Any

from worldline.pictures.diagrams import diagram, told_agents
from worldline.pictures.page import Page
from worldline.pictures.plot import Plot, plot
from worldline.pictures.progress import Progress
from worldline.recording.reader import Recording
from worldline.watch.agents import agents_page
from worldline.watch.recorded import recorded_show

__all__ = ["Plot", "Progress", "animation", "diagram", "plot"]


def animation(run: Any, *, title: str = "") -> Page:
    """Return the page of any recording, as `worldline view` shows it, or of a traced outcome of spacetime."""
    if isinstance(run, Recording):
        show = recorded_show(run)
        show.facts |= {"name": title} if title else {}
        return show.page()
    scene, records = told_agents(run)
    return agents_page(records, scene, title)
