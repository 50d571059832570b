"""Work for a pool that isn't the kernel's: each function is what one worker does, in its process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

from tests.federation.transports import eventually
from tests.liveness import is_running
from worldline.model import ConfigurationError, ModelError
from worldline.processes.failures import Failure
from worldline.processes.mesh import Mesh, PeerGone, Peers
from worldline.processes.status_timer import Look

Job = tuple[str, Sequence[int]]  # What to do, and the numbers of the others.
MORE_THAN_A_SOCKET_HOLDS = 5_000_000


class NeverEqual:
    """A report that can't be compared, as an array can't."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("compare me elementwise")

    __hash__ = None  # type: ignore[assignment]


def work(number: int, peers: Peers, job: Job, look: Look) -> Any:
    what, others = job
    return globals()[f"_{what}"](number, peers, others, look)


def _nothing(_number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> None:
    return None


def _odd(_number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> NeverEqual:
    return NeverEqual()


def _greet(number: int, peers: Peers, others: Sequence[int], look: Look) -> list[tuple[int, bytes]]:
    look(0, 0)
    for other in others:
        peers.post(other, b"from %d" % number)
    heard: list[tuple[int, bytes]] = []
    while len(heard) < len(others):
        heard += peers.wait()
    return sorted(heard)


def _shout(_number: int, peers: Peers, others: Sequence[int], _look: Look) -> str:
    """Be done long before the others have taken all that was sent."""
    for other in others:
        peers.post(other, b"x" * MORE_THAN_A_SOCKET_HOLDS)
    return "said"


def _listen(_number: int, peers: Peers, _others: Sequence[int], _look: Look) -> int:
    return sum(len(frame) for _, frame in peers.wait())


def _wait(_number: int, peers: Peers, _others: Sequence[int], _look: Look) -> None:
    while True:
        peers.wait()


def _wait_knowing(_number: int, peers: Peers, others: Sequence[int], _look: Look) -> None:
    """Wait for ever, and know how far the others are."""
    for other in others:
        peers.post(other, b"%d" % os.getpid())
    try:
        while True:
            peers.wait()
    except PeerGone as gone:
        gone.at = 7_000_000
        raise


def _refuse(number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> None:
    raise ConfigurationError(f"worker {number} can't do that", advice="do something else")


def _refuse_oddly(number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> None:
    raise ModelError(f"worker {number} holds a lock", lock=threading.Lock())


def _fail(number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> Failure:
    """Fail, the earlier the greater the number is."""
    error = ModelError(f"worker {number} failed")
    error.__cause__ = ZeroDivisionError("division by zero")
    return Failure((9 - number, "a key of its own"), error)


def _break(_number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> None:
    raise KeyError("a bug")


def _die(_number: int, _peers: Peers, _others: Sequence[int], _look: Look) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang_up(_number: int, mesh: Mesh, _others: Sequence[int], _look: Look) -> None:
    """Be gone for another worker, and die when that one has said so and ended."""
    ((_, other),) = mesh.wait()
    mesh.close()
    eventually(lambda: not is_running(int(other)))
    os.kill(os.getpid(), signal.SIGKILL)


def _spin(_number: int, _peers: Peers, _others: Sequence[int], look: Look) -> None:
    events = 0
    while True:
        events += look(events, events)


# -- Pieces of work for a farm


def begin(given: Any) -> Any:
    """Make a worker of a farm ready."""
    if given == "nothing":
        raise ConfigurationError("nothing can be begun with it")
    return given


def doubled(begun: int, piece: Any) -> int:
    if piece == "refuse":
        raise ConfigurationError(f"{piece!r} can't be doubled")
    if piece == "break":
        raise KeyError("a bug")
    if piece == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if piece == "hang":
        threading.Event().wait()
    return begun * int(piece)
