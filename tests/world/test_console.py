"""A world that is run by commands: of a script, of somebody who types, of a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import pi
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.lane import open_lane
from worldline.model.errors import ObserverFailure, UsageError
from worldline.model.time import TIME_MAX
from worldline.world.console import (
    ConsoleCommand,
    ConsoleSession,
    InteractionsLog,
    Query,
    ScriptSession,
    format_command,
    help_lines,
    line_feed,
    parse_command,
    parse_script,
    read_script,
    replay,
)
from worldline.world.interactions import (
    AnyInteraction,
    CommandMotors,
    InsertPerformer,
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
from worldline.world.pose import UPRIGHT, ZERO, Pose
from worldline.world.run import World

# --- The language ---

COMMANDS: list[tuple[str, ConsoleCommand | None]] = [
    ("", None),
    ("   # a comment", None),
    ("play", Play()),
    ("  pause  # now", StandStill()),
    ("step", StepBy(1)),
    ("step 25", StepBy(25)),
    ("run to 1500ms", RunTo(1_500_000_000)),
    ("reset", Reset()),
    ("command robot_1 1 0 -2.5", SetCommand("robot_1", (1.0, 0.0, -2.5), ZERO)),
    ("command 'a robot' 1 0 0 0 0 1e-1", SetCommand("a robot", (1.0, 0.0, 0.0), (0.0, 0.0, 0.1))),
    ("motor /model/m/joint/j/cmd_vel -2.5", CommandMotors("/model/m/joint/j/cmd_vel", -2.5)),
    ("pose crate 1 2 3", SetPose("crate", (1.0, 2.0, 3.0), UPRIGHT)),
    ("pose crate 1 2 3 0 0 1.5", SetPose("crate", (1, 2, 3), Pose.from_rpy((1, 2, 3), 0, 0, 1.5).quaternion)),
    ("pose crate 1 2 3 0 1 0 0", SetPose("crate", (1.0, 2.0, 3.0), (0.0, 1.0, 0.0, 0.0))),
    ("insert x like robot_1 at 1 2 3", InsertPerformer("x", "robot_1", (1.0, 2.0, 3.0), UPRIGHT)),
    (
        f'insert "x y" like robot_1 at 1 2 3 {pi} 0 0 size 1 2 1',
        InsertPerformer("x y", "robot_1", (1, 2, 3), Pose.from_rpy((1, 2, 3), pi, 0, 0).quaternion, (1, 2, 1)),
    ),
    ("remove x", RemovePerformer("x")),
    ("status", Query("status")),
    ("where", Query("where")),
    ("where robot_1", Query("where", "robot_1")),
    ("levels", Query("levels")),
    ("help", Query("help")),
    ("help step", Query("help", "step")),
    ("quit", Quit()),
]


@pytest.mark.parametrize(("line", "command"), COMMANDS)
def test_commands_are_read(line: str, command: ConsoleCommand | None) -> None:
    assert parse_command(line) == command
    assert type(parse_command(line)) is type(command)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("stpe 5", "there is no command 'stpe' (did you mean 'step'?)"),
        ("xyzzy", "there is no command 'xyzzy' (`help` lists them)"),
        ("Play", "there is no command 'Play' (did you mean 'play'?)"),
        ("play now", "play: 'now' is too much (write: play)"),
        ("step -1", "step: '-1' is no number of steps (write: step [N])"),
        ("step 1.5", "step: '1.5' is no number of steps (write: step [N])"),
        ("step 1 2", "step: '2' is too much (write: step [N])"),
        (f"step {'9' * 5000}", f"step: '{'9' * 396}... is no number of steps (write: step [N])"),
        ("run", 'run: "to" is missing (write: run to TIME)'),
        ("run 5s", "run: '5s' is where \"to\" should be (write: run to TIME)"),
        ("run to", "run: a time is missing (write: run to TIME)"),
        ("command", "command: a model is missing (write: command MODEL X Y Z [RX RY RZ])"),
        ("command r 1 2", "command: it takes 3 or 6 numbers, not 2 (write: command MODEL X Y Z [RX RY RZ])"),
        ("command r 1 2 x", "command: 'x' is no number (write: command MODEL X Y Z [RX RY RZ])"),
        ("command r 1 2 inf", "command: 'inf' is no finite number (write: command MODEL X Y Z [RX RY RZ])"),
        ("motor", "motor: a topic is missing (write: motor TOPIC VALUE)"),
        ("motor /t 1 2", "motor: it takes 1 number, not 2 (write: motor TOPIC VALUE)"),
        ("pose r 1 2 3 4", "pose: a pose takes 3, 6 or 7 numbers, not 4 (write: pose MODEL X Y Z [ROLL PITCH YAW])"),
        ("remove", "remove: a name is missing (write: remove NAME)"),
        ("help stpe", "help: there is no command 'stpe' (did you mean 'step'?; write: help [COMMAND])"),
        ("remove 'x", "\"remove 'x\" can't be read: No closing quotation (close the quotes)"),
    ],
)
def test_what_is_no_command_is_refused_in_one_line(line: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_command(line)
    assert str(caught.value) == problem


def test_a_size_is_the_last_word() -> None:
    for line in ("insert x like y at 1 2 3 size 1 2", "insert x like y at 1 2 3 size", "insert x at 1 2 3 like y"):
        with pytest.raises(UsageError, match=r"write: insert NAME like MODEL at X Y Z \[ROLL PITCH YAW\] \[size X Y Z"):
            parse_command(line)


@given(st.text())
def test_any_line_is_a_command_or_a_usage_error(line: str) -> None:
    problem = ""
    try:
        parse_command(line)
    except UsageError as error:
        problem = str(error)
    assert "\n" not in problem


numbers = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.tuples(numbers, numbers, numbers)
names = st.text(min_size=1, alphabet=st.characters(exclude_categories=["C", "Zl", "Zp"]))
quaternions = st.sampled_from([UPRIGHT, (-0.0, 1.0, -0.0, 0.0), (0.5, -0.5, 0.5, 0.5)]) | st.builds(
    lambda roll, pitch, yaw: Pose.from_rpy(ZERO, roll, pitch, yaw).quaternion, *[st.floats(-4, 4)] * 3
)
interactions = st.one_of(
    st.sampled_from([Play(), StandStill(), Reset(), Quit()]),
    st.builds(StepBy, st.integers(0, 10**15 - 1)),
    st.builds(RunTo, st.integers(0, TIME_MAX)),
    st.builds(SetCommand, names, vectors, vectors | st.just(ZERO)),
    st.builds(CommandMotors, names, numbers),
    st.builds(SetPose, names, vectors, quaternions),
    st.builds(InsertPerformer, names, names, vectors, quaternions, st.none() | vectors),
    st.builds(RemovePerformer, names),
)


@given(interactions)
def test_what_is_written_is_read_back_to_the_last_bit(interaction: AnyInteraction) -> None:
    assert str(parse_command(format_command(interaction))) == str(interaction)


def test_help_has_every_command() -> None:
    lines = help_lines()
    assert " ".join(line.split()[0] for line in lines) == (
        "play pause step run reset command motor pose insert remove status where levels help quit"
    )
    assert help_lines("step") == ["step [N]", "advance exactly N steps, by default 1, and pause"]


# --- Scripts ---


def scripted(text: str, world: World | None = None, **options: str) -> list[str]:
    said: list[str] = []
    ScriptSession(world or open_lane(), parse_script(text), said.append, **options).run()  # type: ignore[arg-type]
    return said


def test_a_script_is_carried_out_line_by_line() -> None:
    world = open_lane(run_ahead=7)
    said = scripted(
        """
        # A comment.
        step 5
        command robot_1 1 0 0
        run to 31ms
        insert "a robot" like robot_1 at 4 0 1

        status
        where robot_1
        levels
        reset
        pause
        step
        """,
        world,
    )
    status = said.pop(4)
    assert status.startswith("time 32ms, step 16, iteration 16, paused, state hash ")
    assert said == [
        "step 5 (10ms): paused",
        "step 5 (10ms): command robot_1 1 0 0",
        "step 16 (32ms): paused",
        "step 16 (32ms): insert 'a robot' like robot_1 at 4 0 1",
        "robot_1: at 0.222 0.000 1.000, in level_0, on secondary_0",
        "level_0: active, with robot_1",
        "level_1: active, with robot_2",
        "level_2: active, with a robot",
        "step 0 (0s): reset",
        "step 0 (0s): paused",
        "step 1 (2ms): paused",
        "step 1 (2ms): quit",
    ]
    assert world.iteration == 17


def test_nothing_after_quit_is_done() -> None:
    assert scripted("step\nquit\nstep", until="1s") == ["step 1 (2ms): paused", "step 1 (2ms): quit"]


def test_a_script_plays_to_its_end() -> None:
    assert scripted("step 2", until="9ms") == [
        "step 2 (4ms): paused",
        "step 2 (4ms): playing",
        "step 5 (10ms): paused",
        "step 5 (10ms): quit",
    ]
    assert scripted("play\nreset\nplay", until="4ms") == [
        "step 0 (0s): playing",
        "step 2 (4ms): paused",
        "step 0 (0s): reset",
        "step 0 (0s): playing",
        "step 2 (4ms): paused",
        "step 2 (4ms): quit",
    ]


def test_nothing_starts_if_a_script_can_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "moves.txt"
    file.write_text("step 5\n\ncomand robot_1 1 0 0\n")
    with pytest.raises(UsageError) as caught:
        read_script(file)
    assert str(caught.value) == f"{file}: line 3: there is no command 'comand' (did you mean 'command'?)"
    with pytest.raises(UsageError, match="can't be read: No such file"):
        read_script(tmp_path / "none.txt")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="can't be read"):
        read_script(file)


def test_play_without_an_end_is_refused_before_anything_starts() -> None:
    said: list[str] = []
    with pytest.raises(UsageError, match="moves: line 2: nothing would ever stop `play` in a script"):
        ScriptSession(open_lane(), parse_script("step\nplay", "moves"), said.append)
    assert said == []


def test_what_can_not_be_carried_out_ends_the_run_with_its_place() -> None:
    world = open_lane()
    with pytest.raises(UsageError) as caught:
        scripted("step\nremove robot_3\nstep", world)
    assert str(caught.value) == "script: line 2: there is no performer 'robot_3' (did you mean 'robot_2'?)"
    assert world.iteration == 1
    with pytest.raises(UsageError, match="script: line 1: no model 'pillar_0' is there to move"):
        scripted("where pillar_0")


def test_a_scripts_run_can_be_replayed() -> None:
    log = InteractionsLog()
    world = open_lane([log], secondaries=2, run_ahead=5)
    scripted("step 7\ncommand robot_1 1 0 0\nstep 8\npose robot_2 4 0 1 0 0 0.1\nrun to 99ms\nremove robot_1", world)
    assert replay(open_lane(), log.history).digest == world.digest


# --- Lines that come while it runs ---


def lines_as_they_come(lines: tuple[str | int, ...]) -> Iterator[str | None]:
    """Yield each line when it is asked for; a number is that of questions before it that get no answer."""
    for line in lines:
        yield from [None] * line if isinstance(line, int) else [line + "\n"]


def typed(world: World, *lines: str | int, terminal: bool = False, until: str | None = None) -> list[str]:
    said: list[str] = []
    prompt = (lambda: said.append(">")) if terminal else None
    ConsoleSession(world, lines_as_they_come(lines), said.append, until=until, prompt=prompt).run()
    return said


def test_play_goes_on_until_the_next_line() -> None:
    log = InteractionsLog()
    world = open_lane([log])
    assert typed(world, "play", 3, "pause", "quit") == [
        "step 0 (0s): playing",
        "step 4 (8ms): paused",
        "step 4 (8ms): quit",
    ]
    told = [(entry.iteration, entry.interaction) for entry in log.history.entries]
    assert told == [(0, Play()), (4, StandStill()), (4, Quit())]


def test_other_commands_do_not_stop_it() -> None:
    said = typed(open_lane(), "play", 1, "command robot_1 0 0 0", 1, "comand", "", "status", "play", "step 5", "step")
    assert said.pop(3).startswith("time 12ms, step 6, iteration 6, playing, state hash")
    assert said == [
        "step 0 (0s): playing",
        "step 2 (4ms): command robot_1 0 0 0",
        "there is no command 'comand' (did you mean 'command'?)",
        "step 7 (14ms): playing",
        "step 8 (16ms): paused",
        "step 13 (26ms): paused",
        "step 14 (28ms): paused",
        "step 14 (28ms): quit",
    ]


def test_errors_are_said_and_it_goes_on() -> None:
    world = open_lane()
    assert typed(world, "remove robot_9", "run to 1", "step") == [
        "there is no performer 'robot_9' (did you mean 'robot_2'?)",
        'run: \'1\' isn\'t a time (write a number and a unit, such as "5ms", "1.5s" or "2h"; write: run to TIME)',
        "step 1 (2ms): paused",
        "step 1 (2ms): quit",
    ]


def test_a_pipe_is_like_a_script() -> None:
    """Steps are done before the next line is read, and the end of the input isn't that of the run."""
    said = typed(open_lane(), "step 5", "levels", "play", until="20ms")
    assert said[0] == "step 5 (10ms): paused"
    assert said[-3:] == ["step 5 (10ms): playing", "step 10 (20ms): paused", "step 10 (20ms): quit"]
    assert typed(open_lane(), until="4ms")[-2:] == ["step 2 (4ms): paused", "step 2 (4ms): quit"]
    assert typed(open_lane()) == ["step 0 (0s): quit"]
    assert typed(open_lane(), "play", 1) == ["step 0 (0s): playing", "step 2 (4ms): paused", "step 2 (4ms): quit"]


def test_a_terminal_is_asked_and_its_end_is_the_runs() -> None:
    assert typed(open_lane(), 2, "step", 1, "levles", "play", 2, until="1s", terminal=True) == [
        ">",
        "step 1 (2ms): paused",
        ">",
        "there is no command 'levles' (did you mean 'levels'?)",
        ">",
        "step 1 (2ms): playing",
        ">",
        "step 4 (8ms): paused",
        ">",
        "step 4 (8ms): quit",
    ]


def test_whoever_sits_at_a_terminal_can_pause_steps() -> None:
    said = typed(open_lane(), "run to 1h", 2, "command robot_1 1 0 0", "pause", "quit", "step", terminal=True)
    assert [line for line in said if line != ">"] == [
        "step 4 (8ms): paused",
        "step 4 (8ms): command robot_1 1 0 0",
        "step 4 (8ms): quit",
    ]


def test_what_is_pasted_into_a_terminal_is_done_in_turn() -> None:
    said = typed(open_lane(), "step 5", "step 2", "play", "command robot_1 1 0 0", "pause", "quit", terminal=True)
    assert [line for line in said if line != ">"] == [
        "step 5 (10ms): paused",
        "step 7 (14ms): paused",
        "step 7 (14ms): playing",
        "step 8 (16ms): command robot_1 1 0 0",
        "step 9 (18ms): paused",
        "step 9 (18ms): quit",
    ]
    said = typed(open_lane(), "step 5", "levels", "quit", terminal=True)
    assert [line.partition(":")[0] for line in said if line != ">"] == [
        *("step 5 (10ms)", "level_0", "level_1", "level_2", "step 5 (10ms)")
    ]


def test_while_it_is_paused_it_waits_so_that_losses_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = open_lane()
    waits: list[float] = []
    monkeypatch.setattr(world, "wait", waits.append)
    typed(world, 3, "step", 2)
    assert waits == [0.05] * 5


def test_observers_that_fail_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = open_lane()

    def fail(*arguments: object, **options: object) -> None:
        raise ObserverFailure("no space left")

    monkeypatch.setattr(world, "step_by", fail)
    with pytest.raises(ObserverFailure, match=r"^no space left"):
        typed(world, "step")
    with pytest.raises(ObserverFailure, match=r"^no space left"):
        scripted("step", world)


def test_lines_are_read_without_waiting() -> None:
    reading, writing = os.pipe()
    try:
        feed = line_feed(reading)
        assert next(feed) is None
        os.write(writing, b"st")
        assert next(feed) is None
        os.write(writing, b"ep 5\n\nplay\nwhere r\xc3")
        assert [next(feed) for _ in range(4)] == ["step 5\n", "\n", "play\n", None]
        os.write(writing, b"\xa4der \xff")
        assert next(feed) is None
    finally:
        os.close(writing)
    assert list(feed) == ["where r\u00e4der \ufffd"]
    os.close(reading)
