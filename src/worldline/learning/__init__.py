"""Federations as environments of a learner: Gymnasium's and PettingZoo's interfaces (the extra `learn`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worldline.learning.env import FederationEnv
    from worldline.learning.parallel_env import ParallelFederationEnv
    from worldline.learning.task import AgentMoment, AgentTask, play
    from worldline.learning.vector_env import FederationVectorEnv

__all__ = ["AgentMoment", "AgentTask", "FederationEnv", "FederationVectorEnv", "ParallelFederationEnv", "play"]

# A learned policy runs where none of these libraries is installed: only the environments need them.
_HOMES = {
    **dict.fromkeys(["AgentTask", "AgentMoment", "play"], "task"),
    "FederationEnv": "env",
    "FederationVectorEnv": "vector_env",
    "ParallelFederationEnv": "parallel_env",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"worldline.learning.{_HOMES[name]}"), name)
    return found
