"""Fixtures for whatever starts processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.federation.transports import Strand, nothing_left
from worldline.launch.processes import KeeperClient


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def tidy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave neither processes nor folders to import from."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    with nothing_left():
        yield


@contextmanager
def kept(keeping: KeeperClient) -> Iterator[KeeperClient]:
    """Have a keeper heard by a thread until it has ended."""

    def hear() -> None:
        while keeping.hear() is not None:
            continue

    heard = Strand(hear)
    yield keeping
    keeping.end_all()
    heard.result()
    keeping.wait()
    keeping.close()
