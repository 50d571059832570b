"""Nobody outlives the one that wants it, whatever it is doing, and however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.descendants import family
from tests.federation.transports import PATIENCE_S
from worldline import lifeline
from worldline.lifeline import Lifeline, tied

pytestmark = [pytest.mark.once, pytest.mark.timeout(60)]

DOING = {
    "waiting": "signal.pause()",
    "computing": "while True: pass",
    "computing in C": "sum(itertools.repeat(1))",
    "deaf": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); signal.pause()",
    "stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
}

# Started by a thread that has ended, and the child of a child: nothing but the lifeline ties it to who is killed.
HOLDS_ON = """
import itertools, os, signal, sys
from worldline.lifeline import hold_on
if os.fork() == 0:
    hold_on(int(sys.argv[1]))
    print("ready")
    exec(sys.argv[2])
"""

HOLDS = """
import signal, subprocess, sys, threading
from worldline.lifeline import Lifeline

line = Lifeline()
command = [sys.executable, "-u", "-c", sys.argv[1], str(line.end), sys.argv[2]]
thread = threading.Thread(target=subprocess.run, args=(command,), kwargs={"pass_fds": (line.end,)})
thread.start()
thread.join()
line.hand_over()
signal.pause()
"""


@pytest.mark.parametrize("doing", DOING)
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_who_holds_on_ends_with_the_holder(doing: str, sign: signal.Signals) -> None:
    with family(HOLDS, HOLDS_ON, DOING[doing]) as everybody:
        everybody.await_line("ready")
        everybody.program.send_signal(sign)
        assert everybody.stderr() == ""
        assert everybody.program.returncode == -sign


def test_who_holds_on_too_late_ends_at_once() -> None:
    line = Lifeline()
    code = "import signal, sys; from worldline.lifeline import hold_on; hold_on(int(sys.argv[1])); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", code, str(line.end)], pass_fds=(line.end,)) as child:
        line.let_go()
        assert child.wait(PATIENCE_S) == -signal.SIGKILL
        line.hand_over()


def test_a_line_is_let_go_and_handed_over_once() -> None:
    line = Lifeline()
    line.hand_over()
    line.let_go()
    reading, writing = os.pipe()  # They may well have the same numbers now.
    line.hand_over()
    line.let_go()
    os.close(reading)
    os.close(writing)


FORKS = """
import os, signal, sys
from worldline.lifeline import Lifeline, hold_on

line = Lifeline()
if os.fork() == 0:
    hold_on(line.end)
    print("ready")
    signal.pause()
line.hand_over()
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # It may live on, and has no lifeline to hold.
    print("orphan", os.getpid())
    signal.pause()
signal.pause()
"""


def test_a_fork_of_the_holder_holds_nobody() -> None:
    with family(FORKS) as everybody:
        said = sorted([everybody.await_line(), everybody.await_line()])
        everybody.program.kill()
        assert everybody.stderr() == ""
        os.kill(int(said[0].split()[1]), signal.SIGKILL)


# -- Commands

STARTS = """
import signal, subprocess, sys
from worldline.lifeline import Lifeline, tied

line = Lifeline()
command = [sys.executable, "-u", "-c", "import itertools, os, signal; print('ready')\\n" + sys.argv[1]]
child = subprocess.Popen(tied(command, line.end), pass_fds=(line.end,))
line.hand_over()
signal.pause()
"""


@pytest.mark.parametrize("doing", [*DOING, "closing all it has inherited"])
def test_a_command_ends_with_its_starter(doing: str) -> None:
    code = DOING.get(doing, "os.closerange(3, 100); print('closed'); signal.pause()")
    with family(STARTS, code) as everybody:
        everybody.await_line("closed" if doing not in DOING else "ready")
        everybody.program.kill()
        assert everybody.stderr() == ""


def run_tied(*command: str) -> subprocess.CompletedProcess[str]:
    line = Lifeline()
    try:
        return subprocess.run(
            tied(command, line.end), pass_fds=(line.end,), capture_output=True, text=True, timeout=PATIENCE_S
        )
    finally:
        line.hand_over()
        line.let_go()


def test_a_command_is_what_it_would_be_without() -> None:
    code = "import os, sys; print(os.getppid(), sys.argv[1:], os.environ['HOME']); sys.exit(7)"
    ended = run_tied(sys.executable, "-c", code, "an argument", "--another")
    said = f"{os.getpid()} ['an argument', '--another'] {os.environ['HOME']}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, said, "")
    assert run_tied("sh", "-c", "kill -9 $$").returncode == -signal.SIGKILL
    ignored = int(run_tied("grep", "SigIgn", "/proc/self/status").stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def test_a_command_that_is_not_there_is_named() -> None:
    ended = run_tied("no-such-command")
    assert (ended.returncode, ended.stdout) == (127, "")
    assert ended.stderr == "no-such-command can't be executed: No such file or directory\n"


# -- Where the system has no such signals

ELSEWHERE = """
import runpy, sys
sys.platform = "elsewhere"
"""


def test_elsewhere_a_thread_waits_for_the_end() -> None:
    with family(HOLDS, ELSEWHERE + HOLDS_ON, DOING["computing"]) as everybody:
        everybody.await_line("ready")
        everybody.program.kill()
        assert everybody.stderr() == ""


def test_elsewhere_somebody_stands_before_a_command() -> None:
    code = (
        ELSEWHERE
        + f"""
import os, subprocess
from worldline.lifeline import Lifeline
line = Lifeline()
if os.fork() == 0:
    sys.argv = ["lifeline.py", "0", str(line.end), *sys.argv[1:]]
    runpy.run_path({lifeline.__file__!r}, run_name="__main__")
line.hand_over()
print("ended", os.waitstatus_to_exitcode(os.wait()[1]))
"""
    )
    for command, ended in (("exit 7", "7"), ("kill -9 $$", "-9")):
        with family(code, "sh", "-c", command) as everybody:
            assert everybody.await_line("ended") == ended
    with family(code, sys.executable, "-u", "-c", "print('ready')\nwhile True: pass") as everybody:
        everybody.await_line("ready")
        everybody.program.kill()
        assert everybody.stderr() == ""
