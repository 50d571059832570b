"""What all engines have in common: limits, newcomers, signs of zeros (E1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import nan
from struct import unpack

import pytest

from tests.world.crowd import ENGINES, crowd, movers_of, needs_mujoco, robot, solid, started
from tests.world.small_worlds import course_of, link_poses, local, run
from worldline.model.errors import ModelError, UsageError
from worldline.model.time import MS, SECOND
from worldline.world.description import SpeedLimits, VelocityDrive, WorldDescription, WorldModel
from worldline.world.engines import open_engine
from worldline.world.engines.drives import same_bits
from worldline.world.engines.engine import PhysicsEngine, SimulatedGroup, link_radius
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import BoxShape

ROCKET = WorldModel(name="rocket", links=(solid("body", BoxShape((1, 1, 1))),), drive=VelocityDrive())


def world_of(model: WorldModel) -> WorldDescription:
    return WorldDescription(name="w", step=10 * MS, models={model.name: model})


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def group(engine: str, model: WorldModel = ROCKET) -> SimulatedGroup:
    return started(open_engine(engine, world_of(model)), world_of(model))


def test_commands_have_limits(engine: str) -> None:
    running = group(engine)
    for linear, angular in (((1e300, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, -1.1e6))):
        with pytest.raises(UsageError, match="too fast for any physics") as caught:
            running.command("rocket", linear, angular)
        assert caught.value.advice == "command at most 1e+06 m/s and rad/s along each axis"
    running.command("rocket", (1e6, 0, 0), (0, 0, 0))
    running.extents(10)


def test_poses_have_limits(engine: str) -> None:
    running = group(engine)
    with pytest.raises(UsageError, match="too far away for any physics") as caught:
        running.place("rocket", Pose((0, -1e300, 0)))
    assert caught.value.advice == "stay within 1e+09 m of the origin along each axis"
    running.place("rocket", Pose((0, -1e9, 0)))
    running.extents(10)
    running.advance()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model",
    [
        replace(ROCKET, drive=VelocityDrive(linear=(1e300, 0, 0))),
        replace(ROCKET, pose=Pose((1e308, 1e308, 1e308))),
    ],
)
def test_what_a_file_wants_and_numbers_cannot_say_is_named(engine: str, model: WorldModel) -> None:
    running = group(engine, model)
    running.set_states(7, running.states())
    for ask in (lambda: running.extents(10), lambda: open_engine(engine, world_of(model)).newcomer("rocket", 7, 10)):
        with pytest.raises(ModelError, match="'rocket' is too far away or too fast to go on, in step 7") as caught:
            ask()
        assert (caught.value.facts["entity"], caught.value.facts["step"], caught.value.at) == ("rocket", 7, 70 * MS)


WORLD = crowd()


def test_every_link_is_in_its_box(engine: str) -> None:
    running = started(open_engine(engine, WORLD), WORLD)
    for _ in range(3):
        extents = running.extents(20)
        running.advance(20)
        for name, poses in link_poses(running).items():
            center, half, speed = extents[name]
            for pose, link in zip(poses, WORLD.models[name].links, strict=True):
                for axis in range(3):
                    room = half[axis] + speed * 20 * WORLD.step / SECOND - link_radius(link)
                    assert abs(pose.position[axis] - center[axis]) <= room


def test_mistakes_are_told(engine: str) -> None:
    thing = WorldModel(name="thing", links=(solid("body", BoxShape((1, 1, 1))),))
    ground = WorldModel(name="ground", static=True, links=thing.links)
    models = {each.name: each for each in (thing, ROCKET, ground)}
    opened = open_engine(engine, WorldDescription(name="w", step=10 * MS, models=models))
    running = opened.build(["thing", "rocket"])
    running.set_states(0, {name: opened.initial_state(name) for name in ("thing", "rocket")})
    states = running.states()
    for text, mistake in {
        "3 bytes are no state of model 'thing'": lambda: running.set_states(0, states | {"thing": b"abc"}),
        "are no states of": lambda: running.set_states(0, {}),
        "'thing' has no drive": lambda: running.command("thing", (0, 0, 0), (0, 0, 0)),
        "finite numbers": lambda: running.command("rocket", (nan, 0, 0), (0, 0, 0)),
        "isn't in this group": lambda: running.place("ground", Pose()),
        "there is no model 'nobody'": lambda: opened.build(["nobody"]),
        "model 'ground' is static": lambda: opened.initial_state("ground"),
        "'thing' is not static": lambda: opened.build([], ["thing"]),
        "there is no physics engine 'ode'": lambda: open_engine("ode", WORLD),
    }.items():
        with pytest.raises(UsageError, match=text):
            mistake()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("step", [0, 140, 151])
def test_a_newcomer_is_as_a_group_alone_would_have_it(name: str, step: int) -> None:
    engine = open_engine(name, WORLD)
    for entity in movers_of(WORLD):
        found = engine.newcomer(entity, step, 20)
        alone = engine.build([entity])
        alone.set_states(step, {entity: found.state})
        assert found.state == engine.initial_state(entity, step)
        assert found.position == unpack("<3d", alone.packed_positions())
        extent = alone.extents(20)[entity]
        assert found.extent.center == pytest.approx(extent.center, abs=1e-12)
        assert found.extent.half == pytest.approx(extent.half, abs=1e-12)
        assert found.extent.speed == pytest.approx(extent.speed, rel=1e-12)


@needs_mujoco
def test_the_primary_builds_each_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from worldline.world.engines.mujoco_model import MujocoBuilder

    built = []
    add = MujocoBuilder.add
    monkeypatch.setattr(MujocoBuilder, "add", lambda self, model: built.append(model.name) or add(self, model))
    course = course_of(WORLD, ("a",), None, engine="mujoco")
    course.begin(1)
    assert sorted(built) == sorted(movers_of(WORLD))
    assert course.positions().keys() == set(movers_of(WORLD))
    assert len(built) == len(movers_of(WORLD))


@needs_mujoco
def test_a_scripted_model_is_where_its_script_says_whatever_its_links() -> None:
    pusher = WORLD.models["pusher"]
    tilted = replace(
        pusher, links=tuple(replace(link, pose=Pose.from_rpy((1, 2, 3), 0.1, 0.2, 0.3)) for link in pusher.links)
    )
    world = replace(WORLD, models={"pusher": tilted})
    course, exchange = course_of(world, ("a",), None, engine="mujoco"), local(world, ("a",), "mujoco")
    run(course, exchange, 250 * 10**6 // world.step)
    assert pusher.motion is not None
    assert course.positions()["pusher"] == pusher.motion.waypoints[1].pose.position


ZEROS = (0.0, -0.0)
VECTORS: tuple[Vector, ...] = tuple(product(ZEROS, repeat=3))  # type: ignore[arg-type]


def engine_of(name: str) -> PhysicsEngine:
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
@pytest.mark.parametrize("name", ENGINES)
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


@needs_mujoco
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
