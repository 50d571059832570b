"""Ctrl-C under MPI, and while workers are being started: a line at the most, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.federation.transports import PATIENCE_S
from tests.kernel.matrix import MPIEXEC, ROOT
from tests.processes.ranks import mpiexec
from worldline.recording import Condition, Recording

INTERRUPTED = """
import os, signal, sys
from worldline.kernel import Entity, Simulation

class Sleeper(Entity):
    def __init__(self, is_woken):
        self.is_woken = is_woken

    def start(self):
        yield "1s"
        if self.is_woken:
            os.kill(os.getpid(), signal.SIGINT)
        while True:
            yield "1s"
            self.send(self.name, "on")

    def on_on(self, _):
        pass

def model():
    simulation = Simulation()
    for number in range(2):
        simulation.add(f"sleeper {number}", Sleeper(str(number) in os.environ["WOKEN"]))
    return simulation
"""

COMMAND = """
import os, sys
from worldline import cli
from worldline.processes import ranks
os.environ["WOKEN"] = sys.argv[1]
if sys.argv[1] == "1":
    ranks._FIRST_RANK_S = 0.0  # There is no other to be waited for.
sys.argv = ["worldline", "run", sys.argv[2], "--executor", "mpi", "--until", "10000h", "-q", "--record", sys.argv[3]]
cli.main()
"""


@pytest.mark.skipif(not MPIEXEC.exists(), reason="there is no mpiexec here")
@pytest.mark.parametrize(
    ("woken", "said"),
    [("01", "interrupted by SIGINT"), ("1", "rank 1 was interrupted, and with it all others")],
)
def test_an_interruption_of_ranks_is_one_line(woken: str, said: str, tmp_path: Path) -> None:
    model, record = tmp_path / "model.py", tmp_path / "run.mcap"
    model.write_text(INTERRUPTED)
    ended = mpiexec(2, COMMAND, woken, str(model), str(record))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", f"worldline: {said}\n")
    if "0" in woken:  # Where it is recorded there is time to say so.
        assert Recording(record).verify().condition is Condition.BROKEN_OFF


def test_a_fork_server_that_is_just_starting_ignores_an_interruption() -> None:
    code = (
        "from worldline.processes.forking import fork_server\n"
        "process = fork_server('tests.processes.interrupted_at_once').Process(target=print, args=('well',))\n"
        "process.start(), process.join()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (ended.stdout, ended.stderr) == ("well\n", "")
