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
from worldline.model import WorldlineError
from worldline.model.blame import outer_frames, own_line


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
        names = {"call": call, "__name__": f"{Path(file).parent.name}.module{number}"}
        code = code_in(file, "\n\ndef step():\n    call()\n")
        exec(code, names)
        call = names["step"]  # type: ignore[assignment]
    return raised(call)


OURS = str(Path(worldline.__file__).parent / "federation" / "client.py")
INSTALLED = "/usr/lib/python3/site-packages/numeric/core.py"
DEBIANS = "/usr/lib/python3/dist-packages/numeric/core.py"
PYTHONS = json.__file__


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
        ([OURS, "/x/site-packages/robots/cell.py", "/x/site-packages/numeric/core.py"], "cell.py"),
    ],
)
def test_the_innermost_line_that_the_author_could_have_written(files: list[str], named: str) -> None:
    assert str(own_line(nested(*files))) == f"{named}, line 4"


def test_there_may_be_no_line_of_the_authors() -> None:
    assert own_line(nested(OURS)) is None
    assert own_line(ValueError("never raised")) is None


def test_a_file_that_cant_be_read_is_the_place_of_its_own_mistake() -> None:
    error = raised(lambda: code_in("/home/me/typo.py", "x = 1\ndef f(:\n"))
    assert str(own_line(error)) == "typo.py, line 2"


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
        with pytest.raises(WorldlineError, match=r", in test_blame\.py, line \d+$"):
            run(Federation({"a": Program(program)}))
