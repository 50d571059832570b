"""Files of users', written by tests and loaded; and forgotten after each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BESIDE = "lies_beside"  # The name of a module that a file may import from its own folder.


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Forget the modules that a test has loaded, and where it has looked for them."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("worldline_file_") or name == BESIDE:
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name
