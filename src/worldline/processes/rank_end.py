"""Ends all ranks of MPI with one that was interrupted: the others would wait for it, and MPI itself at its end, too.

That happens when the program of this rank ends, so that it can close its files and say what has happened. If all were
interrupted, as by Ctrl-C, rank 0 has something to say and to close, and ends the others; they give it time for that.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from typing import Any

from worldline.model.errors import Interrupted

_FIRST_RANK_S = 5.0


def end_all_at_exit() -> None:
    """End all ranks when this program ends. Where MPI isn't in use, that is nothing."""
    mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
    if mpi is not None and mpi.COMM_WORLD.Get_size() > 1:
        atexit.register(_end_all, mpi.COMM_WORLD)


def _end_all(all_ranks: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It comes from the terminal, and from mpiexec once more.
    rank = all_ranks.Get_rank()
    if rank != 0:
        time.sleep(_FIRST_RANK_S)
        sys.stderr.write(f"worldline: rank {rank} was interrupted, and with it all others\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # What MPI would say of it reads like a failure.
    all_ranks.Abort(Interrupted.exit_code)
