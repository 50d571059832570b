"""Keeps standard output free for one thing that is to be printed there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def words_to_stderr(*, wanted: bool) -> Iterator[None]:
    """Send all that anybody prints to standard error meanwhile: models and workers too, whichever way they print."""
    if not wanted:
        yield
        return
    usual = sys.stdout
    usual.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
