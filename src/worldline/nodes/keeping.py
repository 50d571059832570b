"""What shrinking leaves as it was found, by name."""

from __future__ import annotations

from collections.abc import Iterable

from worldline.model.errors import UsageError, shown
from worldline.nodes.algorithm import NODES, Algorithm

TOPOLOGY = "topology"
PARAMETERS = "parameters"
FAULTS = "faults"
MESSAGES = "messages"
SEED = "seed"

KEPT = {
    NODES: "how many nodes there are",
    TOPOLOGY: "the graph itself",
    PARAMETERS: "all parameters",
    FAULTS: "all faults, those too that the seed drew",
    MESSAGES: "how long every message takes",
    SEED: "what the seed draws",
}
"""What can be kept, besides single parameters."""


def as_kept(names: str | Iterable[str], algorithm: Algorithm) -> frozenset[str]:
    """Take names of what is to be kept, or a text such as ``"nodes,rounds"``."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    parameters = tuple(algorithm.parameters())
    for name in given:
        if name not in KEPT and name not in parameters:
            own = f"; and of {algorithm.name}: {', '.join(parameters)}" if parameters else ""
            raise UsageError(f"{shown(name)} can't be kept", advice=f"there are {', '.join(KEPT)}{own}")
    kept = frozenset(given)
    return kept | frozenset(parameters) if PARAMETERS in kept else kept
