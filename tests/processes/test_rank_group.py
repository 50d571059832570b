"""The ranks of MPI in work that isn't the kernel's, for real."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.ranks import mpiexec

ODD_JOBS = """
import json, sys
from pathlib import Path
from worldline.processes.ranks import gathered
from worldline.processes.failures import Failure, first_error
from worldline.model import ConfigurationError, ModelError, WorldlineError

def talk(ranks):
    ranks.check_equal("the same")
    for other in range(ranks.count):
        if other != ranks.rank:
            ranks.peers.post(other, b"from %d" % ranks.rank)
    heard = []
    while len(heard) < ranks.count - 1:
        heard += ranks.peers.wait()
    return [ranks.agreed(lambda: ranks.rank), sorted(frame.decode() for _, frame in heard)]

def bring(ranks):
    return ranks.brought(f"of {ranks.rank}", [0, 2])

def leave_unread(ranks):
    ranks.peers.post((ranks.rank + 1) % ranks.count, b"nobody reads this")

def fail(ranks):
    return Failure((9 - ranks.rank, "a key of its own"), ModelError(f"rank {ranks.rank} failed")) if ranks.rank else 0

def refuse(ranks):
    def make():
        if ranks.rank == 1:
            raise ConfigurationError("rank 1 can't")
    ranks.agreed(make)

def differ(ranks):
    ranks.check_equal(ranks.rank // 2)

told = []
for work in (talk, bring, leave_unread, fail, refuse, differ):
    try:
        reports = gathered(work, 60)
        error = first_error(reports)
        told.append(str(error) if error is not None else reports)
    except WorldlineError as error:
        told.append(f"refused: {error.problem}")
from mpi4py import MPI
Path(sys.argv[1], str(MPI.COMM_WORLD.Get_rank())).write_text(json.dumps(told))
"""


def test_any_work_on_ranks(tmp_path: Path) -> None:
    ended = mpiexec(3, ODD_JOBS, str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    for rank in range(3):
        talked, brought, unread, failed, refused, differing = json.loads(Path(tmp_path, str(rank)).read_text())
        assert talked == [[me, [f"from {other}" for other in range(3) if other != me]] for me in range(3)]
        assert brought == [["of 0", "of 1", "of 2"], [], ["of 0", "of 1", "of 2"]]
        assert unread == [None] * 3
        assert failed == "rank 2 failed"
        assert refused == "refused: rank 1 can't"
        assert differing == "refused: rank 2 has built another simulation than rank 0"
