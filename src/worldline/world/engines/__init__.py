"""Which physics engines there are, by name, and what one has to say of a world before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from worldline.extras import installing
from worldline.model.errors import ModelError, UsageError, shown
from worldline.world.description import LoadingNote, WorldDescription, WorldModel
from worldline.world.engines.engine import PhysicsEngine
from worldline.world.engines.kinematic import KinematicEngine

ENGINES = ("mujoco", "kinematic")


def open_engine(name: str, world: WorldDescription) -> PhysicsEngine:
    """Return an engine for a world. MuJoCo is loaded only if it is asked for: everything else does without."""
    if name == "kinematic":
        return KinematicEngine(world)
    if name != "mujoco":
        raise UsageError(f"there is no physics engine {shown(name)}", advice=f"use one of: {', '.join(ENGINES)}")
    try:
        from worldline.world.engines.mujoco import MujocoEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mujoco", "numpy"):
            raise
        raise UsageError("MuJoCo isn't installed", advice=installing("mujoco")) from error
    return MujocoEngine(world)


_DEEP = 0.01  # Meters.


def first_notes(engine: PhysicsEngine, models: Mapping[str, WorldModel] | None = None) -> list[LoadingNote]:
    """Build the whole world once, or only these models of it, and return what is to be known before it runs.

    What can't be built is known then, too.
    """
    models = engine.world.models if models is None else models
    movers = [name for name, model in models.items() if not model.static]
    group = engine.build(movers, [name for name, model in models.items() if model.static])
    group.set_states(0, {name: engine.initial_state(name) for name in movers})
    with suppress(ModelError):  # The run itself says it.
        group.advance()
    deepest = {pair: depth for pair, depth in group.contacts().items() if depth > _DEEP}
    if not deepest:
        return []
    (one, other), depth = max(deepest.items(), key=lambda each: each[1])
    pairs = f"{len(deepest)} pairs of models start" if len(deepest) > 1 else "two models start"
    text = (
        f"{pairs} more than {100 * _DEEP:g} cm deep in each other and will be hurled apart: "
        f"{shown(one)} and {shown(other)} by {100 * depth:.3g} cm"
    )
    return [LoadingNote(0, text)]
