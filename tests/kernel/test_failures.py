"""What goes wrong in a worker: it is said who, when and why, as if there were one process, and nothing of it stays.

Processes are killed for real here, and parents too.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import PATIENCE_S, Strand, eventually
from tests.kernel.culprits import (
    ACCIDENTS,
    Accident,
    Gatherer,
    Holder,
    Homebound,
    Peer,
    Trap,
    accident,
    accidents,
    from_outside,
    from_outside_at_once,
    idle_and_busy,
    players,
    slow_parent,
    unlinked,
)
from tests.kernel.models import MODELS
from tests.liveness import is_running
from worldline.kernel import Entity, Simulation, processes
from worldline.kernel.model import LeftBehind
from worldline.model import MS, US, ConfigurationError, LossError, ModelError, UsageError, WorldlineError

ROOT = Path(__file__).parents[2]

# Errors that aren't the same inline: what can't be pickled is kept there.
ODD = ("error with a lock in it", "odd usage", "itself as receiver")
DEADLY = ("_exit", "_exit with 0", "kill", "abort")
ENDLESS = ("spin", "stop")
FORKS = ("fork", "fork that exits", "fork that exits as programs do", "fork that raises")


def failure_of(simulation: Simulation, executor: Any) -> WorldlineError:
    with pytest.raises(WorldlineError) as raised:
        simulation.run(executor=executor)
    return raised.value


def told(error: WorldlineError) -> tuple[Any, ...]:
    """Return all that an error says, without the addresses of objects."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(error))
    facts = {key: repr(value).partition(" at 0x")[0] for key, value in error.facts.items()}
    return type(error), text, error.participant, error.at, facts


# -- What the model does wrong


@pytest.mark.parametrize(
    "what", [what for what in ACCIDENTS if what not in (*ODD, *DEADLY, *ENDLESS, *FORKS, "nothing")]
)
def test_an_error_says_the_same_on_every_executor(what: str) -> None:
    expected = told(failure_of(accident(what), "inline"))
    assert expected[2], "who was it?"
    assert expected[3] >= 3 * MS
    assert told(failure_of(accident(what), "processes(3)")) == expected


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("executor", ["processes(1)", "processes(2)"])
def test_an_odd_error_is_the_model_s_too(what: str, executor: str) -> None:
    error = failure_of(accident(what), executor)
    assert (error.participant, error.at) == ("a", 3 * MS)
    assert isinstance(error, ModelError | UsageError)


@pytest.mark.parametrize(
    ("what", "ends"),
    [
        ("no delay", ("a", "b")),
        ("into the past", ("a", "b")),
        ("below the minimum", ("a", "b")),
        ("below the minimum of the link", ("a", "c")),
        ("unknown", ("a", "bb")),
        ("unknown child", ("a", "b/7")),
        ("no handler", ("b", "a")),
    ],
)
@pytest.mark.parametrize("executor", ["inline", "processes(3)"])
def test_a_message_that_cannot_be_names_both_ends(what: str, ends: tuple[str, str], executor: str) -> None:
    error = failure_of(accident(what), executor)
    assert error.participant == ends[0]
    assert str(error).startswith(f"{ends[0]} at 3")
    assert re.search(rf"\b{ends[1]}\b", str(error).partition(":")[2])
    assert ends[1] in (error.facts.get("receiver"), error.facts.get("sender"))


@pytest.mark.parametrize("executor", ["inline", "processes(2)", "processes(3)"])
def test_a_link_that_was_not_declared_names_both_ends(executor: str) -> None:
    error = failure_of(unlinked("c", "a"), executor)
    assert str(error).startswith("c at 7us: there is no link from c to a")


@pytest.mark.parametrize("executor", ["processes(1)", "processes(2)"])
def test_the_trace_of_an_error_comes_along_as_a_note(executor: str) -> None:
    error = failure_of(accident("divide"), executor)
    (note,) = error.__notes__
    assert note.startswith("Traceback (most recent call last):")
    assert note.endswith("ZeroDivisionError: division by zero")
    assert "culprits.py" in note
    assert "in _divide" in note


# -- Which one it was, if there are several

TOGETHER: dict[str, tuple[tuple[str, str, int, int], ...]] = {
    # (name, what, when, how much is to be done before): the first one in simulated time is the last to get there.
    "the slow one": (("a", "divide", 5 * MS, 0), ("b", "assert", 4 * MS, 30_000), ("c", "divide", 6 * MS, 10)),
    "the last by name": (("a", "divide", 5 * MS, 0), ("b", "nothing", 1, 0), ("z", "past", 5 * MS - 1, 10_000)),
    "the first by name, at one moment": (
        ("a", "assert", 5 * MS, 20_000),
        ("b", "divide", 5 * MS, 0),
        ("c", "past", 5 * MS, 0),
    ),
    "the parent before the child": (("a", "child", 5 * MS - US, 20_000), ("b", "divide", 5 * MS, 0)),
    "all of many": tuple((f"n{number}", "divide", 5 * MS, 0) for number in range(9)),
}


@pytest.mark.parametrize("which", TOGETHER)
def test_of_several_failures_the_earliest_is_told(which: str) -> None:
    expected = told(failure_of(accidents(*TOGETHER[which]), "inline"))
    for count in (2, 3):
        assert told(failure_of(accidents(*TOGETHER[which]), processes(count))) == expected
    turned = {name: (number + 1) % 3 for number, (name, *_) in enumerate(TOGETHER[which])}
    assert told(failure_of(accidents(*TOGETHER[which]), processes(3, placement=turned))) == expected


@pytest.mark.parametrize(("model", "first"), [(from_outside, "z"), (from_outside_at_once, "a")])
def test_of_several_failures_that_of_the_first_event_is_told(model: Callable[[], Simulation], first: str) -> None:
    expected = told(failure_of(model(), "inline"))
    assert expected[2] == first
    assert told(failure_of(model(), "processes(2)")) == expected


def test_a_failure_ends_workers_that_would_go_on_for_ever(tmp_path: Path) -> None:
    simulation = players(str(tmp_path), pairs=2)
    simulation.add("clumsy", Accident("divide", 300 * US))
    assert told(failure_of(simulation, "processes(3)"))[2:4] == ("clumsy", 300 * US)
    check_gone(tmp_path)


# -- Workers that are gone


def pids(folder: Path) -> list[int]:
    """Return the processes that have left a note."""
    return sorted({int(note.read_text()) for note in folder.iterdir() if not note.name.endswith(".part")})


def check_gone(folder: Path) -> None:
    """Wait until nothing is left of the processes that have left a note, not even a zombie."""
    assert pids(folder)
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids(folder)))


@pytest.mark.parametrize(
    ("what", "how", "code"),
    [
        ("kill", "was killed by SIGKILL", -9),
        ("abort", "was killed by SIGABRT", -6),
        ("_exit", "ended by itself with exit code 7", 7),
        ("_exit with 0", "ended by itself with exit code 0", 0),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_a_worker_that_ends_itself_is_named(what: str, how: str, code: int, count: int, tmp_path: Path) -> None:
    simulation = players(str(tmp_path), pairs=3)
    simulation.add("suicidal", Accident(what, 300 * US))
    workers = dict.fromkeys(simulation._entities, 0) | {"suicidal": count - 1, "b2": count - 1}
    error = failure_of(simulation, processes(count, placement=workers))
    assert isinstance(error, LossError)
    names = "b2, suicidal" if count > 1 else "a0, a1, a2 and 4 more"
    assert f"worker {count - 1}, with {names}, {how}" in str(error)
    assert error.facts == {"worker": count - 1, "exit_code": code}
    assert error.at is None or 0 < error.at <= 300 * US
    check_gone(tmp_path)


@pytest.mark.parametrize("count", [1, 2])
def test_how_far_a_worker_was_is_known_from_its_first_events_on(count: int) -> None:
    """However few they are, and however long each takes: it looks up after four of them at the latest."""
    error = failure_of(accident("kill", busy=8), processes(count))
    assert error.at is not None
    assert 0 < error.at <= 3 * MS


@pytest.mark.parametrize("victim", ["idle", "busy"])
def test_a_worker_that_is_killed_is_named(victim: str, tmp_path: Path) -> None:
    """Killed from outside, in the midst of things: one that waits, or one that others don't hear of for long."""

    def kill() -> None:
        eventually(lambda: len(pids(tmp_path)) == 2)
        os.kill(int(Path(tmp_path, victim).read_text()), signal.SIGKILL)

    killing = Strand(kill)
    error = failure_of(idle_and_busy(str(tmp_path)), processes(2, placement={"idle": 0, "busy": 1}))
    killing.result()
    assert isinstance(error, LossError)
    number = 0 if victim == "idle" else 1
    assert f"worker {number}, with {victim}, was killed by SIGKILL" in str(error)
    check_gone(tmp_path)


RUN_AND_TELL = """
import sys
from tests.kernel import culprits
from worldline.model import WorldlineError
if __name__ == "__main__":
    try:
        getattr(culprits, sys.argv[1])(sys.argv[2]).run(executor=sys.argv[3])
    except WorldlineError as error:
        print(error, flush=True)
"""


@contextmanager
def program(code: str, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a Python program, and see that it is gone in the end."""
    command = [sys.executable, "-c", code, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes, **options) as child:
        try:
            yield child
        finally:
            child.kill()


def test_the_one_that_died_is_named_however_late_the_parent_looks(tmp_path: Path) -> None:
    with program(RUN_AND_TELL, slow_parent.__name__, str(tmp_path), "processes(3)") as child:
        eventually(lambda: Path(tmp_path, "a, after all").exists())
        with suppress(AssertionError):  # It need not end while the parent is stopped.
            eventually(lambda: not is_running(int(Path(tmp_path, "a").read_text())), within_s=1.0)
        child.send_signal(signal.SIGCONT)
        said, _ = child.communicate(timeout=PATIENCE_S)
    assert "worker 2, with c, was killed by SIGKILL" in said


# -- Parents that are gone


@pytest.mark.parametrize(("whom", "model"), [("everybody", players), ("the parent", idle_and_busy)])
def test_an_interrupted_parent_ends_its_workers(whom: str, model: Callable[[str], Simulation], tmp_path: Path) -> None:
    """Control-C in a terminal reaches all processes of the group; a signal to the parent alone must do as well."""
    with program(RUN_AND_TELL, model.__name__, str(tmp_path), "processes(2)", start_new_session=True) as child:
        eventually(lambda: len(pids(tmp_path)) == 2)
        if whom == "everybody":
            os.killpg(child.pid, signal.SIGINT)
        else:
            child.send_signal(signal.SIGINT)
        _, complaints = child.communicate(timeout=PATIENCE_S)
    assert complaints.count("Traceback") == 1, complaints
    assert complaints.rstrip().endswith("KeyboardInterrupt")
    assert child.returncode in (-signal.SIGINT, 130)
    check_gone(tmp_path)


# -- What can't be sent to a worker


def local_class() -> type[Entity]:
    class Local(Entity):
        """A class that exists only in this call."""

    return Local


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (lambda: lambda: 0, "lambda"),
        (threading.Lock, "cannot pickle '_thread.lock' object"),
        (lambda: (number for number in range(3)), "cannot pickle 'generator' object"),
        (lambda: {"deep": [{"down": threading.Lock()}]}, "cannot pickle '_thread.lock' object"),
        (lambda: local_class(), "local_class.<locals>.Local"),
        (lambda: Peer("b"), "an entity can't be copied or sent: others know it by its name"),
        (Trap, "the trap has sprung"),
    ],
)
def test_an_attribute_that_cannot_be_sent_is_refused(thing: Callable[[], Any], reason: str, tmp_path: Path) -> None:
    simulation = Simulation()
    simulation.add("a", Holder(0, str(tmp_path)))
    simulation.add("b", Holder(thing(), str(tmp_path)))
    error = failure_of(simulation, "processes(2)")
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("b: its attribute thing can't be sent to a worker: ")
    assert reason in str(error)
    assert "start()" in str(error)
    assert list(tmp_path.iterdir()) == [], "somebody has started already"


@pytest.mark.parametrize("count", [1, 3])
def test_what_one_worker_cannot_load_is_said_although_the_others_go_on(count: int) -> None:
    simulation = players(pairs=2)
    simulation.add("homebound", Holder(Homebound()))
    workers = dict.fromkeys(simulation._entities, 0) | {"b1": count - 1, "homebound": count // 2}
    error = failure_of(simulation, processes(count, placement=workers))
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("a worker can't load the entities: this isn't home")


def test_a_class_inside_a_function_is_refused() -> None:
    simulation = Simulation()
    simulation.add("a", local_class()())
    error = failure_of(simulation, "processes(1)")
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("a: its class can't be sent to a worker: ")
    assert "local_class.<locals>.Local" in str(error)


def test_what_cannot_come_back_is_left_behind() -> None:
    simulation = Simulation()
    simulation.add("a", Gatherer())
    simulation.run(executor="processes(2)")
    state = vars(simulation["a"])
    assert state["plain"] == [1, 2, 5]
    for name, reason in (("lock", "_thread.lock"), ("function", "lambda"), ("timer", "a scheduled event")):
        assert isinstance(state[name], LeftBehind)
        assert reason in state[name].reason
        assert repr(state[name]) == f"<left behind in the worker: {state[name].reason}>"
        with pytest.raises(AttributeError, match=f"^locked was left behind in the worker: .*{reason}"):
            state[name].locked()


# -- Programs


MODEL = """
from worldline.kernel import Entity, Simulation

class Greeter(Entity):
    def start(self):
        self.send("b" if self.name == "a" else "a", "hello", self.name)

    def on_hello(self, who):
        self.heard = who

def build():
    simulation = Simulation()
    simulation.add("a", Greeter())
    simulation.add("b", Greeter())
    return simulation
"""
GUARDED = f"""{MODEL}
if __name__ == "__main__":
    simulation = build()
    print(simulation.run(executor="processes(2)"), simulation["a"].heard, simulation["b"].heard)
"""
UNGUARDED = f"""{MODEL}
print(build().run(executor="processes(2)"))
"""


def run_program(*command: str, folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, input=text, capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_a_program_with_its_model_in_it(tmp_path: Path) -> None:
    Path(tmp_path, "script.py").write_text(GUARDED)
    ended = run_program("script.py", folder=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout.startswith("4 events, digest ")
    assert ended.stdout.endswith(" b a\n")


@pytest.mark.parametrize("command", [("script.py",), ("-m", "script")])
def test_a_program_that_forgets_its_guard(command: tuple[str, ...], tmp_path: Path) -> None:
    Path(tmp_path, "script.py").write_text(UNGUARDED)
    ended = run_program(*command, folder=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("Traceback") == 1, ended.stderr
    assert "UsageError: the script runs the simulation whenever it is loaded" in ended.stderr.splitlines()[-1]
    assert "if __name__ == '__main__':" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [
        ("-c", GUARDED),
        ("-",),
    ],
)
def test_a_program_that_is_no_file(command: tuple[str, ...], tmp_path: Path) -> None:
    """Typed in, or given to the interpreter: workers can't find its classes. That is the caller's business."""
    ended = run_program(*command, folder=tmp_path, text=GUARDED)
    assert ended.stderr.count("Traceback") == 1, ended.stderr
    assert "UsageError" in ended.stderr or "ConfigurationError" in ended.stderr


def test_more_workers_than_there_are_files_is_said_clearly() -> None:
    code = """
import resource
from tests.kernel.culprits import players
from worldline.model import WorldlineError
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
try:
    players().run("1ms", executor="processes(16)")
except WorldlineError as error:
    print(error)
"""
    with program(code) as child:
        said, complaints = child.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in complaints
    assert "16" in said


# -- Nothing stays


def open_files() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def run_well() -> None:
    MODELS["errand"].build().run(executor="processes(3)")


def run_into(what: str) -> Callable[[], None]:
    def run() -> None:
        with pytest.raises(WorldlineError):
            accident(what).run(executor="processes(3)")

    return run


def run_with_a_lock() -> None:
    simulation = Simulation()
    simulation.add("a", Holder(threading.Lock()))
    with pytest.raises(ConfigurationError):
        simulation.run(executor="processes(2)")


def test_no_file_stays_open() -> None:
    """However a run ends. The first run starts the fork server, which stays."""
    run_well()
    before = open_files()
    for run in (run_well, run_into("divide"), run_into("kill"), run_into("_exit"), run_into("exit"), run_with_a_lock):
        run()
        assert open_files() == before, run


def test_a_run_after_a_failed_one_is_like_any_other() -> None:
    expected = MODELS["ring"].build().run().digest
    for what in ("divide", "kill"):
        with pytest.raises(WorldlineError):
            accident(what).run(executor="processes(2)")
        assert MODELS["ring"].build().run(executor="processes(2)").digest == expected
