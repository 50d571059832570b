"""Runs on the ranks of MPI, for real: the same histories and the same errors on all of them, and they all end.

One start of mpiexec does as much as it can, since starting it takes longer than most models.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import PATIENCE_S
from tests.kernel.culprits import accident
from tests.kernel.matrix import MPIEXEC, ROOT, Prints, prints, reports
from tests.kernel.models import MODELS
from tests.processes.ranks import mpiexec
from tests.soaking import later
from worldline.kernel import build
from worldline.model import WorldlineError

BUILD = "compiled" if build == "compiled" else "plain"
HASH_SEED = os.environ.get("PYTHONHASHSEED", "0")
pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def expected() -> dict[str, Prints]:
    return {name: prints(name, "inline") for name in MODELS}


@pytest.mark.parametrize("ranks", [2, *later([1, 4])])
def test_all_ranks_see_what_is_seen_inline(ranks: int, expected: dict[str, Prints]) -> None:
    seen = list(reports(BUILD, HASH_SEED, ["mpi"], ranks=ranks))
    assert len(seen) == ranks * len(MODELS)
    for column, name, found in seen:
        differing = [what for what in found if found[what] != expected[name][what]]
        assert not differing, f"{name} on {column.executor}"


# -- Errors

WRONG = (
    "divide",
    "child",
    "process",
    "past",
    "below the minimum of the link",
    "unknown",
    "unknown child",
    "no handler",
    "exit",
    "interrupt",
    "end of a generator",
)

TELL_ERRORS = """
import json, sys
from pathlib import Path
from mpi4py import MPI
from tests.kernel.culprits import accident
from worldline.kernel import mpi
from worldline.model import WorldlineError

told = {}
for what in sys.argv[2:]:
    try:
        accident(what).run(executor=mpi())
    except WorldlineError as error:
        told[what] = [type(error).__name__, str(error), len(getattr(error, "__notes__", ()))]
told["after"] = accident("nothing").run(executor="mpi").digest.hex()
told["main"] = mpi().is_main
Path(sys.argv[1], str(MPI.COMM_WORLD.Get_rank())).write_text(json.dumps(told))
"""


def test_errors_are_the_same_on_all_ranks(tmp_path: Path) -> None:
    expected: dict[str, Any] = {}
    for what in WRONG:
        with pytest.raises(WorldlineError) as raised:
            accident(what).run()
        expected[what] = [type(raised.value).__name__, str(raised.value), raised.value.__cause__ is not None]
    expected["after"] = accident("nothing").run().digest.hex()
    ended = mpiexec(3, TELL_ERRORS, str(tmp_path), *WRONG)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    for rank in range(3):
        told = json.loads(Path(tmp_path, str(rank)).read_text())
        assert told.pop("main") == (rank == 0)
        assert told == expected


@pytest.mark.parametrize(
    "what", ["kill", *(pytest.param(what, marks=pytest.mark.long) for what in ("_exit", "error with a lock in it"))]
)
def test_a_rank_that_is_lost_ends_all_ranks(what: str) -> None:
    """MPI itself sees to it: nobody is left who waits."""
    code = "import sys; from tests.kernel.culprits import accident; accident(sys.argv[1]).run(executor='mpi')"
    assert mpiexec(2, code, what).returncode != 0


SECOND_HAND = """
from tests.kernel.culprits import Holder
from worldline.kernel import Simulation
first, second, used = Simulation(), Simulation(), Holder(1)
first.add("a", used)
first.run()
second.add("a", Holder(1))
second.add("b", Holder(2))
second._entities["a"] = used  # Would be refused by add(); here it stands for all that only one rank stumbles on.
second.run(executor="mpi")
"""


def test_an_error_of_one_rank_before_the_run_ends_all_ranks() -> None:
    ended = mpiexec(2, SECOND_HAND)
    assert ended.returncode == 1
    assert ended.stderr.count("UsageError: a is part of a simulation already") == 2


DIFFERING = {
    "a name": "simulation.add(f'n{rank}', Peer('a'))",
    "a class": "simulation.add('n', Peer('a') if rank else Talker('a'))",
    "a latency": "simulation.add('n', Peer('a')); simulation.connect('a', 'n', 1 + rank)",
    "a seed": "simulation = Simulation(seed=rank); simulation.add('a', Peer('b'))",
    "a message": "simulation.add('n', Peer('a')); simulation.send('a', 'ball', rank)",
    "the end": "until += rank",
}

TELL_DIFFERENCES = """
import json, sys
from pathlib import Path
from mpi4py import MPI
from tests.kernel.culprits import Peer, Talker
from worldline.kernel import Simulation
from worldline.model import ConfigurationError

rank = MPI.COMM_WORLD.Get_rank()
told = {}
for statement in sys.argv[2:]:
    given = {"simulation": Simulation(), "rank": rank, "until": 1000, "Simulation": Simulation, "Peer": Peer,
             "Talker": Talker}
    given["simulation"].add("a", Peer("a"))
    exec(statement, given)
    try:
        given["simulation"].run(given["until"], executor="mpi")
    except ConfigurationError as error:
        told[statement] = str(error)
Path(sys.argv[1], str(rank)).write_text(json.dumps(told))
"""


def test_ranks_that_build_different_models_are_refused(tmp_path: Path) -> None:
    ended = mpiexec(2, TELL_DIFFERENCES, str(tmp_path), *DIFFERING.values())
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    for rank in range(2):
        told = json.loads(Path(tmp_path, str(rank)).read_text())
        for what, statement in DIFFERING.items():
            assert told[statement].startswith("rank 1 has built another simulation than rank 0"), what


SET_FROM_OUTSIDE = """
from tests.kernel.culprits import accident
simulation = accident("nothing")
simulation.send("a", "ball", {"some", "words", "in", "no", "order"})
print(simulation.run(executor="mpi").digest.hex())
"""


def test_ranks_need_not_share_a_hash_seed() -> None:
    """Python draws one for each process unless it is told otherwise."""
    parts = [
        ["-n", "1", "-env", "PYTHONHASHSEED", str(seed), sys.executable, "-c", SET_FROM_OUTSIDE] for seed in (1, 2)
    ]
    command = [str(MPIEXEC), *parts[0], ":", *parts[1]]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    first, second = re.findall("[0-9a-f]{32}", ended.stdout)  # Two ranks may well write on one line.
    assert first == second


# -- Ranks that don't come

SKIPS = """
import sys
from mpi4py import MPI
from tests.kernel.culprits import accident
from worldline.kernel import mpi
from worldline.processes import ranks as assembly
assembly._NOTICE_S = assembly._ANSWER_S = 0.3
accident("nothing").run(executor=mpi(patience_s=1))
if MPI.COMM_WORLD.Get_rank() not in map(int, sys.argv[1]):
    accident("nothing").run(executor=mpi(patience_s=1))
MPI.COMM_WORLD.Barrier()
"""


@pytest.mark.long
@pytest.mark.parametrize(("missing", "named"), [("1", "rank 1"), ("02", "ranks 0, 2")])
def test_a_rank_that_skips_a_run_is_named(missing: str, named: str) -> None:
    ended = mpiexec(3, SKIPS, missing)
    assert ended.returncode != 0
    said = [line for line in ended.stderr.split("worldline: ") if line]  # Lines of several ranks may run together.
    assert said[0].splitlines()[0] == f"waiting for {named} to come to this run"
    advice = "every rank runs the same script, and makes the same runs; mpi(patience_s=...) waits longer"
    expected = f"{named} didn't come to this run within 1 seconds ({advice})"
    assert len(said) > 1
    assert all(words.startswith(expected) for words in said[1:])


LATE = """
import os, sys
from pathlib import Path
from mpi4py import MPI
from tests.federation.transports import eventually
from tests.kernel.culprits import accident
from worldline.kernel import mpi
from worldline.processes import ranks as assembly
assembly._NOTICE_S = assembly._ANSWER_S = 0.05
said = Path(sys.argv[1], "said")
say, assembly._say = assembly._say, lambda text: (say(text), said.touch())
for _ in range(2):
    if MPI.COMM_WORLD.Get_rank() == 1:
        eventually(said.exists)
        said.unlink()
    accident("nothing").run(executor=mpi())
"""


@pytest.mark.long
def test_a_rank_that_is_late_is_waited_for(tmp_path: Path) -> None:
    ended = mpiexec(2, LATE, str(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "worldline: waiting for rank 1 to come to this run\n" * 2


@pytest.mark.long
@pytest.mark.parametrize(("what", "notices"), [("fork that exits as programs do", 0), ("fork", 1)])
def test_what_an_event_forks_on_a_rank_does_not_take_part(what: str, notices: int) -> None:
    code = "import sys; from tests.kernel.culprits import accident; accident(sys.argv[1]).run(executor='mpi')"
    ended = mpiexec(2, code, what)
    assert ended.returncode == 0
    assert ended.stderr.count("\n") == ended.stderr.count("was forked in an event has come back from it") == notices


# -- Without it


def test_without_mpi4py_it_is_said_what_to_install() -> None:
    code = """
import sys
sys.modules["mpi4py"] = None
from tests.kernel.culprits import players
players().run(executor="mpi")
"""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("worldline.model.errors.UsageError: MPI can't be used: ")
    assert "mpi4py" in last
    assert last.endswith("(make extras WITH=mpi in the clone of Worldline)")


def test_without_mpiexec_there_is_one_rank() -> None:
    code = "from tests.kernel.models import MODELS; print(MODELS['errand'].build().run(executor='mpi'))"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.stdout, ended.stderr) == (f"{MODELS['errand'].build().run()}\n", "")
