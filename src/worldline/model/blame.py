"""Says what was raised, and which line of its author's own code led to it.

The innermost frame of a traceback is mostly in a library that did as it was told. What helps is the innermost one in a
file that the author could have written: not Worldline's, not Python's, not an installed package's. The algorithms and
examples that come with Worldline are models like any other.
"""

from __future__ import annotations

import traceback
import types
from collections.abc import Iterator
from itertools import dropwhile
from types import FrameType, GeneratorType
from typing import Any, NamedTuple, TypeVar

from worldline.model.errors import ModelError, ObserverFailure, UsageError, WorldlineError, shortened

_Ours = TypeVar("_Ours", bound=WorldlineError)

_PACKAGE = "worldline"
_OURS = __file__.rpartition("/model/")[0] + "/"
_MODELS = ("worldline.nodes.algorithms.", "worldline.spacetime.examples.")
_PYTHONS = str(types.__file__).rpartition("/")[0] + "/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


class SourceLine(NamedTuple):
    """A line of a file, and the module that it is in."""

    file: str
    number: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}, line {self.number}"

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


def own_line(error: BaseException) -> SourceLine | None:
    """Return the innermost line of the author's own code that led to an error.

    If the author's program is itself an installed package, that is the innermost line in the package that was called
    first; None, if there is no line but Worldline's and Python's.
    """
    lines = [line for line in _lines_of(error) if not _is_ours(line) and not _is_pythons(line.file)]
    own = [line for line in lines if not _is_installed(line.file)]
    if not own:
        own = [line for line in lines if line.package == lines[0].package]
    return own[-1] if own else None


def own_line_in(frame: FrameType | None) -> SourceLine | None:
    """Return the innermost line of the author's own code that runs there, called by Worldline; None if none does."""
    lines = []
    while frame is not None:
        lines.append(SourceLine(frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__"))))
        frame = frame.f_back
    called = dropwhile(lambda line: not _is_ours(line), reversed(lines))  # What called Worldline isn't meant.
    own = [line for line in called if not (_is_ours(line) or _is_pythons(line.file) or _is_installed(line.file))]
    return own[-1] if own else None


def described(error: BaseException) -> str:
    """Return an error's class and text on one line, whatever its own code makes of that."""
    text = shortened(_text_of(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def said_of(error: BaseException) -> str:
    """Return an error's class and text, and the author's own line that led to it."""
    line = own_line(error)
    said = described(error) if line is None else f"{described(error)}, in {line}"
    advice = error.advice if isinstance(error, WorldlineError) else None
    return f"{said} ({advice})" if advice else said


def line_of(generator: Any) -> SourceLine | None:
    """Return the line at which a generator waits, or the one that it waits for; None if it is at its end."""
    while isinstance(getattr(generator, "gi_yieldfrom", None), GeneratorType):
        generator = generator.gi_yieldfrom
    frame = getattr(generator, "gi_frame", None)
    if frame is None:
        return None
    return SourceLine(frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__")))


def models(error: WorldlineError) -> WorldlineError:
    """Return an error that the model's code has led to during a run: its author has to act, not its user.

    One that the author's own code has raised stays as it is: it refuses what it was given.
    """
    if not isinstance(error, UsageError) or isinstance(error, ObserverFailure) or _is_raised_by_author(error):
        return error
    made = ModelError(error.problem, participant=error.participant, at=error.at, advice=error.advice, **error.facts)
    made.__cause__ = error.__cause__
    return made


def located(error: _Ours, line: SourceLine | None = None) -> _Ours:
    """Return an error of ours with the author's own line that led to it in its text: the given one, if it has none."""
    line = own_line(error) or line
    if line is not None and not error.problem.endswith(f", in {line}"):  # Rooms stand on each other.
        error.problem += f", in {line}"
        error.args = (error.text(),)
    return error


def trace_of(error: BaseException) -> str:
    """Return the whole traceback of what went wrong, from where the author's program was called.

    That is the cause of an error of ours, if it has one. If it has come from another process, its frames have stayed
    there, and it has brought them as a note.
    """
    if isinstance(error, WorldlineError) and error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    for _ in range(outer_frames(error)):
        assert trace is not None
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")


def outer_frames(error: BaseException) -> int:
    """Return how many of the outermost frames are Worldline's, which has called the author's program."""
    return next((count for count, line in enumerate(_lines_of(error)) if not _is_ours(line)), 0)


def _is_raised_by_author(error: BaseException) -> bool:
    lines = list(_lines_of(error))
    return bool(lines) and not _is_ours(lines[-1])


def _text_of(error: BaseException) -> str:
    try:
        if isinstance(error, WorldlineError):
            return error.problem
        if isinstance(error, SyntaxError):
            return error.msg  # Its text has its place in it, too.
        return str(error)
    except Exception as second:  # It is the model's own, and can raise anything.
        return f"(its text can't be had: {type(second).__name__})"


def _lines_of(error: BaseException) -> Iterator[SourceLine]:
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__")
        yield SourceLine(trace.tb_frame.f_code.co_filename, trace.tb_lineno, str(module))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith("<"):
        yield SourceLine(error.filename, error.lineno or 1, "")  # The file at fault never came to run.


def _is_ours(line: SourceLine) -> bool:
    """Whether a line is Worldline's. By its module, if it is compiled: what it has for a file is where it was made."""
    return (line.file.startswith(_OURS) or line.package == _PACKAGE) and not line.module.startswith(_MODELS)


def _is_pythons(file: str) -> bool:
    return file.startswith("<frozen ") or (file.startswith(_PYTHONS) and not _is_installed(file))


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)
