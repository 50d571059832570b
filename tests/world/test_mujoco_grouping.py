"""The bits of a world don't depend on how it is cut into models, nor on the process, nor on moves between models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests.world.crowd import Parts, crowd, digest, ground, grouped, movers_of, robot, started, statics_of, whole
from tests.world.small_worlds import link_poses
from worldline.world.engines import open_engine

pytest.importorskip("mujoco", reason="MuJoCo isn't installed")

STEPS = 260
WORLD = crowd()


@pytest.fixture(scope="module")
def history() -> list[dict[str, bytes]]:
    """The whole world as one model, which is the truth."""
    return list(whole(WORLD, STEPS))


def coarser(parts: Parts) -> Parts:
    """Join every group with the one three further on, whatever that is."""
    joined = [tuple(sorted(name for part in parts[number::3] for name in part)) for number in range(3)]
    return tuple(sorted(part for part in joined if part))


def alone(parts: Parts) -> Parts:
    return tuple(sorted((name,) for part in parts for name in part))


def first_difference(
    one: Iterable[dict[str, bytes]], other: Iterable[dict[str, bytes]]
) -> tuple[int, list[str]] | None:
    for step, (here, there) in enumerate(zip(one, other, strict=True), 1):
        if here != there:
            return step, [name for name in here if here[name] != there.get(name)]
    return None


def test_groups_that_merge_and_split_give_the_bits_of_the_whole(history: list[dict[str, bytes]]) -> None:
    seen: set[Parts] = set()
    assert first_difference(history, grouped(WORLD, STEPS, seen=seen)) is None
    together = [("robot_a", "robot_b") in parts for parts in seen]
    assert any(together)
    assert not all(together)


def test_coarser_groups_that_are_looked_at_seldom_give_the_bits_of_the_whole(history: list[dict[str, bytes]]) -> None:
    assert first_difference(history, grouped(WORLD, STEPS, join=coarser, every=10)) is None


def test_a_fresh_model_for_every_step_gives_the_bits_of_the_whole(history: list[dict[str, bytes]]) -> None:
    start = 120  # Robots are about to hit each other.
    found = grouped(WORLD, 12, fresh=True, start=start, states=history[start - 1])
    assert first_difference(history[start : start + 12], found) is None


def test_the_comparison_sees_contacts_that_are_missed(history: list[dict[str, bytes]]) -> None:
    difference = first_difference(history, grouped(WORLD, STEPS, join=alone))
    assert difference is not None
    assert len(difference[1]) < len(movers_of(WORLD))


def test_many_robots_have_the_bits_of_each_alone() -> None:
    """MuJoCo's own weights of a body depend on the model it is in, at few poses only: one of many robots shows it."""
    robots = [robot(f"r{i:02}", 3.0 * i, 2.5 * i, 0.7 * i, 1.0, turning=0.1 * i) for i in range(20)]
    world = replace(WORLD, models={model.name: model for model in (ground(), *robots)})
    engine = open_engine("mujoco", world)
    together = started(engine, world)
    together.advance(10)
    for name, state in together.states().items():
        alone = engine.build([name], ["ground"])
        alone.set_states(0, {name: engine.initial_state(name)})
        alone.advance(10)
        assert alone.states()[name] == state


def test_distant_statics_change_nothing(history: list[dict[str, bytes]]) -> None:
    engine = open_engine("mujoco", WORLD)
    group = engine.build(movers_of(WORLD), [name for name in statics_of(WORLD) if name != "wall_far"])
    group.set_states(0, {name: engine.initial_state(name) for name in group.movers})
    for states in history[:100]:
        group.advance()
        assert group.states() == states


def test_looking_changes_nothing(history: list[dict[str, bytes]]) -> None:
    group = started(open_engine("mujoco", WORLD), WORLD)
    for states in history[:60]:
        link_poses(group)
        group.advance()
        group.contacts()
        group.extents(1)
        group.set_states(group.step, group.states())
        assert group.states() == states


def test_the_order_of_names_changes_nothing(history: list[dict[str, bytes]]) -> None:
    engine = open_engine("mujoco", WORLD)
    group = engine.build(reversed(movers_of(WORLD)), reversed(statics_of(WORLD)))
    group.set_states(0, {name: engine.initial_state(name) for name in reversed(group.movers)})
    group.advance(100)
    assert group.states() == history[99]


def test_another_process_gives_the_same_bits(history: list[dict[str, bytes]]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.world.crowd", "60"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == digest(islice(iter(history), 60))
