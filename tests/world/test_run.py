"""A world that runs: steps, pauses, interference, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.world.crowd import crowd
from tests.world.lane import lane, open_lane
from worldline.model.errors import UsageError
from worldline.model.time import MS
from worldline.world.description import WorldModel
from worldline.world.interactions import (
    Begin,
    Interaction,
    Play,
    Quit,
    RemovePerformer,
    Reset,
    RunTo,
    SetCommand,
    SetPose,
    StandStill,
    StepBy,
)
from worldline.world.pose import ZERO
from worldline.world.run import World
from worldline.world.spectator import Spectator


class Notes(Spectator):
    """Writes down what it is told."""

    every = 0

    def __init__(self) -> None:
        self.told: list[tuple[int, int, Interaction]] = []
        self.hashes: list[bytes] = []
        self.loaded: dict[int, set[str]] = {}
        self.ends: list[tuple[int, int]] = []

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        self.loaded[iteration] = set(models)

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self.hashes.append(state_hash)

    def interacted(self, iteration: int, step: int, interaction: Interaction) -> None:
        self.told.append((iteration, step, interaction))

    def ended(self, iteration: int, step: int) -> None:
        self.ends.append((iteration, step))


BEGIN = (0, 0, Begin("lane", lane().content_hash()))


# --- Time ---


def test_nothing_advances_until_somebody_wants_it() -> None:
    notes = Notes()
    world = open_lane([notes])
    world.command("robot_1", (1.0, 0.0, 0.0))
    world.pause()
    world.step_by(0)
    assert (world.iteration, world.step, world.time, notes.hashes, world.is_paused) == (0, 0, 0, [], True)


def test_steps_are_exact_and_pause_again() -> None:
    notes = Notes()
    world = open_lane([notes], run_ahead=7)
    world.step_by(5)
    world.step_by(13)
    assert (world.iteration, world.time, len(notes.hashes), world.is_paused) == (18, 36 * MS, 18, True)
    assert notes.told == [BEGIN, (0, 0, StepBy(5)), (5, 5, StepBy(13))]


@pytest.mark.parametrize(
    ("until", "step"), [("0", 0), ("1ns", 1), ("2ms", 1), ("2000001ns", 2), ("3ms", 2), ("50ms", 25)]
)
def test_it_runs_to_the_first_step_at_or_after_a_time(until: str, step: int) -> None:
    world = open_lane(run_ahead=4)
    world.run_to(until)
    assert world.step == step
    world.run_to(world.time)
    assert world.step == step


def test_time_does_not_go_back_without_a_reset() -> None:
    world = open_lane()
    world.step_by(5)
    with pytest.raises(UsageError, match=r"can't go back to 9ms from 10ms \(reset it\)"):
        world.run_to("9ms")
    world.reset()
    world.run_to("9ms")
    assert (world.step, world.iteration) == (5, 10)


def test_play_goes_on_to_a_time_and_is_paused_between_steps() -> None:
    notes = Notes()
    world = open_lane([notes], run_ahead=3)
    seen = []

    def between() -> None:
        seen.append((world.iteration, world.is_paused))
        if world.iteration >= 7:
            world.pause()

    world.play("1s", between=between)
    assert seen == [(3, False), (6, False), (9, False)]
    assert (world.iteration, world.is_paused) == (9, True)
    assert notes.told[1:] == [(0, 0, Play()), (9, 9, StandStill())]
    world.play("30ms")
    assert world.iteration == 15
    world.play("20ms")
    assert world.iteration == 15


def test_steps_can_be_paused_and_ended_too() -> None:
    world = open_lane()
    world.step_by(10, between=world.pause)
    assert world.iteration == 1
    world.run_to("1s", between=world.end)
    assert world.iteration == 2


def test_pace_is_kept_after_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clock time is due for each iteration: a world that was reset mustn't race to where it had been."""
    world = open_lane()
    now = [100.0]
    waits = []

    def wait(seconds: float) -> None:
        waits.append(round(seconds, 9))
        now[0] += max(0.0, seconds)

    monkeypatch.setattr("worldline.world.run.time.monotonic", lambda: now[0])
    monkeypatch.setattr(world, "wait", wait)

    def between() -> None:
        if world.iteration == 3:
            world.reset()

    world.play("8ms", pace=0.5, between=between)
    assert waits == [0.004] * 7


@pytest.mark.parametrize("pace", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_pace_is_refused(pace: float) -> None:
    world = open_lane()
    with pytest.raises(UsageError, match="is no pace"):
        world.play("8ms", pace=pace)
    assert world.iteration == 0


# --- Interference ---


def test_a_reset_world_is_a_fresh_one() -> None:
    notes = Notes()
    world = open_lane([notes], secondaries=2, run_ahead=7)
    world.step_by(60)
    world.command("robot_1", (0.0, 5.0, 0.0))
    world.set_pose("robot_2", (4.0, 0.0, 1.0))
    world.insert_performer("x", "robot_1", (2.0, 0.0, 1.0))
    world.step_by(7)
    world.remove_performer("robot_1")
    world.step_by(3)
    world.reset()
    assert (world.step, world.iteration, world.performers) == (0, 70, ("robot_1", "robot_2"))
    world.step_by(70)
    fresh = Notes()
    open_lane([fresh]).step_by(70)
    assert notes.hashes[70:] == fresh.hashes
    assert notes.hashes[60:70] != fresh.hashes[60:]
    assert (70, 0, Reset()) in notes.told


def test_positions_are_those_of_now() -> None:
    world = open_lane(run_ahead=5)
    assert world.positions["robot_1"] == (0.0, 0.0, 1.0)
    assert world.positions["tram"] == (0.0, 9.0, 1.0)
    assert "pillar_0" not in world.positions  # It never moves.
    world.step_by(13)
    assert world.positions["robot_1"] == pytest.approx((0.52, 0.0, 1.0))
    world.set_pose("robot_1", (4.0, 0.0, 1.0))
    world.insert_performer("x", "robot_1", (9.0, 9.0, 9.0))
    assert world.positions["robot_1"] == (4.0, 0.0, 1.0)
    assert world.positions["x"] == (9.0, 9.0, 9.0)
    world.step_by(1)
    assert world.positions["robot_1"] == pytest.approx((4.04, 0.0, 1.0))
    world.remove_performer("x")
    assert "x" not in world.positions
    world.reset()
    assert world.positions["robot_1"] == (0.0, 0.0, 1.0)


def test_whoever_is_put_elsewhere_loads_what_is_there() -> None:
    notes = Notes()
    world = open_lane([notes])
    world.step_by(3)
    assert "mover_2" not in world.loaded
    world.set_pose("robot_2", (4.0, 0.0, 1.0))
    world.step_by(1)
    assert "mover_2" in notes.loaded[3]
    assert "level_2" in world.active_levels


def test_a_newcomer_takes_commands_and_poses_at_once() -> None:
    """Even between two looks: it isn't simulated yet when it is told."""
    world = open_lane()
    world.step_by(5)
    world.insert_performer("x", "robot_1", (0.0, 3.0, 1.0))
    world.command("x", (0.0, 1.0, 0.0))
    world.insert_performer("y", "robot_1", (0.0, 3.0, 1.0))
    world.set_pose("y", (0.0, -3.0, 1.0))
    world.step_by(1)
    assert world.positions["x"] == pytest.approx((0.0, 3.002, 1.0))
    assert world.positions["y"] == pytest.approx((0.04, -3.0, 1.0))


def test_what_a_level_has_just_loaded_takes_commands() -> None:
    world = open_lane(run_ahead=1)
    while "mover_2" not in world.loaded:
        world.step_by(1)
        if world.step == 5:
            world.set_pose("robot_1", (2.7, 0.0, 1.0))
    world.command("mover_2", (0.0, 1.0, 0.0))
    world.step_by(1)
    assert world.positions["mover_2"] == pytest.approx((4.0, 0.002, 1.0))


@pytest.mark.parametrize("like", ["robot_2", "crate"])
@pytest.mark.parametrize("y", [3.0, -3.0])
@pytest.mark.parametrize("steps", [5, 10])
def test_a_copy_under_a_name_of_before_is_a_new_one(like: str, y: float, steps: int) -> None:
    world = open_lane()
    world.insert_performer("x", "robot_1", (0.0, 3.0, 1.0))
    world.step_by(steps)
    world.remove_performer("x")
    world.insert_performer("x", like, (0.0, y, 1.0), size=(1.0, 1.0, 1.0))
    if like == "robot_2":
        world.command("x", (0.0, 1.0, 0.0))
    world.step_by(1)
    assert world.positions["x"] == pytest.approx((0.0, y + 0.002 if like == "robot_2" else y, 1.0))


def handed_over(run_ahead: int, first: int) -> list[bytes]:
    """Return the hashes of a run in which one leaves a level, and another is put into it, between two steps."""
    notes = Notes()
    world = open_lane([notes], run_ahead=run_ahead)
    world.step_by(first)
    world.remove_performer("robot_2")
    world.set_pose("robot_1", (2.0, 0.0, 1.0))
    world.step_by(3)
    return notes.hashes


def test_a_level_that_is_handed_over_stays_loaded_however_often_one_looks() -> None:
    for first in (5, 10, 20):
        hashes = handed_over(1, first)
        assert hashes == handed_over(20, first) == handed_over(7, first)


def test_it_does_not_matter_that_others_ran_ahead_when_somebody_is_put_elsewhere() -> None:
    """Levels changed in the middle of an order: the rest of it is forgotten, and then somebody interferes."""

    def run(run_ahead: int) -> list[bytes]:
        notes = Notes()
        world = open_lane([notes], run_ahead=run_ahead)
        while world.active_levels == ("level_0", "level_1"):
            world.step_by(1 if run_ahead == 1 else run_ahead, between=world.pause)
            assert world.step < 300
        stopped.append(world.step)
        world.set_pose("robot_1", (4.0, 0.0, 1.0))
        world.step_by(20)
        return notes.hashes

    stopped: list[int] = []
    assert run(1) == run(7) == run(10)
    assert len(set(stopped)) == 1


REFUSED: list[tuple[str, Callable[[World], object]]] = [
    (r"there is no model 'robot_9' \(did you mean 'robot_", lambda world: world.command("robot_9")),
    ("has no drive", lambda world: world.command("crate")),
    ("is static", lambda world: world.command("pillar_0")),
    ("isn't loaded", lambda world: world.set_pose("mover_2", ZERO)),
    ("needs two vectors of finite numbers", lambda world: world.command("robot_1", (float("nan"), 0.0, 0.0))),
    ("nothing that can be done", lambda world: world.command("robot_1", (1.0, 0.0))),  # type: ignore[arg-type]
    ("nothing that can be done", lambda world: world.set_pose("robot_1", (1.0, 0.0))),  # type: ignore[arg-type]
    ("nothing that can be done", lambda world: world.interact(Begin("lane", ""))),  # type: ignore[arg-type]
    ("finite numbers", lambda world: world.set_pose("robot_1", (float("inf"), 0.0, 0.0))),
    ("length 1", lambda world: world.set_pose("robot_1", ZERO, (2.0, 0.0, 0.0, 0.0))),
    ("held or scripted", lambda world: world.set_pose("tram", ZERO)),
    ("already", lambda world: world.insert_performer("robot_2", "robot_1", ZERO)),
    ("there is no model 'robot'", lambda world: world.insert_performer("x", "robot", ZERO)),
    ("static or scripted", lambda world: world.insert_performer("x", "pillar_0", ZERO)),
    ("needs a size", lambda world: world.insert_performer("x", "crate", ZERO)),
    ("size", lambda world: world.insert_performer("x", "crate", ZERO, size=(1.0, 0.0, 1.0))),
    ("can't name", lambda world: world.insert_performer(" x", "robot_1", ZERO)),
    ("there is no performer 'crate'", lambda world: world.remove_performer("crate")),
    ("can't go back", lambda world: world.interact(RunTo(1))),
    ("it can't go -1 steps", lambda world: world.interact(StepBy(-1))),
]


@pytest.mark.parametrize(("problem", "attempt"), REFUSED)
def test_what_is_not_possible_leaves_everything_as_it_was(problem: str, attempt: Callable[[World], object]) -> None:
    notes, same = Notes(), Notes()
    world = open_lane([notes])
    world.step_by(5)
    with pytest.raises(UsageError, match=problem):
        attempt(world)
    world.step_by(60)
    untouched = open_lane([same])
    untouched.step_by(5)
    untouched.step_by(60)
    assert (notes.told, notes.hashes, notes.loaded) == (same.told, same.hashes, same.loaded)
    assert world.positions == untouched.positions


def test_interactions_as_values_do_what_methods_do() -> None:
    notes, same = Notes(), Notes()
    world, other = open_lane([notes]), open_lane([same])
    world.interact(SetCommand("robot_1", (1, 2, 3), ZERO))
    world.interact(StepBy(3))
    world.interact(SetPose("crate", (1, 2, 3), (1, 0, 0, 0)))
    world.interact(RunTo(20 * MS))
    world.interact(RemovePerformer("robot_2"))
    world.interact(StandStill())
    world.interact(Quit())
    other.command("robot_1", (1.0, 2.0, 3.0))
    other.step_by(3)
    other.set_pose("crate", (1.0, 2.0, 3.0))
    other.run_to("20ms")
    other.remove_performer("robot_2")
    other.end()
    assert (notes.told, notes.hashes) == (same.told, same.hashes)


# --- The end ---


def test_it_ends_once_and_nothing_can_be_done_after() -> None:
    notes = Notes()
    world = open_lane([notes])
    world.step_by(4)
    outcome = world.end()
    assert world.end() == outcome
    assert (outcome.digest, outcome.now, outcome.events) == (world.digest, 8 * MS, 4)
    assert notes.ends == [(4, 4)]
    assert notes.told[-1] == (4, 4, Quit())
    attempts: list[Callable[[], object]] = [
        lambda: world.step_by(1),
        lambda: world.run_to("1s"),
        lambda: world.play("1s"),
        lambda: world.advance_to(9),
        world.reset,
        lambda: world.command("robot_1"),
        lambda: world.interact(StandStill()),
    ]
    for attempt in attempts:
        with pytest.raises(UsageError, match=r"the run is over \(make another World\)"):
            attempt()
    assert (world.iteration, len(notes.hashes)) == (4, 4)


def test_run_goes_to_a_time_and_ends_it() -> None:
    world = open_lane(run_ahead=4)
    assert repr(world) == "<World 'lane': paused at step 0 (0s)>"
    assert repr(world.description) == "<WorldDescription 'lane': 10 models, 3 levels, 2 performers>"
    seen: list[int] = []
    outcome = world.run("9ms", between=lambda: seen.append(world.step))
    assert (outcome.events, outcome.digest, seen) == (5, world.digest, [4, 5])
    assert repr(world) == "<World 'lane': ended at step 5 (10ms)>"
    with pytest.raises(UsageError, match="the run is over"):
        world.run("1s")


def test_a_with_block_ends_it_unless_it_fails() -> None:
    notes = Notes()
    with open_lane([notes]) as world:
        world.step_by(2)
    assert notes.ends == [(2, 2)]
    with pytest.raises(ZeroDivisionError), open_lane([notes]):
        raise ZeroDivisionError
    assert notes.ends == [(2, 2)]


def test_mujoco_is_interfered_with_in_the_same_way() -> None:
    """It isn't known where the step ends in which somebody interferes: looks and orders must not show."""
    digests = set()
    for run_ahead in (1, 7):
        world = World(crowd(), run_ahead=run_ahead)
        world.step_by(8)
        world.command("robot_a", (0.5, 0.0, 0.0), (0.0, 0.0, 1.0))
        world.set_pose("hit", (-1.0, 0.5, 0.5))
        world.insert_performer("robot_x", "robot_b", (3.0, 3.0, 0.15), size=(1.0, 1.0, 1.0))
        world.command("robot_x", (1.0, 0.0, 0.0))
        world.step_by(12)
        world.remove_performer("robot_x")
        world.step_by(5)
        digests.add(world.end().digest)
    assert len(digests) == 1
