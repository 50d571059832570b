"""Fingerprints tell engines apart that compute other bits, whatever they are called."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.world.crowd import ENGINES, needs_mujoco, started
from worldline.world.engines import kinematic as kinematic_engine
from worldline.world.engines import open_engine
from worldline.world.engines.engine import _probe_world, probe_digest
from worldline.world.engines.kinematic import KinematicEngine


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    probe_digest.cache_clear()
    yield
    probe_digest.cache_clear()


@pytest.mark.parametrize("name", ENGINES)
def test_a_fingerprint_is_readable_and_the_same_in_another_process(name: str) -> None:
    found = open_engine(name, _probe_world()).fingerprint
    assert re.fullmatch(name + r" \S+ \S+ [0-9a-f]{8}", found)
    code = (
        "from worldline.world.engines import open_engine\n"
        "from worldline.world.description import WorldDescription\n"
        f"print(open_engine({name!r}, WorldDescription(name='w', models={{}})).fingerprint)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == found


def test_another_sine_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = probe_digest(KinematicEngine)
    monkeypatch.setattr(kinematic_engine, "sin", lambda x: math.nextafter(math.sin(x), math.inf))
    probe_digest.cache_clear()
    assert probe_digest(KinematicEngine) != before


@needs_mujoco
def test_other_eigenvalues_are_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from worldline.world.engines import mujoco as mujoco_engine

    before = probe_digest(mujoco_engine.MujocoEngine)
    found = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda matrix: found(matrix) * (1, 1, 1 + 2**-52))
    probe_digest.cache_clear()
    assert probe_digest(mujoco_engine.MujocoEngine) != before


@needs_mujoco
def test_the_probe_has_contacts() -> None:
    world = _probe_world()
    running = started(open_engine("mujoco", world), world)
    touched = set()
    for _ in range(24):
        running.advance()
        touched |= {entity for pair in running.contacts() for entity in pair}
    assert touched == {"ground", "plates", "pusher", "robot"}
