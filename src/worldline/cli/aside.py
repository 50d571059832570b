"""Keeps standard output free for the one thing that is to be there: an object, or a recording."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worldline.recording import Shelf


@contextmanager
def words_aside(shelf: Shelf | None, *, wanted: bool = False) -> Iterator[None]:
    """Send all that anybody prints to standard error meanwhile: models and workers too, whichever way they print.

    That is so if it is `wanted`, and if the recording goes to standard output, which is still open for it then.
    """
    recorded = shelf if shelf is not None and shelf.is_standard_output else None
    if not wanted and recorded is None:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    if recorded is not None:
        recorded.target = Path(f"/dev/fd/{kept}")
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
