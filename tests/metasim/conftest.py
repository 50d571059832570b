"""What tests of simulators need: that nothing is left of what they start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federation.transports import eventually, nothing_left


@pytest.fixture
def tidy() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.fixture
def tidy_diagrams() -> Iterator[None]:
    """See that no thread and no file is left behind. Diagrams go some turns of the collector after their holders."""

    def files() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    before = files()
    with nothing_left():
        yield
        eventually(lambda: files() <= before)
