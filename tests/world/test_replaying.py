"""What was done to a world is written down, and repeats the run bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world.lane import lane, open_lane
from worldline.history.plain import encoded
from worldline.model.errors import UsageError
from worldline.world.interactions import (
    AnyInteraction,
    Begin,
    Change,
    InsertPerformer,
    Pause,
    Play,
    Quit,
    RemovePerformer,
    Reset,
    RunTo,
    SetCommand,
    SetPose,
    StepBy,
)
from worldline.world.pose import UPRIGHT, ZERO
from worldline.world.replaying import (
    INTERACTIONS_TOPIC,
    InteractionHistory,
    InteractionsLog,
    LoggedInteraction,
    read_interactions,
    replay,
)
from worldline.world.run import World

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


def run(script: list[AnyInteraction], secondaries: int = 1, run_ahead: int = 1) -> tuple[bytes, InteractionHistory]:
    """Return what comes of a script, of which that is passed over that can't be done."""
    log = InteractionsLog()
    world = open_lane([log], secondaries=secondaries, run_ahead=run_ahead)
    for each in script:
        try:
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


@settings(max_examples=30, deadline=None)
@given(st.lists(changes | going, max_size=14))
def test_a_replay_is_the_run(script: list[AnyInteraction]) -> None:
    script = [*script, StepBy(3)]
    digest, history = run(script, secondaries=2, run_ahead=4)
    for secondaries, run_ahead in ((1, 1), (2, 7), (3, 30)):
        again, log = replayed(history, secondaries, run_ahead)
        assert again == digest
        assert changes_of(log) == changes_of(history)
