"""What a participant's process is started with: its command and its environment, whoever starts it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from worldline.federation.environment import LaunchEnvironment
from worldline.launch.forkable import inherited
from worldline.launch.setup import ParticipantSetup
from worldline.launch.startable import files_of, search_path
from worldline.loading.sources import sources_of

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
        **replace(surroundings, code=_code_of(part)).variables(),
        **part.environment,
    }


def _code_of(part: ParticipantSetup) -> str:
    """Return a hash of the files that a participant is started from: one that comes back should have the same."""
    code = sources_of(files_of(part.entry, part.command, part.directory), part.directory).code
    return blake2b(repr(code).encode(), digest_size=8).hexdigest() if code else ""
