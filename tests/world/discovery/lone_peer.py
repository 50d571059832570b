"""A peer as a program of its own: says what it sees, until its stdin ends.

    python -m tests.world.discovery.lone_peer MEETING_POINT FEDERATION ROLE NAME

Prints `joined` once it is there, what it has found, and `gone NAME HOW` for each departure. A primary waits for the
number of secondaries that its name ends with.
"""

from __future__ import annotations

import sys

PATIENCE_S = 60.0
from worldline.world.discovery import DepartedBy, Discovery, DiscoveryOptions, Peer


def tell(*words: object) -> None:
    print(*words, flush=True)


def on_departure(peer: Peer, how: DepartedBy) -> None:
    tell("gone", peer.name, how)


def main(meeting_point: str, federation: str, role: str, name: str, stale_s: str = "2") -> None:
    with Discovery(
        federation,
        role,
        name,
        address="tcp://127.0.0.1:7000" if role == "primary" else "",
        options=DiscoveryOptions(meeting_point=meeting_point, stale_s=float(stale_s)),
        on_departure=on_departure,
    ) as discovery:
        tell("joined")
        if role == "secondary":
            tell("found", discovery.find_primary(PATIENCE_S).name)
        else:
            count = int(name.rpartition("-")[2])
            tell("found", *(peer.name for peer in discovery.wait_for_secondaries(count, PATIENCE_S)))
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
