"""Says whose processes may be forks of a warm keeper, and in which environment such a keeper lives: theirs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from worldline.federation.environment import VARIABLES
from worldline.launch.setup import ParticipantSetup


def inherited() -> dict[str, str]:
    """Return what every participant's process has in its environment, besides what is its own."""
    passed_on = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {
        **passed_on,
        "PYTHONUNBUFFERED": "1",  # What it prints is shown when it is printed.
        "PYTHONIOENCODING": "utf-8",
    }


def may_fork(part: ParticipantSetup) -> bool:
    """Whether a fork may be as good as an interpreter for it; the keeper knows the rest (`newborn.py`)."""
    return part.entry is not None and not part.environment and _is_found_anywhere()


def _is_found_anywhere() -> bool:
    """Whether interpreters find Worldline, and the same modules, wherever they are started, but for what is there."""
    if sys.platform != "linux":
        return False
    search = os.environ.get("PYTHONPATH", "")
    is_absolute = not search or all(map(os.path.isabs, search.split(os.pathsep)))
    return is_absolute and str(Path(__file__).parents[2]) in sys.path[1:]
