"""A peer as a program of its own: says what it sees, and leaves in order when it gets SIGTERM.

    python -m tests.world.lone_peer MEETING_POINT FEDERATION ROLE NAME COUNT

Prints `found` and the names, of the primary or of COUNT secondaries, once they are there.
"""

from __future__ import annotations

import signal
import sys

from tests.world.meeting import PATIENCE_S, here
from worldline.world.discovery import Discovery


def main(meeting_point: str, federation: str, role: str, name: str, count: str = "0") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # In all threads, which are still to be started.
    address = "tcp://127.0.0.1:7000" if role == "primary" else ""
    with Discovery(federation, role, name, address=address, options=here(meeting_point)) as discovery:
        if role == "primary":
            names = [peer.name for peer in discovery.wait_for_secondaries(int(count), PATIENCE_S)]
        else:
            names = [discovery.find_primary(PATIENCE_S).name]
        print("found", *names, flush=True)
        signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main(*sys.argv[1:])
