"""Decides when a run on several workers is over. Pure.

Every worker that is idle says so to the leader, with how many frames it has sent to each other and taken in from each.
If all have said that, and each has taken in as many as each other has sent to it, these counts are of one cut through
the run that no frame crosses. So it stays like that: the run is over, or stuck, or was broken off by an error.

If somebody is still alive then, that may be because of a channel that nobody has any more, and that wasn't found to be
garbage yet. So everybody looks for that first, once; if something comes of it, whoever it is isn't idle any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from worldline.spacetime.worker_messages import IdleReport, Order


def conclusion(said: Sequence[IdleReport | None]) -> Order | None:
    """Return what follows from what all workers have said last, None for those that aren't idle."""
    idle = [each for each in said if each is not None]
    if len(idle) < len(said):
        return None
    for here, one in enumerate(idle):
        for there, other in enumerate(idle):
            if one.sent[there] != other.received[here]:
                return None
    if any(each.is_alive for each in idle) and not all(each.is_swept for each in idle):
        return Order.SWEEP
    return Order.FINISH
