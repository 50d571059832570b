"""Fixtures for whatever starts processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with TemporaryDirectory() as folder:
        yield Path(folder)
