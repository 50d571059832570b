"""Finds the line of an author's own code that led to an error.

The innermost frame of a traceback is mostly in a library that did as it was told. What helps is the innermost one in a
file that the author could have written: not Worldline's, not Python's, not an installed package's.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import NamedTuple

_OURS = __file__.rpartition("/model/")[0] + "/"
_PYTHONS = str(types.__file__).rpartition("/")[0] + "/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


class Line(NamedTuple):
    """A line of a file, and the package that it is in."""

    file: str
    number: int
    package: str

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}, line {self.number}"


def own_line(error: BaseException) -> Line | None:
    """Return the innermost line of the author's own code that led to an error.

    If the author's program is itself an installed package, that is the innermost line in the package that was called
    first; None, if there is no line but Worldline's and Python's.
    """
    lines = [line for line in _lines_of(error) if not _is_ours(line.file) and not _is_pythons(line.file)]
    own = [line for line in lines if not _is_installed(line.file)]
    if not own:
        own = [line for line in lines if line.package == lines[0].package]
    return own[-1] if own else None


def described(error: BaseException) -> str:
    """Return an error's class and text, whatever its own code makes of that."""
    try:
        text = str(error)
    except Exception as second:  # It is the model's own, and can raise anything.
        text = f"(its text can't be had: {type(second).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def outer_frames(error: BaseException) -> int:
    """Return how many of the outermost frames are Worldline's, which has called the author's program."""
    return next((count for count, line in enumerate(_lines_of(error)) if not _is_ours(line.file)), 0)


def _lines_of(error: BaseException) -> Iterator[Line]:
    trace = error.__traceback__
    while trace is not None:
        named = trace.tb_frame.f_globals.get("__name__")
        yield Line(trace.tb_frame.f_code.co_filename, trace.tb_lineno, str(named).partition(".")[0])
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith("<"):
        yield Line(error.filename, error.lineno or 1, "")  # The file at fault never came to run.


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS)


def _is_pythons(file: str) -> bool:
    return file.startswith("<frozen ") or (file.startswith(_PYTHONS) and not _is_installed(file))


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)
