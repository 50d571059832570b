"""What a shell prints, in which `worldline` is that of this environment: for pages that show it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def printed(command: str, folder: Path) -> str:
    """Return all that a command prints in a folder."""
    beside = str(Path(sys.executable).parent)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    ).stdout
