"""What all tests of the SDF reader need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world.sdf.files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
