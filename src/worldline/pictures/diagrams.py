"""Diagrams of what was run, from Python: of nodes, of agents in spacetime, of topologies."""

from __future__ import annotations

from typing import Any

from worldline.model.errors import UsageError, shown
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Topology
from worldline.pictures.nodes import diagram_svg, topology_svg
from worldline.pictures.spacetime import minkowski_svg
from worldline.pictures.svg import Svg
from worldline.recording.reader import Recording, intact, recorded_account
from worldline.spacetime.outcome import SCENE, AgentRecord, Scene, SpacetimeOutcome, recall


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
        return recall((topic, payload or b"") for _, _, topic, payload, _, _ in account.sendings)
    raise UsageError(
        f"{shown(run)} can't be drawn", advice="draw a traced Scheduler, an outcome of spacetime, or a Topology"
    )
