"""Extents are honest (E4): no link of any tree of joints leaves its box in silence, however far slides are out."""

from __future__ import annotations

from dataclasses import replace
from math import dist, inf
from random import Random
from struct import pack

import pytest

from tests.world.crowd import ground, solid, started, thing
from tests.world.small_worlds import link_poses
from worldline.model.errors import ModelError
from worldline.model.time import MS, SECOND
from worldline.world.description import (
    Joint,
    JointKind,
    ScriptedMotion,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.engines.engine import Extent, SimulatedGroup, link_radius
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import BoxShape, SphereShape

pytest.importorskip("mujoco", reason="MuJoCo isn't installed")

STEP = 2 * MS
KINDS: tuple[JointKind, ...] = ("revolute", "prismatic", "prismatic", "fixed", "ball")


def started_alone(*models: WorldModel) -> SimulatedGroup:
    world = WorldDescription(name="w", gravity=(0.0, 0.0, 0.0), step=STEP, models={each.name: each for each in models})
    return started(open_engine("mujoco", world), world)


def tree(random: Random) -> WorldModel:
    """A model of joints at random: half of the slides are open at one end or at both."""

    def vector(size: float) -> Vector:
        return (random.uniform(-size, size), random.uniform(-size, size), random.uniform(-size, size))

    count = random.randint(2, 6)
    joints = [
        Joint(
            name=f"j{number}",
            kind=random.choice(KINDS),
            child=f"l{number}",
            parent=f"l{random.randrange(number)}",
            anchor=vector(0.5),
            axis=random.choice([(1.0, 0.0, 0.0), (0.0, 0.6, 0.8), (0.0, 0.0, 1.0)]),
            lower=random.choice([-inf, -2.0]),
            upper=random.choice([inf, 2.0]),
        )
        for number in range(1, count)
    ]
    if random.random() < 0.4:
        joints.append(Joint(name="root", kind="revolute", child="l0", parent=None, anchor=vector(0.5)))
    return WorldModel(
        name="tree",
        links=tuple(
            solid(f"l{number}", SphereShape(random.uniform(0.05, 0.3)), 10.0 ** random.uniform(-1, 1), vector(1.0))
            for number in range(count)
        ),
        joints=tuple(joints),
    )


def origins(running: SimulatedGroup) -> list[Vector]:
    return [pose.position for pose in link_poses(running)["tree"]]


def is_in(extent: Extent, model: WorldModel, at: list[Vector], seconds: float) -> bool:
    return all(
        abs(position[axis] - extent.center[axis]) + link_radius(link)
        <= (extent.half[axis] + extent.speed * seconds) * (1 + 1e-9)
        for position, link in zip(at, model.links, strict=True)
        for axis in range(3)
    )


@pytest.mark.parametrize("seed", range(60))
def test_whoever_leaves_its_box_ends_the_run(seed: int) -> None:
    random = Random(seed)
    model = tree(random)
    running = started_alone(model)
    state = running.states()["tree"]
    compiled = running._model  # type: ignore[attr-defined]
    data = running._data  # type: ignore[attr-defined]
    for number in range(compiled.njnt):
        if compiled.jnt_type[number] == 2:  # A slide.
            data.qpos[compiled.jnt_qposadr[number]] = random.choice([0.0, 20.0, -300.0])
    fast = 10.0 ** random.uniform(0, 1.5)
    data.qvel[:] = [random.uniform(-fast, fast) for _ in range(compiled.nv)]
    state = running.states()["tree"]
    running.set_states(0, {"tree": state})
    for _ in range(4):
        extent, before = running.extents(10)["tree"], origins(running)
        start = running.step
        try:
            for _ in range(10):
                running.advance()
                now = origins(running)
                ways = [dist(a, b) * SECOND / STEP for a, b in zip(before, now, strict=True)]
                assert max(ways) <= float(running._bounds.found(1)[0]) * (1 + 1e-9)  # type: ignore[attr-defined]
                assert is_in(extent, model, now, (running.step - start) * STEP / SECOND)
                before = now
        except ModelError:
            return


def test_a_link_far_out_on_an_open_slide_counts_with_its_whole_arm() -> None:
    boom = WorldModel(
        name="boom",
        links=(solid("hub", SphereShape(0.4), 1e5), solid("bob", SphereShape(0.3), 0.01, (1.5, 0, 0))),
        joints=(
            Joint(
                name="s",
                kind="prismatic",
                child="bob",
                parent="hub",
                axis=(1, 0, 0),
                lower=-inf,
                upper=30.0,
                damping=0.05,
            ),
        ),
        canonical_link="hub",
        drive=VelocityDrive(angular=(0, 0, 5.0)),
    )
    running = started_alone(boom)
    running.advance(900)
    before = link_poses(running)["boom"][0].position
    speed = running.extents(10)["boom"].speed
    running.advance()
    fast = dist(before, link_poses(running)["boom"][0].position) * SECOND / STEP
    assert 100 < fast < speed


def test_a_turn_that_is_only_commanded_counts_with_the_arm_of_now() -> None:
    crane = WorldModel(
        name="crane",
        links=(solid("hub", SphereShape(0.4), 100.0), solid("bob", SphereShape(0.3), 0.01, (1.5, 0, 0))),
        joints=(Joint(name="s", kind="prismatic", child="bob", parent="hub", axis=(1, 0, 0)),),
        canonical_link="hub",
        drive=VelocityDrive(),
    )
    running = started_alone(crane)
    state = bytearray(running.states()["crane"])
    state[64 + 56 : 64 + 64] = pack("<d", 40.0)  # After the drive's numbers and the hub's pose.
    running.set_states(0, {"crane": bytes(state)})
    assert link_poses(running)["crane"][0].position[0] == 41.5
    running.command("crane", (0, 0, 0), (0, 0, 2.0))
    assert running.extents(10)["crane"].speed > 2 * 2.0 * 41.5


def test_boxes_are_compared_with_what_the_last_look_said() -> None:
    running = started_alone(thing("ball", SphereShape(0.2), (0, 0, 1)), thing("other", SphereShape(0.2), (9, 0, 1)))
    running.extents(10)
    running.advance(5)
    running.extents(10)
    running._data.qpos[2] += 0.5  # type: ignore[attr-defined]
    running.advance(5)
    with pytest.raises(ModelError, match=r"'ball' got farther than it could be expected to.* in step 10") as caught:
        running.extents(10)
    assert (caught.value.facts["entity"], caught.value.facts["step"], caught.value.at) == ("ball", 10, 10 * STEP)


def test_whoever_is_put_elsewhere_has_left_no_box() -> None:
    running = started_alone(thing("ball", SphereShape(0.2), (0, 0, 1)))
    running.extents(10)
    running.advance(5)
    running.place("ball", Pose((50, 0, 1)))
    running.extents(10)
    states = running.states()
    running.place("ball", Pose((0, 0, 1)))
    running.extents(10)
    running.set_states(running.step, states)
    assert running.extents(10)["ball"].center[0] == 50


def test_whoever_a_scripted_model_is_about_to_hit_may_get_twice_as_fast() -> None:
    """A box alone says little of how fast it can get. What joins it must say so, or the group's limit is too low."""
    motion = ScriptedMotion(
        waypoints=(Waypoint(time=0, pose=Pose((0, 0, 0))), Waypoint(time=SECOND, pose=Pose((20, 0, 0))))
    )
    pusher = WorldModel(name="pusher", links=(solid("body", BoxShape((0.4, 1, 0.4))),), motion=motion)
    assert started_alone(pusher).extents(10)["pusher"].speed >= 2 * 20
    both = started_alone(
        pusher, thing("box", BoxShape((0.3, 0.3, 0.3)), (1, 0, 0)), replace(ground(), pose=Pose((0, 0, -9)))
    )
    assert both.extents(10)["box"].speed >= 2 * 20
