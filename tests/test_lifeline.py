"""Nobody outlives the one that wants it, whatever it is doing, and however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.descendants import family
from tests.federation.transports import PATIENCE_S
from worldline.processes.lifeline import Lifeline

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
from worldline.processes.lifeline import hold_on
if os.fork() == 0:
    hold_on(int(sys.argv[1]))
    print("ready")
    exec(sys.argv[2])
"""

HOLDS = """
import signal, subprocess, sys, threading
from worldline.processes.lifeline import Lifeline

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
    holding = "from worldline.processes.lifeline import hold_on; hold_on(int(sys.argv[1]))"
    code = f"import signal, sys; {holding}; signal.pause()"
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
from worldline.processes.lifeline import Lifeline, hold_on

line = Lifeline()
if os.fork() == 0:
    hold_on(line.end)
    os.write(1, b"ready\\n")  # At once: two of them write there.
    signal.pause()
line.hand_over()
if os.fork() == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # It may live on, and has no lifeline to hold.
    os.write(1, b"orphan %d\\n" % os.getpid())
    signal.pause()
signal.pause()
"""


def test_a_fork_of_the_holder_holds_nobody() -> None:
    with family(FORKS) as everybody:
        said = sorted([everybody.await_line(), everybody.await_line()])
        everybody.program.kill()
        assert everybody.stderr() == ""
        os.kill(int(said[0].split()[1]), signal.SIGKILL)


# -- Where the system has no such signals

ELSEWHERE = """
import sys
sys.platform = "elsewhere"
"""


def test_elsewhere_a_thread_waits_for_the_end() -> None:
    with family(HOLDS, ELSEWHERE + HOLDS_ON, DOING["computing"]) as everybody:
        everybody.await_line("ready")
        everybody.program.kill()
        assert everybody.stderr() == ""


def test_a_fork_while_a_line_is_let_go_goes_on() -> None:
    """Another thread may have closed it, but not have forgotten it yet; the lines after it are dropped all the same."""
    program = """
import os
from worldline.processes import lifeline

going, staying = lifeline.Lifeline(), lifeline.Lifeline()
os.close(going._held)  # And no further.
gone = lifeline.Lifeline()
gone.let_go()
lifeline._held.append(gone)
child = os.fork()
if child == 0:
    os._exit(0 if staying._held == -1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("0\n", "")
