"""Ways to run a pair of halves under Worldline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.federation.transports import Strand
from tests.metasim.halves import CHANNELS, Pair, State, take_part
from worldline import Federation, Participant, Program, run
from worldline.federation.outcome import FederationOutcome
from worldline.metasim import MetasimClient, MetasimServer
from worldline.model import Network

Result = tuple[dict[str, list[State]], bytes]
"""The states of each half after each of its steps, and the digest of all messages."""


def federation(pair: Pair, states: dict[str, list[State]], network: Network | None = None, **how: Any) -> Federation:
    def program(name: str) -> Program:
        publishes, subscribes = CHANNELS[name]

        def live(me: Participant) -> None:
            states[name] = take_part(MetasimClient(me), pair.half(name), publishes, subscribes, **how)

        return Program(live, publishes=[publishes], subscribes=[subscribes])

    return Federation({name: program(name) for name in CHANNELS}, network=network or pair.network(), seed=7)


def in_one_process(pair: Pair, until: str, *, network: Network | None = None, **how: Any) -> Result:
    """Run a pair under the in-process executor."""
    states: dict[str, list[State]] = {}
    return states, run(federation(pair, states, network, **how), until).digest


def serve(server: MetasimServer, stops: tuple[float, ...]) -> FederationOutcome:
    with server:
        for stop in stops:
            server.advance_to(stop)
    assert server.outcome is not None
    return server.outcome


def served(pair: Pair, network: Network | None = None, clients: Any = tuple(CHANNELS)) -> MetasimServer:
    network = network or pair.network()
    links = {(rule.sender, rule.receiver): rule.link for rule in network.rules}
    return MetasimServer(clients, network.default, links=links, seed=7)


def in_threads(
    pair: Pair, *stops: float, network: Network | None = None, clients: Any = tuple(CHANNELS), **how: Any
) -> Result:
    """Run a pair with a server and two clients, all in this process."""
    server = served(pair, network, clients)
    server.open()
    strands = {
        name: Strand(lambda name=name: take_part(MetasimClient(server, name), pair.half(name), *CHANNELS[name], **how))  # type: ignore[misc]
        for name in CHANNELS
    }
    outcome = serve(server, stops)
    return {name: strand.result() for name, strand in strands.items()}, outcome.digest


def in_processes(case: str, *stops: float, way: str = "known", delays: int | None = None, **environment: str) -> Result:
    """Run one of the cases of `half_process` in two processes of their own; `delays` is the seed of random pauses."""
    from tests.metasim.half_process import CASES

    server = served(CASES[case])
    server.open()
    with (
        start(server, "plant", case, way, delays, **environment) as plant,
        start(server, "controller", case, way, delays, **environment) as other,
    ):
        outcome = serve(server, stops)
        told = {name: each.communicate(timeout=60)[0] for name, each in (("plant", plant), ("controller", other))}
    assert not plant.returncode
    assert not other.returncode
    states = {name: [(at, tuple(state)) for at, state in json.loads(line)] for name, line in told.items()}
    return states, outcome.digest


def start(
    server: MetasimServer, name: str, case: str, way: str = "known", delays: int | None = None, **environment: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.metasim.half_process", str(server.address), name, case, way, str(delays)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
