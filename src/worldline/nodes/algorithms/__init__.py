"""Distributed algorithms of the textbooks, each with what must hold for it."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from worldline.model.errors import ConfigurationError, shown
from worldline.nodes.algorithm import Algorithm

NAMES = (
    "bellman-ford",
    "bellman-ford-ids",
    "flooding",
    "echo",
    "chang-roberts",
    "hirschberg-sinclair",
    "bully",
    "minimum-spanning-tree",
    "lamport-mutex",
    "ricart-agrawala",
    "chandy-lamport",
    "dijkstra-scholten",
    "two-phase-commit",
    "paxos",
    "raft",
    "gossip",
    "vector-clocks",
)


def find(name: str) -> Algorithm:
    """Return the algorithm of that name."""
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        advice = f"did you mean {near[0]}?" if near else "`worldline nodes list` names those that there are"
        raise ConfigurationError(f"there is no algorithm {shown(name)}", advice=advice)
    found: Algorithm = import_module(f"{__name__}.{name.replace('-', '_')}").model
    return found
