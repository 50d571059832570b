"""Zeros have signs, and states carry them: a group that goes on gives the bits of a fresh one (E1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.world.crowd import robot, solid
from worldline.model.time import MS
from worldline.world.description import SpeedLimits, VelocityDrive, WorldDescription, WorldModel
from worldline.world.engines import open_engine
from worldline.world.engines.drives import same_bits
from worldline.world.engines.engine import PhysicsEngine
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import BoxShape

ZEROS = (0.0, -0.0)
VECTORS: tuple[Vector, ...] = tuple(product(ZEROS, repeat=3))  # type: ignore[arg-type]


def engine_of(name: str) -> PhysicsEngine:
    if name == "mujoco":
        pytest.importorskip("mujoco", reason="MuJoCo isn't installed")
    wheels = replace(robot("wheels", 0.0, 5.0, 0.0, 0.0), commands=())
    assert wheels.drive is not None
    models = (
        WorldModel(name="hoverer", links=(solid("body", BoxShape((1.0, 1.0, 1.0))),), drive=VelocityDrive()),
        wheels,
        replace(wheels, name="stuck", drive=replace(wheels.drive, linear=SpeedLimits(acceleration_max=0.0))),
    )
    world = WorldDescription(name="w", step=10 * MS, models={model.name: model for model in models})
    return open_engine(name, world)


@pytest.mark.long
@pytest.mark.parametrize("name", ["kinematic", "mujoco"])
@pytest.mark.parametrize("entity", ["hoverer", "stuck", "wheels"])
def test_a_group_that_goes_on_gives_the_bits_of_a_fresh_one(name: str, entity: str) -> None:
    engine = engine_of(name)
    running = engine.build([entity])
    running.set_states(0, {entity: engine.initial_state(entity)})
    running.advance()
    for linear, angular, axis in product(VECTORS, VECTORS, VECTORS if name == "kinematic" else VECTORS[::7]):
        running.command(entity, linear, angular)
        running.place(entity, Pose((-0.0, -0.0, -0.0), (1.0, *axis)))
        for _ in range(2):
            fresh = engine.build([entity])
            fresh.set_states(running.step, running.states())
            running.advance()
            fresh.advance()
            assert running.states() == fresh.states(), (linear, angular, axis)


def test_a_model_that_differs_in_the_sign_of_a_zero_is_another() -> None:
    engine = engine_of("mujoco")
    engine.initial_state("hoverer")
    other = replace(engine.world.models["hoverer"], pose=Pose((-0.0, 0.0, 0.0)))
    changed = replace(engine.world, models={**engine.world.models, "hoverer": other})
    engine.change_world(changed)
    assert engine.initial_state("hoverer") == open_engine("mujoco", changed).initial_state("hoverer")


def test_bits_are_the_same_only_if_signs_of_zeros_are() -> None:
    assert same_bits((0.0, 1.5), (0.0, 1.5))
    assert not same_bits((0.0, 1.5), (-0.0, 1.5))
    assert not same_bits((0.0, 1.5), (0.0, 2.5))
