"""Simulators in several processes that exchange messages as if they were one simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worldline.extras import installing
from worldline.metasim.driving import MessageSimulator, Send, SimulatorEnded, drive
from worldline.metasim.server import MetasimServer
from worldline.model import UsageError

if TYPE_CHECKING:
    from worldline.metasim.client import MetasimClient

__all__ = ["MessageSimulator", "MetasimClient", "MetasimServer", "Send", "SimulatorEnded", "drive"]


def __getattr__(name: str) -> Any:
    """Load the client, and Drake with it, only where it is used: everything else here does without."""
    if name != "MetasimClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from worldline.metasim.client import MetasimClient
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pydrake":
            raise
        raise UsageError("Drake isn't installed", advice=f"{installing('drake')}, on Python 3.12 or newer") from error
    return MetasimClient
