"""What notebooks need besides the front door: plots, diagrams, pages of runs, and how far a run is."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from worldline.history.outcome import Status
from worldline.model.errors import UsageError, shown
from worldline.model.text import escaped
from worldline.model.time import FOREVER, format_time
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Topology
from worldline.pictures.nodes import diagram_svg, topology_svg
from worldline.pictures.page import Page
from worldline.pictures.plot import Plot, plot
from worldline.pictures.spacetime import minkowski_svg
from worldline.pictures.svg import Svg
from worldline.recording.reader import Recording, intact, recorded_account
from worldline.spacetime.outcome import SCENE, AgentRecord, Scene, SpacetimeOutcome, recall
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


# Diagrams of what was run, from Python: of nodes, of agents in spacetime, of topologies.


def diagram(run: Any, *, title: str = "") -> Svg:
    """Draw a run: a scheduler of nodes that was traced, an outcome of spacetime, its recording; or a topology."""
    if isinstance(run, Topology):
        return topology_svg(run, title=title)
    if isinstance(run, Scheduler):
        if not run.records:
            raise UsageError("the run wasn't traced", advice="make it so: Scheduler(..., trace=True)")
        return diagram_svg(run.records, run.num_nodes, title=title or run.topology.name, until=run.now)
    scene, records = told_agents(run)
    return minkowski_svg(
        records, scene.n, field=scene.field, title=title, until=scene.until, boundaries=scene.boundaries
    )


def told_agents(run: Any) -> tuple[Scene, list[AgentRecord]]:
    """Return what an outcome of spacetime, or its recording, tells of its agents."""
    if isinstance(run, SpacetimeOutcome):
        if run.scene is None or run.kept is None:
            raise UsageError("the run wasn't traced", advice="make it so: ForwardSimulation(..., trace=True)")
        return run.scene, run.records
    if isinstance(run, Recording):
        if SCENE not in run.topics():
            raise UsageError(f"{run.path} isn't a recording of agents in spacetime", advice="plot its signals instead")
        account = recorded_account(intact(run))
        return recall((who, number, topic, payload or b"") for _, who, topic, payload, _, number in account.sendings)
    raise UsageError(
        f"{shown(run)} can't be drawn", advice="draw a traced Scheduler, an outcome of spacetime, or a Topology"
    )


# How far a run or a sweep is, in a notebook.

_EVERY_S = 0.2


class Progress:
    """Shows in a notebook how far something is: give it as the `watch` of a run, or as the `progress` of a sweep.

    Elsewhere it shows nothing. What it shows stays when the run is over.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.html = ""
        self._handle: Any = None
        self._begun = time.monotonic()
        self._shown = -_EVERY_S

    def __call__(self, done: Status | int, total: int = 0) -> None:
        """Be told the status of a run, or how many runs of a sweep are done, of how many."""
        now = time.monotonic()
        is_last = isinstance(done, int) and done >= total
        if now - self._shown < _EVERY_S and not is_last:
            return
        self._shown = now
        self.html = self._told(done, total, now - self._begun)
        self._show()

    def _told(self, done: Status | int, total: int, seconds: float) -> str:
        if isinstance(done, Status):
            share = None if done.end >= FOREVER or not done.end else min(1.0, done.time / done.end)
            text = f"{format_time(done.time)}, {done.events:,} events"
        else:
            share = done / total if total else None
            text = f"{done:,} of {total:,} runs"
        left = f", {seconds / share - seconds:.0f} s left" if share and share < 1 and seconds > 1 else ""
        bar = "" if share is None else f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> '
        return f"{escaped(self.title)} {bar}{escaped(text + left)}".strip()

    def _show(self) -> None:
        display = _notebook()
        if display is None:
            return
        shown = display.HTML(self.html)
        if self._handle is None:
            self._handle = display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


def _notebook() -> Any:
    """Return IPython's way to show things, if this is a notebook; nothing is imported otherwise."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display")
