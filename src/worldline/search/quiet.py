"""Silence for what is run many times over."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def quietly() -> Iterator[None]:
    """Swallow what programs print: a thousand times over, it is in the way."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
