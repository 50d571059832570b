"""Which physics engines there are, by name."""

from __future__ import annotations

from worldline.model.errors import UsageError, shown
from worldline.world.description import WorldDescription
from worldline.world.engine import PhysicsEngine
from worldline.world.kinematic_engine import KinematicEngine

ENGINES = ("mujoco", "kinematic")


def open_engine(name: str, world: WorldDescription) -> PhysicsEngine:
    """Return an engine for a world. MuJoCo is loaded only if it is asked for: everything else does without."""
    if name == "kinematic":
        return KinematicEngine(world)
    if name != "mujoco":
        raise UsageError(f"there is no physics engine {shown(name)}", advice=f"use one of: {', '.join(ENGINES)}")
    try:
        from worldline.world.mujoco_engine import MujocoEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mujoco", "numpy"):
            raise
        raise UsageError("MuJoCo isn't installed", advice="pip install 'worldline[mujoco]'") from error
    return MujocoEngine(world)
