"""What a participant's process is started with: its command and its environment, whoever starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from worldline.federation.environment import LaunchEnvironment
from worldline.launch.forkable import inherited
from worldline.launch.setup import ParticipantSetup
from worldline.launch.startable import search_path

OUTPUT = "WORLDLINE_OUTPUT"
"""Where participants are to leave files for whoever started the run; by default where that one is."""


def command_of(part: ParticipantSetup) -> tuple[str, ...]:
    """Return what is to be executed, in the participant's directory."""
    return part.command or (sys.executable, "-m", "worldline.launch.worker", part.entry or "")


def environment_of(part: ParticipantSetup, surroundings: LaunchEnvironment) -> dict[str, str]:
    """Return the whole environment: ours, what says whom it is to be, and what the file adds."""
    return {
        **inherited(),
        "PATH": search_path(part.environment),
        OUTPUT: str(Path(os.environ.get(OUTPUT, ".")).absolute()),
        **surroundings.variables(),
        **part.environment,
    }
