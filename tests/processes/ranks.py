"""Starts ranks of MPI."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.federation.transports import PATIENCE_S
from tests.kernel.matrix import MPIEXEC, ROOT


def mpiexec(ranks: int, code: str, *arguments: str, within_s: int = 50) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "MPIEXEC_TIMEOUT": str(within_s)}  # Then it ends all ranks, which we couldn't.
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
