"""Worldline in the scenarios of the federation benchmark that run in one process, with both kinds of strands.

The same plays as `worldline_peer.py`. Latency of one step; one step is one millisecond.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from peers.children import PeerError
from worldline import MS, Federation, Network, Participant, Program, link, run
from worldline.federation.inprocess.strand import THREADS, ThreadStrand, strand_kind

STEP = MS


def pingpong(trips: int, *, threads: bool = False) -> float:
    """Return round trips per second."""

    def serve(me: Participant) -> None:
        for _ in range(trips):
            me.publish("ping", b"ball")
            if [message.payload for message in me.next()] != [b"ball"]:
                raise PeerError("pingpong: another ball came back")

    def reply(me: Participant) -> None:
        while me.next():
            me.publish("pong", b"ball")

    programs = {
        "serves": Program(serve, publishes=["ping"], subscribes=["pong"]),
        "replies": Program(reply, publishes=["pong"], subscribes=["ping"]),
    }
    return trips / _seconds(programs, threads)


def stepping(n: int, steps: int, *, threads: bool = False) -> float:
    """Return how many steps per second each of n takes that publish to all in every step."""

    def step(me: Participant) -> None:
        for number in range(steps):
            me.publish("value", b"8 bytes.")
            if len(me.advance(by=STEP)) != (n - 1 if number else 0):
                raise PeerError("stepping: not everybody's value has come")

    programs = {f"p{number}": Program(step, publishes=["value"], subscribes=["value"]) for number in range(n)}
    return steps / _seconds(programs, threads)


def _seconds(programs: dict[str, Program], threads: bool) -> float:
    before = os.environ.get(THREADS, "")
    os.environ[THREADS] = str(int(threads))
    try:
        if not threads and strand_kind() is ThreadStrand:
            raise PeerError("greenlet isn't installed")
        start = time.perf_counter()
        run(Federation(programs, network=Network(default=link(STEP))))
        return time.perf_counter() - start
    finally:
        os.environ[THREADS] = before
