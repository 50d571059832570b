"""Users' Python files: they may be called anything, and what is wrong with them is said in plain words."""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path

import pytest

from tests.files.files import nothing_stays, write  # noqa: F401 - A fixture.
from worldline.files.loading import load_module
from worldline.model.errors import ConfigurationError

MINE = """
class Mine:
    '''Says that it is mine.'''
"""


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("\n\nclass Mine(Node:\n    pass\n", "SyntaxError", 3),
        ("x = 1\n  y = 2\n", "IndentationError", 2),
        ("x = 1\n\n1 / 0\n", "ZeroDivisionError", 3),
        ("def f():\n    raise KeyError('k')\n\nf()\n", "KeyError", 2),
        ("import no_such_module_at_all\n", "ModuleNotFoundError", 1),
    ],
)
def test_what_cannot_be_loaded_says_where(tmp_path: Path, text: str, kind: str, line: int) -> None:
    file = write(tmp_path, text)
    for _ in range(2):  # Nothing of it is left that a second attempt would take for the file.
        with pytest.raises(ConfigurationError) as caught:
            load_module(file)
        assert str(caught.value).startswith(f"{file} can't be loaded: {kind}: ")
        assert str(caught.value).endswith(f", in mine.py, line {line}")
    file.write_text(MINE)
    assert load_module(file).Mine


@pytest.mark.parametrize("content", [MINE.replace("Says", "Grüßt").encode("latin-1"), b"x = '\0'\n"])
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.py"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="can't be loaded"):
        load_module(file)


def test_a_file_that_ends_the_program_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, "import sys\nsys.exit('bye')\n")
    with pytest.raises(ConfigurationError, match=r"can't be loaded: SystemExit: bye, in mine.py, line 2$"):
        load_module(file)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a directory"):
        load_module(tmp_path)
    for missing in (tmp_path / "nowhere.py", tmp_path / "no" / "folder.py"):
        with pytest.raises(ConfigurationError, match=f"there is no file {missing}"):
            load_module(missing)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"mine.txt isn't a Python file \(its name ends in \.py\)"):
        load_module(write(tmp_path, MINE, "mine.txt"))


@pytest.mark.parametrize("name", ["random.py", "json.py", "my-own.py", "my.own.py", "worldline.py", "2nd try.py"])
def test_it_may_be_called_anything(tmp_path: Path, name: str) -> None:
    before = dict(sys.modules)
    found = load_module(write(tmp_path, MINE, name))
    for module in ("random", "json", "worldline"):
        assert sys.modules[module] is before[module]
    assert random.Random(1).random() == 0.13436424411240122
    assert pickle.loads(pickle.dumps(found.Mine)) is found.Mine


def test_it_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "sub", "TEXT = 'from beside'\n", "lies_beside.py")
    assert load_module(write(tmp_path / "sub", "from lies_beside import TEXT\n")).TEXT == "from beside"


def test_it_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, f"{MINE}\nwith open('log', 'a') as log:\n    log.write('x')\n")
    monkeypatch.chdir(tmp_path)
    first = load_module(file)
    assert load_module(Path("mine.py")) is first
    assert (tmp_path / "log").read_text() == "x"


def test_files_of_the_same_name_are_different(tmp_path: Path) -> None:
    first = load_module(write(tmp_path / "a", MINE))
    second = load_module(write(tmp_path / "b", MINE.replace("Says", "Denies")))
    assert (first.Mine.__doc__, second.Mine.__doc__) == ("Says that it is mine.", "Denies that it is mine.")


def test_a_file_may_have_dataclasses_and_types_of_its_own(tmp_path: Path) -> None:
    text = """
from __future__ import annotations
from dataclasses import dataclass
from msgspec import Struct

@dataclass
class Said:
    what: str
class Asked(Struct, frozen=True):
    by: Said
"""
    found = load_module(write(tmp_path, text))
    assert found.Asked(found.Said("yes")).by.what == "yes"
