"""The line that an error names is the author's own, wherever it was raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType

import pytest

import worldline
from worldline import Federation, Program, run
from worldline.model import ModelError, WorldlineError
from worldline.model.blame import described, located, outer_frames, own_line, said_of, trace_of


def code_in(file: str, source: str) -> CodeType:
    return compile(source, file, "exec")


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as info:  # noqa: PT011 - whatever it is.
        call()
    error = info.value
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)  # Without this file's own frame.


def nested(*files: str) -> BaseException:
    """Return what is raised when each of these files, in its fourth line, calls the next one; the last one raises."""
    call: Callable[[], object] = partial(json.loads, "{")
    for number, file in enumerate(reversed(files)):
        names = {"call": call, "__name__": NAMES.get(file, f"{Path(file).parent.name}.module{number}")}
        code = code_in(file, "\n\ndef step():\n    call()\n")
        exec(code, names)
        call = names["step"]  # type: ignore[assignment]
    return raised(call)


OURS = str(Path(worldline.__file__).parent / "federation" / "client.py")
INSTALLED = "/usr/lib/python3/site-packages/numeric/core.py"
DEBIANS = "/usr/lib/python3/dist-packages/numeric/core.py"
PYTHONS = json.__file__
COMPILED = "src/worldline/kernel/engine.py"  # As a compiled module names its file.
RAFT = str(Path(worldline.__file__).parent / "nodes" / "algorithms" / "raft.py")
NAMES = {COMPILED: "worldline.kernel.engine", RAFT: "worldline.nodes.algorithms.raft"}


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (["/home/me/cell.py"], "cell.py"),
        (["/home/me/cell.py", INSTALLED, PYTHONS], "cell.py"),
        (["/home/me/cell.py", DEBIANS], "cell.py"),
        (["/home/me/cell.py", OURS], "cell.py"),
        ([OURS, "/home/me/cell.py", "/home/me/parts.py", INSTALLED], "parts.py"),
        (["/home/me/cell.py", "<frozen importlib._bootstrap>"], "cell.py"),
        (["<string>"], "<string>"),
        ([COMPILED, "/home/me/cell.py", COMPILED], "cell.py"),
        ([OURS, RAFT, COMPILED], "raft.py"),
        ([OURS, "/x/site-packages/robots/cell.py", "/x/site-packages/numeric/core.py"], "cell.py"),
    ],
)
def test_the_innermost_line_that_the_author_could_have_written(files: list[str], named: str) -> None:
    assert str(own_line(nested(*files))) == f"{named}, line 4"


def test_there_may_be_no_line_of_the_authors() -> None:
    assert own_line(nested(OURS)) is None
    assert own_line(nested(OURS, COMPILED)) is None
    assert own_line(ValueError("never raised")) is None


def test_a_file_that_cant_be_read_is_the_place_of_its_own_mistake() -> None:
    error = raised(lambda: code_in("/home/me/typo.py", "x = 1\ndef f(:\n"))
    assert str(own_line(error)) == "typo.py, line 2"


class UnspeakableError(Exception):
    """Has no text, and says so loudly."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (ValueError("two\nlines \x1b"), r"ValueError: two\nlines \x1b"),
        (ValueError("long" * 1000), f"ValueError: {'long' * 99}l..."),
        (UnspeakableError(), "UnspeakableError: (its text can't be had: RuntimeError)"),
        (ModelError("wrong", participant="a", at=5, advice="do it right"), "ModelError: wrong"),
    ],
)
def test_an_error_is_described_by_its_class_and_text_on_one_line(error: BaseException, said: str) -> None:
    assert described(error) == said


def test_what_is_said_of_an_error_ends_with_the_authors_line_and_its_advice() -> None:
    assert said_of(nested("/home/me/cell.py")).startswith("JSONDecodeError: ")
    assert said_of(nested("/home/me/cell.py")).endswith(", in cell.py, line 4")
    assert said_of(ValueError("no")) == "ValueError: no"
    error = ModelError("wrong", advice="do it right")
    error.__traceback__ = nested("/home/me/cell.py").__traceback__
    assert said_of(error) == "ModelError: wrong, in cell.py, line 4 (do it right)"


def test_the_place_of_a_mistake_in_a_file_is_said_once() -> None:
    error = raised(lambda: code_in("/home/me/typo.py", "x = 1\ndef f(:\n"))
    assert said_of(error) == "SyntaxError: invalid syntax, in typo.py, line 2"


def test_an_error_of_ours_gets_its_line_once() -> None:
    error = ModelError("wrong", participant="a", advice="do it right")
    assert str(located(error)) == "a: wrong (do it right)"
    error.__traceback__ = nested("/home/me/cell.py", OURS).__traceback__
    for _ in range(2):
        assert located(error) is error
        assert str(error) == "a: wrong, in cell.py, line 4 (do it right)"


def test_a_trace_begins_where_the_authors_program_was_called_and_is_whole_from_there() -> None:
    cause = nested(OURS, COMPILED, "/home/me/cell.py", OURS)
    error = ModelError("wrong")
    error.__cause__ = cause
    for each in (cause, error):
        frames = [line.split('"')[1] for line in trace_of(each).splitlines() if line.startswith("  File ")]
        assert frames[:2] == ["/home/me/cell.py", OURS]
        assert frames[-1].endswith("decoder.py")
        assert trace_of(each).splitlines()[-1].startswith("json.decoder.JSONDecodeError: ")


def test_a_trace_that_has_come_as_a_note_is_shown() -> None:
    error = ModelError("wrong")
    error.add_note("Traceback of a worker")
    assert trace_of(error).endswith("ModelError: wrong\nTraceback of a worker")


def test_the_frames_around_the_authors_program_are_counted() -> None:
    assert outer_frames(nested(OURS, OURS, "/home/me/cell.py", OURS)) == 2
    assert outer_frames(nested("/home/me/cell.py")) == 0


def test_a_program_in_this_process_is_named_with_its_own_line() -> None:
    def decodes(self: worldline.Participant) -> None:
        json.loads("{bad")

    def goes_back(self: worldline.Participant) -> None:
        self.advance(to="2ms")
        self.advance(to="1ms")

    for program in (decodes, goes_back):
        with pytest.raises(WorldlineError, match=r", in test_blame\.py, line \d+($| \()"):
            run(Federation({"a": Program(program)}))
