"""Without Cython and without anything compiled, the kernel is ordinary Python."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.kernel.models import MODELS

PROGRAM = """
import sys
sys.modules["cython"] = None  # Now it can't be imported.
from tests.kernel.models import MODELS
from worldline.kernel import build
print(build)
for name in ("ties", "lineage"):
    print(MODELS[name].build().run(MODELS[name].until).digest.hex())
"""


def test_the_kernel_runs_where_there_is_no_cython() -> None:
    environment = {**os.environ, "WORLDLINE_UNCOMPILED": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=100
    )
    assert done.returncode == 0, done.stderr
    build, *digests = done.stdout.splitlines()
    assert build.startswith("plain Python")
    assert digests == [MODELS[name].build().run(MODELS[name].until).digest.hex() for name in ("ties", "lineage")]
