"""What was done to a world is written down, and repeats the run bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world.lane import lane, open_lane
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.recording import Recorder
from worldline.world.console import (
    InteractionHistory,
    InteractionsLog,
    LoggedInteraction,
    read_interactions,
    replay,
)
from worldline.world.foxglove import WORLD_ENCODINGS, WORLD_SCHEMAS, WorldTeller
from worldline.world.interactions import (
    AnyInteraction,
    Begin,
    Change,
    InsertPerformer,
    RemovePerformer,
    Reset,
    RunTo,
    SetCommand,
    SetPose,
    StandStill,
    StepBy,
)
from worldline.world.pose import UPRIGHT, ZERO
from worldline.world.spectator import WORLD_MEMBER

MODELS = ("robot_1", "robot_2", "x", "y", "mover_0", "mover_1", "mover_2")
places = st.tuples(st.sampled_from([-9.0, -0.5, 0.0, 1.1, 1.3, 2.0, 4.0]), st.just(0.0), st.just(1.0))
changes = st.one_of(
    st.builds(SetCommand, st.sampled_from(MODELS), st.sampled_from([ZERO, (20.0, 0.0, 0.0)]), st.just(ZERO)),
    st.builds(SetPose, st.sampled_from(MODELS), places, st.just(UPRIGHT)),
    st.builds(InsertPerformer, st.sampled_from("xy"), st.sampled_from(MODELS), places, st.just(UPRIGHT)),
    st.builds(RemovePerformer, st.sampled_from(MODELS)),
    st.just(Reset()),
)
going = st.builds(StepBy, st.sampled_from([0, 1, 2, 9, 10, 11, 60]))
rounds = st.just(StandStill())


def run(script: list[AnyInteraction], secondaries: int = 1, run_ahead: int = 1) -> tuple[bytes, InteractionHistory]:
    """Return what comes of a script; what can't be done is passed over.

    To stand still here means to do so after a single round, even if the others have run ahead of what counts of it.
    """
    log = InteractionsLog()
    world = open_lane([log], secondaries=secondaries, run_ahead=run_ahead)
    for each in script:
        try:
            if isinstance(each, StandStill):
                world.step_by(60, between=world.pause)
            else:
                world.interact(each)
        except UsageError:
            assert isinstance(each, Change)
    return world.end().digest, log.history


def replayed(history: InteractionHistory, secondaries: int, run_ahead: int) -> tuple[bytes, InteractionHistory]:
    log = InteractionsLog()
    outcome = replay(open_lane([log], secondaries=secondaries, run_ahead=run_ahead), history)
    return outcome.digest, log.history


def changes_of(history: InteractionHistory) -> list[LoggedInteraction]:
    return [entry for entry in history.entries if isinstance(entry.interaction, Change)]


@settings(max_examples=10, deadline=None)
@given(st.lists(changes | going | rounds, max_size=14))
def test_a_replay_is_the_run(script: list[AnyInteraction]) -> None:
    script = [*script, StepBy(3)]
    digest, history = run(script, secondaries=2, run_ahead=4)
    for secondaries, run_ahead in ((1, 1), (2, 7), (3, 30)):
        again, log = replayed(history, secondaries, run_ahead)
        assert again == digest
        assert changes_of(log) == changes_of(history)


# --- One run ---

SCRIPT: list[AnyInteraction] = [
    StepBy(13),
    SetCommand("robot_1", (5.0, 0.0, 0.0), (0.0, 0.0, 0.5)),
    InsertPerformer("x", "robot_2", (4.0, 0.0, 1.0), UPRIGHT),
    StepBy(20),
    RemovePerformer("robot_2"),
    RunTo(80_000_000),
    Reset(),
    SetPose("crate", (1.0, 2.0, 3.0), UPRIGHT),
    StepBy(9),
]


@pytest.fixture(scope="module")
def original() -> tuple[bytes, InteractionHistory]:
    return run(SCRIPT, secondaries=2, run_ahead=7)


@pytest.mark.parametrize("secondaries", [1, 2, 3])
@pytest.mark.parametrize("run_ahead", [1, 7])
def test_a_replay_has_the_runs_digest(
    original: tuple[bytes, InteractionHistory], secondaries: int, run_ahead: int
) -> None:
    digest, history = original
    again, log = replayed(history, secondaries, run_ahead)
    assert again == digest
    assert log == InteractionHistory(history.begin, (*changes_of(history), history.entries[-1]))
    assert replayed(log, 1, 1)[0] == digest  # The log of a replay is as good as the first.


def test_what_somebody_did_between_steps_is_repeated() -> None:
    log = InteractionsLog()
    world = open_lane([log], run_ahead=4)

    def between() -> None:
        if world.iteration % 3 == 0:
            world.set_pose("robot_1", (0.1 * (world.iteration % 40), 0.0, 1.0))
        if world.iteration > 50:
            world.pause()

    world.play(between=between)
    digest = world.end().digest
    assert len(changes_of(log.history)) == 4
    assert replayed(log.history, 2, 1)[0] == digest


def test_it_is_played_until_a_time_instead_of_the_end(original: tuple[bytes, InteractionHistory]) -> None:
    _, history = original
    for until, iteration in (("0", 0), ("26ms", 13), ("1ms", 1), ("79ms", 40), ("200ms", 40 + 100)):
        world = open_lane()
        assert replay(world, history, until).events == iteration
        assert world.time >= 0
    twin = open_lane()
    twin.step_by(13)
    cut = open_lane()
    replay(cut, history, "26ms")
    assert cut.digest == twin.digest


def test_what_was_broken_off_needs_an_end(original: tuple[bytes, InteractionHistory]) -> None:
    _, history = original
    broken = InteractionHistory(history.begin, history.entries[:-1])
    with pytest.raises(UsageError, match=r"don't say where the run ended \(say until when"):
        replay(open_lane(), broken)
    assert replay(open_lane(), broken, "18ms").events == 9


def test_another_world_is_refused(original: tuple[bytes, InteractionHistory]) -> None:
    _, history = original
    renamed = replace(lane(), name="street")
    far = replace(lane().models["pillar_0"], name="far")
    changed = replace(lane(), models={**lane().models, "far": far})
    with pytest.raises(UsageError, match="are of world 'lane', not 'street'"):
        replay(open_lane(world=renamed), history)
    with pytest.raises(UsageError, match="the files of world 'lane' aren't what they were"):
        replay(open_lane(world=changed), history)


def test_what_can_not_be_repeated_says_where() -> None:
    begin = Begin("lane", lane().content_hash())
    unknown = LoggedInteraction(3, 3, RemovePerformer("robot_9"))
    with pytest.raises(UsageError, match=r"at iteration 3, .* can't be repeated: there is no performer 'robot_9'"):
        replay(open_lane(), InteractionHistory(begin, (unknown,)), "1s")
    elsewhere = LoggedInteraction(3, 2, RemovePerformer("robot_1"))
    with pytest.raises(UsageError, match="at iteration 3, the world was at step 2 and now is at 3"):
        replay(open_lane(), InteractionHistory(begin, (elsewhere,)), "1s")


# --- Files ---


def test_a_log_is_read_as_it_was_written(original: tuple[bytes, InteractionHistory], tmp_path: Path) -> None:
    _, history = original
    history.save(tmp_path / "done.jsonl")
    assert read_interactions(tmp_path / "done.jsonl") == history
    first, second, *_ = (tmp_path / "done.jsonl").read_text().splitlines()
    assert f"{first}\n" == BEGUN
    assert second == '{"iteration":0,"step":0,"interaction":{"do":"step","steps":13}}'


def test_a_recording_is_as_good_as_a_log(tmp_path: Path) -> None:
    log, file = InteractionsLog(), tmp_path / "run.mcap"
    recorder = Recorder(file, plan([WORLD_MEMBER]), encodings=WORLD_ENCODINGS, schemas=WORLD_SCHEMAS)
    world = open_lane([log, WorldTeller(recorder)])
    for each in SCRIPT:
        world.interact(each)
    outcome = world.end()
    recorder.close()
    assert read_interactions(file) == log.history
    assert replayed(read_interactions(file), 1, 1)[0] == outcome.digest


HASH = lane().content_hash()
BEGUN = f'{{"iteration":0,"step":0,"interaction":{{"do":"begin","world":"lane","content_hash":"{HASH}"}}}}\n'
PAUSED = '{"iteration":%d,"step":0,"interaction":{"do":"pause"}}\n'
ENDED = '{"iteration":4,"step":0,"interaction":{"do":"quit"}}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"has no interactions \(use a log of them, or the recording of a world\)"),
        ("hello\n", "line 1 is no interaction of a world"),
        ("[]\n", "line 1 is no interaction of a world"),
        ("\x89PNG", "line 1 is no interaction of a world"),
        (BEGUN + '{"iteration":1,"step":1,"interaction":{"do":"fly"}}', "line 2 is no .* Invalid value 'fly'"),
        (BEGUN + '{"iteration":1,"step":1,"interaction":{"do":"step"}}', "line 2 is no .* missing required field"),
        (BEGUN + PAUSED % -1, "line 2 has an iteration or a step below 0"),
        (PAUSED % 1, "doesn't say first of which world it is"),
        (BEGUN + PAUSED % 5 + PAUSED % 4, "interaction 3, of iteration 4, comes after one of iteration 5"),
        (BEGUN + BEGUN, "a second run begins with interaction 2"),
        (BEGUN + ENDED + PAUSED % 4, "interaction 3 comes after the end of the run"),
    ],
)
def test_what_is_no_log_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "done.jsonl"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=problem) as caught:
        read_interactions(file)
    assert str(file) in str(caught.value)


def test_what_is_no_file_or_recording_of_a_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read_interactions(tmp_path / "none")
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        read_interactions(tmp_path)
    (tmp_path / "cut.mcap").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(UsageError):
        read_interactions(tmp_path / "cut.mcap")
    recorder = Recorder(tmp_path / "other.mcap", plan(["world"]))
    recorder.began("world", 0)
    recorder.ended("world", 5, bytes(32))
    recorder.passed(6)
    recorder.close()
    with pytest.raises(UsageError, match="has no interactions"):
        read_interactions(tmp_path / "other.mcap")
