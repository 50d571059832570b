"""The ranks of MPI in one run, as one of them sees them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.workers.assembly import assembled
from worldline.workers.failures import Failure, told
from worldline.workers.forking import end_stray
from worldline.workers.mpi_library import load_mpi
from worldline.workers.rank_end import end_all_at_exit
from worldline.workers.rank_peers import RankPeers

Made = TypeVar("Made")
Report = TypeVar("Report")


class RankGroup:
    """So many ranks, of which this is one. All of them make the same calls, in the same order."""

    def __init__(self, mpi: Any, world: Any) -> None:
        self._world = world
        self.rank: int = world.Get_rank()
        self.count: int = world.Get_size()
        self.peers = RankPeers(mpi, world)

    def agreed(self, make: Callable[[], Made]) -> Made:
        """Make something on every rank; if one of them can't, all say so, and none waits for it."""
        made: Made | None = None
        error = None
        try:
            made = make()
        except WorldlineError as reason:
            error = reason
        for failed in self._world.allgather(error):
            if failed is not None:
                raise failed
        return cast(Made, made)

    def exchanged(self, said: Made) -> list[Made]:
        """Return what each rank says, on all of them."""
        return list(self._world.allgather(said))

    def brought(self, said: Made, to: Iterable[int]) -> list[Made]:
        """Return what each rank says, on those that it is brought to; nothing on the others, which needn't hold it."""
        found: list[Made] = []
        for rank in to:
            found.extend(self._world.gather(said, root=rank) or ())
        return found

    def check_equal(self, outline: object) -> None:
        """Refuse to run a model that isn't the same on all ranks: then something in the script depends on the rank."""
        outlines = self._world.allgather(outline)
        differing = [rank for rank, other in enumerate(outlines) if other != outlines[0]]
        if differing:
            raise ConfigurationError(
                f"rank {differing[0]} has built another simulation than rank 0",
                advice="every rank runs the same script; it must build the same, whatever its rank",
            )

    def gather(self, report: Report | Failure) -> list[Report | Failure]:
        """Wait until all ranks are done; return what each reports, on all of them."""
        self.peers.finish()
        return list(self._world.allgather(told(report)))


_in_use: list[RankPeers] = []


def _close_inherited() -> None:
    for peers in _in_use:
        peers.close()


os.register_at_fork(after_in_child=_close_inherited)


def gathered(work: Callable[[RankGroup], Report | Failure], patience_s: float) -> list[Report | Failure]:
    """Do the work of this rank, while all others do theirs; return what each reports, on all of them.

    A report is anything that can be pickled; a `Failure`, if it is the model that has failed. A `WorldlineError` that
    `work` raises is one that all ranks raise, as `RankGroup.agreed` and `RankGroup.check_equal` do. Everything else
    ends all ranks, an interruption when it has ended the program. Ranks that have come to a run wait so many seconds
    for those that haven't.
    """
    mpi = load_mpi()
    try:
        return _gathered(mpi, assembled(mpi, patience_s), work)
    except KeyboardInterrupt:
        end_all_at_exit()
        raise


def _gathered(mpi: Any, world: Any, work: Callable[[RankGroup], Report | Failure]) -> list[Report | Failure]:
    me = os.getpid()
    try:
        ranks = RankGroup(mpi, world)
        _in_use.append(ranks.peers)
        report = work(ranks)
        if os.getpid() != me:
            end_stray(None)
        reports = ranks.gather(report)
    except WorldlineError as error:  # All ranks have agreed on it.
        if os.getpid() != me:
            end_stray(error)
        world.Free()
        raise
    except BaseException as error:  # Whatever it is, the other ranks wait for this one, and would for ever.
        if os.getpid() != me:
            end_stray(error)
        if not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
            sys.stderr.flush()
            world.Abort(70)
        raise
    finally:
        _in_use.clear()
    world.Free()
    return reports
