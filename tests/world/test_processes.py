"""Primary and secondaries as real processes: one history, and a clear end for all when one of them goes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.world.small_worlds import Listener
from worldline.federation.address import Address
from worldline.model.errors import ConfigurationError, LossError, PeerError
from worldline.processes.lifeline import Lifeline
from worldline.world import distributed as local
from worldline.world.description import WorldDescription
from worldline.world.discovery import PeerRole
from worldline.world.distributed import LocalSecondaries, Primary, local_secondaries
from worldline.world.engines import open_engine
from worldline.world.hosting import Exchange, LocalExchange
from worldline.world.run import World
from worldline.world.sdf import read_world
from worldline.world.secondary import ROLE_VARIABLE, SECONDARIES_VARIABLE, network_part, secondary_command

LEVELS = Path(__file__).parents[2] / "examples" / "world" / "levels.sdf"
PATIENCE_S = 60.0


@dataclass
class Troupe:
    """A primary in this process, and secondaries in their own."""

    world: WorldDescription
    address: Address
    processes: dict[str, subprocess.Popen[str]]
    exchange: Exchange = field(init=False)
    ends: dict[str, tuple[int, str]] = field(default_factory=dict)
    """How each has ended, once the run is over, and its last words."""

    def send(self, name: str, number: signal.Signals) -> None:
        os.kill(self.processes[name].pid, number)


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


def start(address: object, name: str, file: Path = LEVELS, *, engine: str = "kinematic") -> subprocess.Popen[str]:
    return subprocess.Popen(secondary_command(file, engine, address, name, 30), stderr=subprocess.PIPE, text=True)


@contextmanager
def troupe(*names: str, silence_s: float = 30.0) -> Iterator[Troupe]:
    world = read_world(LEVELS)
    engine = open_engine("kinematic", world)
    primary = Primary(engine, len(names), patience_s=PATIENCE_S, silence_s=silence_s)
    address = primary.open()
    cast = Troupe(world, address, {name: start(address, name) for name in names})
    try:
        with primary.gathered() as cast.exchange:
            yield cast
    finally:
        for name, process in cast.processes.items():
            process.send_signal(signal.SIGCONT)
            cast.ends[name] = _end(process)


class Assassin(Listener):
    """Does something to a process at an iteration, in the middle of a round."""

    def __init__(self, iteration: int, strike: Callable[[], object]) -> None:
        super().__init__()
        self._iteration = iteration
        self._strike = strike

    def stepped(self, iteration: int, step: int, poses: object, state_hash: bytes) -> None:
        if iteration == self._iteration:
            self._strike()


def struck(
    iteration: int, victim: str, number: signal.Signals, *names: str, silence_s: float = 30.0
) -> tuple[LossError, dict[str, tuple[int, str]]]:
    """Run until somebody sends a signal to a secondary, after a step; return what comes of it."""

    def strike(cast: Troupe) -> None:
        killer = Assassin(iteration, lambda: cast.send(victim, number))
        World(cast.world, engine="kinematic", exchange=cast.exchange, spectators=[killer]).play()

    with pytest.raises(LossError) as error, troupe(*names, silence_s=silence_s) as cast:
        strike(cast)
    return error.value, cast.ends


def test_a_secondary_that_is_killed_ends_the_run_for_all_by_name_and_step() -> None:
    iteration = 10
    error, ends = struck(iteration, "b", signal.SIGKILL, "a", "b", "c")
    cause = r"secondary b was lost: its connection (was closed, and it hadn't left|broke: Connection reset by peer)"
    assert re.fullmatch(f"the run ended in step {error.facts['step']}: {cause}", str(error))
    assert iteration - 1 <= error.facts["step"] <= iteration
    assert ends["b"][0] == -signal.SIGKILL
    for name in ("a", "c"):
        code, said = ends[name]
        assert code == 3
        told = re.fullmatch(rf"worldline: the run ended in step (\d+): {cause}\n", said)
        assert told is not None
        assert abs(int(told[1]) - error.facts["step"]) <= 1


def test_a_secondary_that_is_stopped_is_given_up_after_the_limit() -> None:
    error, ends = struck(5, "a", signal.SIGSTOP, "a", "b", silence_s=1.0)
    assert "secondary a was lost: nothing was heard from it for" in str(error)
    code, said = ends["b"]
    assert code == 3
    assert "secondary a was lost: nothing was heard from it for" in said


def test_a_secondary_that_goes_while_the_world_is_paused_is_noticed() -> None:
    lost = pytest.raises(LossError, match="secondary a was lost: its connection was closed")
    with lost, troupe("a", "b") as cast, World(cast.world, engine="kinematic", exchange=cast.exchange) as world:
        world.step_by(5)
        cast.send("a", signal.SIGKILL)
        world.wait(PATIENCE_S)


PRIMARY = """
import sys
from pathlib import Path
from worldline.world.distributed import Primary
from worldline.world.engines import open_engine
from worldline.world.run import World
from worldline.world.sdf import read_world
world = read_world(Path(sys.argv[1]))
primary = Primary(open_engine("kinematic", world), 1)
print(primary.open(), flush=True)
with primary.gathered() as exchange, World(world, engine="kinematic", exchange=exchange) as running:
    running.step_by(10)
    print("runs", flush=True)
    running.play()
"""


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGKILL, "(the primary closed the connection|the connection to the primary broke)"),
        (signal.SIGSTOP, "nothing was heard from the primary for 1 second"),
    ],
)
def test_a_primary_that_goes_ends_its_secondaries(number: signal.Signals, told: str) -> None:
    primary = subprocess.Popen([sys.executable, "-c", PRIMARY, str(LEVELS)], stdout=subprocess.PIPE, text=True)
    try:
        assert primary.stdout is not None
        address = primary.stdout.readline().strip()
        command = secondary_command(LEVELS, "kinematic", address, "a", 1)
        secondary = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert primary.stdout.readline() == "runs\n"
        primary.send_signal(number)
        code, said = _end(secondary)
    finally:
        primary.kill()
        primary.wait()
        primary.stdout.close()
    assert code == 3
    assert re.search(told, said)
    assert "the run ended in step" in said


def test_one_too_many_is_refused_and_disturbs_nobody() -> None:
    with troupe("a") as cast, World(cast.world, engine="kinematic", exchange=cast.exchange) as world:
        world.step_by(3)
        late = start(cast.address, "late")
        while late.poll() is None:
            world.step_by(1)
    code, said = _end(late)
    assert code == 2
    assert "unexpected participant 'late'" in said
    assert cast.ends == {"a": (0, "")}


def test_another_world_or_another_physics_is_refused_before_anything_starts(tmp_path: Path) -> None:
    other = tmp_path / "other.sdf"
    other.write_text(LEVELS.read_text().replace("levels", "other"))
    engine = open_engine("kinematic", read_world(LEVELS))
    primary = Primary(engine, 1, patience_s=PATIENCE_S)
    address = primary.open()
    wrong = [start(address, "file", other), start(address, "physics", engine="mujoco")]
    right: list[subprocess.Popen[str]] = []

    def look(_: list[str]) -> None:
        if not right and all(process.poll() is not None for process in wrong):
            right.append(start(address, "right"))

    with primary.gathered(look) as exchange, World(LEVELS, engine="kinematic", exchange=exchange) as world:
        world.step_by(3)
    ends = [_end(process) for process in (*wrong, *right)]
    assert [code for code, _ in ends] == [2, 2, 0]
    assert "world is " in ends[0][1]
    assert "physics is mujoco" in ends[1][1]
    assert "the primary's is kinematic" in ends[1][1]


@pytest.mark.long
def test_those_who_dont_come_are_counted_and_those_who_did_are_named() -> None:
    world = read_world(LEVELS)
    engine = open_engine("kinematic", world)
    primary = Primary(engine, 2, patience_s=2.0)
    address = primary.open()
    client = start(address, "early")
    try:
        with pytest.raises(LossError, match="of 2 secondaries came within 2 s; seen: "), primary.gathered():
            pytest.fail("it began")
    finally:
        client.kill()
        _end(client)


def test_a_local_secondary_that_cant_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "world.sdf"
    file.write_text(LEVELS.read_text())
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "msgspec.py").write_text("raise SystemExit('no msgspec today')")
    told = pytest.raises(LossError, match="local-1 ended before the run began: no msgspec today")
    with told, local_secondaries(file, 1, engine="kinematic"):
        pytest.fail("it began")


@pytest.mark.parametrize("count", [0, 65, 99_999, True])
def test_so_many_secondaries_as_a_machine_cant_have_are_refused(count: int) -> None:
    told = pytest.raises(ConfigurationError, match=r"there can't be .* secondaries .use 1 to 64.")
    with told, local_secondaries(LEVELS, count, engine="kinematic"):
        pytest.fail("it began")


def test_a_users_random_py_is_no_part_of_a_secondary(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise ValueError")
    command = secondary_command(LEVELS, "kinematic", "unix:///nowhere", "a", 1)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "unix:///nowhere" in done.stderr


def test_a_world_that_isnt_the_secondaries_is_refused() -> None:
    world = read_world(LEVELS)
    described = replace(world, gravity=(0.0, 0.0, -1.0))
    for wrong, engine in ((described, "kinematic"), (world, "mujoco")):
        exchange = LocalExchange(lambda: open_engine("kinematic", world), ("a", "b"))
        with pytest.raises(ConfigurationError, match=r"the (world|physics) of the secondaries isn't the one here"):
            World(wrong, engine=engine, exchange=exchange)


QUITTER = """
import sys
from worldline import connect
from worldline.world.engines.engine import agreement
from worldline.world.engines import open_engine
from worldline.world.hosting import Hosting
from worldline.world.orders import decode_order, encode
from worldline.world.sdf import read_world
engine = open_engine("kinematic", read_world(sys.argv[1]))
hosting = Hosting("quitter", engine)
topics = {"publishes": ["ack"], "subscribes": ["step/quitter"]}
with connect(sys.argv[2], "quitter", agreement=agreement(engine), **topics) as me:
    for message in me.messages():
        if sys.argv[3] == "babbles":
            me.publish("ack", b"babble")
            continue
        order = decode_order(message.payload)
        if order.iteration == 20:
            break
        me.publish("ack", encode(hosting.carry_out(order)))
"""


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("leaves", "the run ended in step 20: quitter has left, though it was asked to go on"),
        ("babbles", "secondary 'quitter' says what can't be read, in step 0: "),
    ],
)
def test_a_secondary_that_does_something_else_is_named(how: str, problem: str) -> None:
    world = read_world(LEVELS)
    primary = Primary(open_engine("kinematic", world), 1, patience_s=PATIENCE_S)
    quitter = subprocess.Popen([sys.executable, "-c", QUITTER, str(LEVELS), str(primary.open()), how], stderr=-3)
    with pytest.raises((LossError, PeerError), match=problem), primary.gathered() as exchange:
        World(world, engine="kinematic", exchange=exchange).step_by(100)
    quitter.wait(PATIENCE_S)


@pytest.mark.long
def test_a_primary_that_takes_its_time_loses_nobody_on_its_own_machine() -> None:
    """Longer than others may be silent, between two steps."""
    with (
        local_secondaries(LEVELS, 1, engine="kinematic", silence_s=1.0) as exchange,
        World(LEVELS, engine="kinematic", exchange=exchange) as world,
    ):
        world.step_by(1)
        begun = time.monotonic()
        while time.monotonic() < begun + 2.5:
            sum(range(1000))
        world.step_by(1)
        assert world.step == 2


class Stubborn:
    """A process that ends only when it has to, and a clock that moves while somebody waits for it."""

    now = 0.0

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None:
            Stubborn.now += timeout
            raise subprocess.TimeoutExpired("secondary", timeout)
        return -9


def test_all_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.time, "monotonic", lambda: Stubborn.now)
    with LocalSecondaries(Path("any.sdf"), "kinematic", 5) as secondaries:
        for name in secondaries.names:
            process: Any = Stubborn()
            lifeline = Lifeline()
            lifeline.hand_over()
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process.
            secondaries._processes.append((name, process, lifeline, said))
    assert Stubborn.now == local._GRACE_S


@pytest.mark.parametrize("text", ["primary", "PRIMARY", "Primary", " pRiMaRy "])
def test_capitals_dont_matter(text: str) -> None:
    assert network_part(text, 2, {}) == (PeerRole.PRIMARY, 2, ())


def test_a_secondary_has_no_count_and_without_a_role_there_is_no_network() -> None:
    assert network_part("SeCoNdArY", None, {}) == (PeerRole.SECONDARY, 0, ())
    assert network_part(None, None, {}) == (None, 0, ())


@pytest.mark.parametrize(
    ("role", "count", "problem"),
    [
        ("primary", 0, "a primary can't do with 0 secondaries"),
        ("primary", -3, "a primary can't do with -3 secondaries"),
        ("primary", None, "a primary has to know how many secondaries to wait for"),
        ("secondary", 2, "a secondary doesn't decide how many secondaries there are"),
        (None, 2, "only a primary decides how many secondaries there are"),
        ("tertiary", None, "there is no network role 'tertiary'"),
        ("", None, "there is no network role ''"),
        ("primry", 1, r"\(did you mean 'primary'\?\)"),
    ],
)
def test_what_cant_be_is_refused(role: str | None, count: int | None, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        network_part(role, count, {})


def test_variables_still_work_and_warn() -> None:
    variables = {ROLE_VARIABLE: "PRIMARY", SECONDARIES_VARIABLE: "3"}
    assert network_part(None, None, variables) == (
        PeerRole.PRIMARY,
        3,
        (
            "WORLDLINE_NETWORK_ROLE is deprecated: use --network-role=primary",
            "WORLDLINE_NETWORK_SECONDARIES is deprecated: use --network-secondaries=3",
        ),
    )
    assert network_part(None, None, {ROLE_VARIABLE: "secondary"})[0] is PeerRole.SECONDARY


def test_options_come_before_variables() -> None:
    variables = {ROLE_VARIABLE: "PRIMARY", SECONDARIES_VARIABLE: "many"}
    assert network_part("secondary", None, variables) == (PeerRole.SECONDARY, 0, ())
    assert network_part("primary", 1, variables) == (PeerRole.PRIMARY, 1, ())
    with pytest.raises(ConfigurationError, match="WORLDLINE_NETWORK_SECONDARIES is 'many'"):
        network_part("primary", None, variables)
