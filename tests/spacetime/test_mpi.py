"""Agents on the ranks of MPI, for real: the same histories and the same errors on all of them, and they all end.

One start of mpiexec does as much as it can, since starting it takes longer than most worlds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import PATIENCE_S
from tests.kernel.matrix import MPIEXEC, ROOT
from tests.soaking import later
from tests.spacetime.culprits import accident, circle, people
from tests.spacetime.walkers import EXAMPLES, MPI_COLUMNS, make_world, observe, observed, prints_of
from worldline.model import WorldlineError
from worldline.spacetime.examples import find

pytestmark = pytest.mark.once

SEEDS = (1, 4, 9, 32)


def mpiexec(ranks: int, code: str, *arguments: str, within_s: int = 50) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "MPIEXEC_TIMEOUT": str(within_s)}  # Then it ends all ranks, which we couldn't.
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert "TIMED OUT" not in ended.stdout, ended.stderr
    return ended


def told_by_all(ranks: int, code: str, folder: Path, *arguments: str) -> list[Any]:
    """Run a program, and return what each rank has written."""
    ended = mpiexec(ranks, code, str(folder), *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    return [json.loads(Path(folder, str(rank)).read_text()) for rank in range(ranks)]


TELL_WORLDS = """
import json, sys
from pathlib import Path
from mpi4py import MPI
from tests.spacetime.walkers import EXAMPLES, MPI_COLUMNS, observations, observed, prints_of
from worldline.spacetime.examples import find

found = [[seed, column, prints_of(seen)] for seed, column, seen in observations(map(int, sys.argv[2:]), MPI_COLUMNS)]
for name, options in EXAMPLES.items():
    seen = observed(find(name).build(trace=True, **options), find(name).until, "mpi")
    found.append([name, "mpi", prints_of(seen)])
Path(sys.argv[1], str(MPI.COMM_WORLD.Get_rank())).write_text(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.parametrize("ranks", [3, *later([1, 2])])
def test_all_ranks_see_what_is_seen_inline(ranks: int, tmp_path: Path) -> None:
    expected: dict[Any, dict[str, str]] = {seed: prints_of(observe(make_world(seed), "inline")) for seed in SEEDS}
    for name, options in EXAMPLES.items():
        expected[name] = prints_of(observed(find(name).build(trace=True, **options), find(name).until))
    for rank, found in enumerate(told_by_all(ranks, TELL_WORLDS, tmp_path, *map(str, SEEDS))):
        assert len(found) == len(SEEDS) * len(MPI_COLUMNS) + len(EXAMPLES)
        for which, column, prints in found:
            assert prints == expected[which], f"{which} with {column}, rank {rank} of {ranks}"


# -- Errors and what is brought back

WRONG = ("divide", "assert", "exit", "two parts", "superluminal", "itself")

TELL_ERRORS = """
import json, sys
from pathlib import Path
from mpi4py import MPI
from tests.spacetime.culprits import accident, circle, people
from worldline.kernel import mpi
from worldline.model import WorldlineError

told = {}
for what in sys.argv[2:]:
    try:
        culprits = ("c", what, 3.0), ("d", "divide", 5.0)
        (circle(mpi()) if what == "circle" else accident(*culprits, executor=mpi())).run(until=8.0)
    except WorldlineError as error:
        told[what] = [type(error).__name__, str(error), len(getattr(error, "__notes__", ()))]
simulation, row = people("mpi")
told["after"] = simulation.run(until=8.0).digest.hex()
told["heard"] = [person.heard for person in row]
told["open"] = [person.other.is_open for person in row]
told["main"] = simulation.is_main
Path(sys.argv[1], str(MPI.COMM_WORLD.Get_rank())).write_text(json.dumps(told))
"""


@pytest.mark.long
def test_errors_and_states_are_the_same_on_all_ranks(tmp_path: Path) -> None:
    expected: dict[str, Any] = {}
    for what in (*WRONG, "circle"):
        simulation = circle("inline") if what == "circle" else accident(("c", what, 3.0), ("d", "divide", 5.0))
        with pytest.raises(WorldlineError) as raised:
            simulation.run(until=8.0)
        expected[what] = [type(raised.value).__name__, str(raised.value), raised.value.__cause__ is not None]
    simulation, row = people("inline")
    expected["after"] = simulation.run(until=8.0).digest.hex()
    expected["heard"] = [person.heard for person in row]
    expected["open"] = [False] * len(row)
    for rank, told in enumerate(told_by_all(3, TELL_ERRORS, tmp_path, *WRONG, "circle")):
        assert told.pop("main") == (rank == 0)
        assert told == expected


DIFFERING = {
    "a name": "agent = Holder(); agent.name = f'n{rank}'",
    "a number of agents": "[Holder() for _ in range(rank)]",
    "a channel": "one, other = Holder(), Holder(); rank and setattr(one, 'thing', Channel(one, other))",
    "a place": "Holder().jump_to((0.0, float(rank)))",
    "a velocity": "Holder().velocity = simulation.space.velocity(rank / 2)",
    "a class": "Holder() if rank else Mother()",
    "a lambda": "a = Holder(); a.after(1.0, 'swap', *[1] * rank)",
    "the end": "until += rank",
}

TELL_DIFFERENCES = """
import json, sys
from pathlib import Path
from mpi4py import MPI
from tests.spacetime.culprits import Holder, Mother
from worldline.model import WorldlineError
from worldline.spacetime import Channel, ForwardSimulation, LambdaField, Minkowski

rank = MPI.COMM_WORLD.Get_rank()
told = {}
for what, statement in json.loads(sys.argv[2]).items():
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(1.0, 0.0)), executor="mpi")
    given = {**globals(), "simulation": simulation, "until": 10.0}
    with simulation:
        exec(statement, given)
    try:
        simulation.run(until=given["until"])
    except WorldlineError as error:
        told[what] = str(error)
Path(sys.argv[1], str(rank)).write_text(json.dumps(told))
"""


def test_ranks_that_build_different_worlds_are_refused(tmp_path: Path) -> None:
    for told in told_by_all(2, TELL_DIFFERENCES, tmp_path, json.dumps(DIFFERING)):
        for what in DIFFERING:
            assert told.get(what, "").startswith("rank 1 has built another simulation than rank 0"), what


WRONG_RULE = """
import sys
from tests.spacetime.culprits import people
from tests.spacetime.walkers import Restless
from worldline.kernel import mpi
from worldline.spacetime.placement import Placing

class Late(Restless):
    def __call__(self, residents, count):
        return super().__call__(residents, count) if self.calls < 3 else {}

people(mpi(placement=Placing(Late(0, 2), 0.0)))[0].run(until=100.0)
"""


def test_a_rule_that_goes_wrong_on_one_rank_ends_all_ranks() -> None:
    ended = mpiexec(2, WRONG_RULE)
    assert ended.returncode != 0
    assert "TIMED OUT" not in ended.stdout + ended.stderr
    assert "is placed on worker None" in ended.stderr
