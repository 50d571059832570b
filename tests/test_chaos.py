"""The proof: processes and their server are killed at drawn moments, and the run ends as if nothing had happened."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.leaks.running import EXAMPLES
from tests.soaking import later


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kills", "stops", "seed", "until"),
    [(4, 1, 6, "60ms"), *later([(50, 0, 1, "1s"), (50, 25, 2, "1s"), (50, 25, 3, "1s")])],
)
def test_a_crowd_and_its_server_are_killed_and_nobody_can_tell(kills: int, stops: int, seed: int, until: str) -> None:
    options = {"kills": kills, "stops": stops, "seed": seed, "until": until}
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "chaos" / "chaos.py"), *given],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr
    assert done.stdout.count("kill -9") == kills
    assert done.stdout.count("stopped for") == stops
    assert "(the server)  kill -9" in done.stdout
    digests = re.findall(r"disturbed digest +([0-9a-f]{32})", done.stdout)
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert "the recordings are the same" in done.stdout
