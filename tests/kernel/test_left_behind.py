"""Nothing is left of a run, however its program ends and whatever its workers are doing: all of that for real."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.descendants import Family, family, family_of
from tests.kernel.culprits import accident

pytestmark = pytest.mark.once

KERNEL = """
import sys
from tests.kernel.culprits import accident
if __name__ == "__main__":
    accident(sys.argv[1]).run(executor="processes(3)")
"""

IN_A_THREAD = """
import signal, sys, threading
from tests.kernel.culprits import accident

def start():
    thread = threading.Thread(target=accident(sys.argv[1]).run, kwargs={"executor": "processes(2)"}, daemon=True)
    thread.start()

if __name__ == "__main__":
    # The thread that starts the fork server is gone when the run begins.
    first = threading.Thread(target=accident("nothing").run, kwargs={"executor": "processes(2)"})
    first.start()
    first.join()
    start()
    signal.pause()
"""

SPACETIME = """
import sys
from tests.spacetime.culprits import accident
if __name__ == "__main__":
    accident(("b", sys.argv[1], 1.0), executor="processes(2)").run(until=100.0)
"""

PROGRAMS = {"kernel": KERNEL, "kernel, in a thread": IN_A_THREAD, "spacetime": SPACETIME}


@pytest.mark.parametrize(
    ("program", "doing", "sign"),
    [
        ("kernel", "spin", signal.SIGTERM),
        ("kernel, in a thread", "stop", signal.SIGKILL),
        ("spacetime", "stop", signal.SIGKILL),
    ],
)
def test_workers_end_with_their_program(program: str, doing: str, sign: signal.Signals) -> None:
    with family(PROGRAMS[program], doing) as everybody:
        everybody.await_line(doing)
        everybody.program.send_signal(sign)
        assert everybody.stderr() == ""
        assert everybody.program.returncode == -sign


@pytest.mark.parametrize(("program", "doing"), [("kernel", "stop"), ("spacetime", "spin")])
def test_control_c_ends_a_run_whatever_its_workers_do(program: str, doing: str) -> None:
    with family(PROGRAMS[program], doing) as everybody:
        everybody.await_line(doing)
        os.killpg(everybody.program.pid, signal.SIGINT)
        assert everybody.stderr().rstrip().endswith("KeyboardInterrupt")


# -- Searches

ALGORITHM = """
import os, signal
from worldline.nodes import Node
from worldline.nodes.algorithm import Algorithm

class Odd(Node):
    def execute(self, event):
        os.write(1, b"DOING\\n")
        if "DOING" == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            pass

model = Algorithm(name="odd", node=Odd, topology="line:2")
"""


def searching(doing: str, folder: Path) -> tuple[str, ...]:
    file = folder / "odd.py"
    file.write_text(ALGORITHM.replace("DOING", doing))
    worldline = str(Path(sys.executable).with_name("worldline"))
    return worldline, "nodes", "--file", str(file), "--seeds", "5000", "--workers", "2"


@pytest.mark.parametrize(
    ("doing", "sign", "said", "code"),
    [
        pytest.param(
            *("spin", signal.SIGTERM, "worldline: interrupted after 0 of 5,000 seeds\n", 130), marks=pytest.mark.long
        ),
        ("stop", signal.SIGKILL, "", -signal.SIGKILL),
    ],
)
def test_processes_of_a_search_end_with_it(
    doing: str, sign: signal.Signals, said: str, code: int, tmp_path: Path
) -> None:
    with family_of(*searching(doing, tmp_path)) as everybody:
        everybody.await_line(doing)
        everybody.program.send_signal(sign)
        assert everybody.stderr() == said
        assert everybody.program.returncode == code


def test_control_c_ends_a_search_with_a_stopped_process(tmp_path: Path) -> None:
    with family_of(*searching("stop", tmp_path)) as everybody:
        everybody.await_line("stop")
        os.killpg(everybody.program.pid, signal.SIGINT)
        assert "interrupted after 0 of 5,000 seeds" in everybody.stderr()
        assert everybody.program.returncode == 130


# -- While they are being started

STARTING = """
import os, signal, sys
from multiprocessing import forkserver
from tests.kernel.culprits import accident
from worldline.nodes.algorithms import find
from worldline.nodes.trial import Trial, search

# All is imported by then: Python loses a Ctrl-C that comes while an import lets go of its lock.
if __name__ == "__main__":
    trial = Trial(algorithm=find("flooding"))
    accident("nothing").run(executor="processes(1)")
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGSTOP)
    print("stopped")
    if sys.argv[1] == "search":
        search(trial, range(1000), workers=2)
    else:
        accident("nothing").run(executor="processes(2)")
"""


@pytest.mark.parametrize(("what", "sign"), [("run", signal.SIGKILL), ("search", signal.SIGINT)])
def test_a_fork_server_that_is_stopped_stays_no_longer_than_its_program(what: str, sign: signal.Signals) -> None:
    with family(STARTING, what) as everybody:
        everybody.await_line("stopped")
        everybody.program.send_signal(sign)
        assert everybody.are_gone()


# -- Who is stopped


def waited_for(everybody: Family, name: str) -> None:
    pid = int(everybody.await_line("stop").split()[-1])
    everybody.await_complaint(
        f"worldline: {name}, is stopped, and the run waits for it (kill -CONT {pid} lets it go on)\n"
    )
    os.kill(pid, signal.SIGCONT)


@pytest.mark.long
def test_a_stopped_worker_is_named_and_may_go_on() -> None:
    with family(KERNEL, "stop") as everybody:
        waited_for(everybody, "worker 0, with a")
        assert everybody.stderr().count("is stopped") == 1
        assert everybody.program.returncode == 0


@pytest.mark.long
def test_a_stopped_process_of_a_search_is_named(tmp_path: Path) -> None:
    with family_of(*searching("stop", tmp_path)) as everybody:
        everybody.await_complaint(", with seeds 0 to 31, is stopped, and the run waits for it (kill -CONT ")


# -- Handlers that fork

RUN_AND_TELL = """
import sys
from tests.kernel.culprits import accident
if __name__ == "__main__":
    print("digest", accident(sys.argv[1]).run(executor=sys.argv[2]).digest.hex())
"""
STRAY = (
    "worldline: a process that was forked in an event has come back from it, and is ended"
    " (end it in the event: os._exit(0))\n"
)


@pytest.mark.parametrize(
    ("what", "executor", "said"),
    [
        ("fork", "processes(1)", STRAY),
        ("fork", "processes(2)", STRAY),
        ("fork that exits", "processes(2)", ""),
        ("fork that exits as programs do", "processes(2)", ""),
        ("fork that raises", "processes(2)", STRAY),
    ],
)
def test_what_an_event_forks_does_not_take_part(what: str, executor: str, said: str) -> None:
    with family(RUN_AND_TELL, what, executor) as everybody:
        digest = everybody.await_line("digest")
        assert everybody.stderr() == said
    assert digest == accident("nothing").run().digest.hex()


def test_inline_a_fork_that_exits_is_no_failure_of_the_model() -> None:
    with family(RUN_AND_TELL, "fork that exits as programs do", "inline") as everybody:
        assert everybody.await_line("digest") == accident("nothing").run().digest.hex()
        assert everybody.stderr() == ""
