"""Users' files: what is found in them, and plain words for what is wrong with them."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.nodes.loading import load_file
from worldline.nodes.trial import Trial

NODE = """
from worldline.nodes import Node

class Mine(Node):
    '''Says that it is mine.'''

    def execute(self, event):
        self.log("mine")
"""
ALGORITHM = """
from worldline.nodes.algorithm import Algorithm
ALGORITHM = Algorithm(name="mine", node=Mine, topology="ring:4")
"""


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Forget the modules that a test has loaded, and where it has looked for them."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("worldline_file_") or name in ("beside", "beside_too"):
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_a_single_class_of_nodes_is_the_algorithm(tmp_path: Path) -> None:
    found = load_file(write(tmp_path, NODE, "my_own.py"))
    assert (found.name, found.node.__name__, found.topology) == ("my_own", "Mine", "clique:3")
    assert found.summary == "Says that it is mine."
    assert Trial(algorithm=found).run().failure is None


def test_an_algorithm_is_taken_as_it_is(tmp_path: Path) -> None:
    more = NODE + "class Other(Mine):\n    pass\n" + ALGORITHM
    found = load_file(write(tmp_path, more))
    assert (found.name, found.node.__name__, found.topology) == ("mine", "Mine", "ring:4")


def test_classes_that_are_only_imported_are_not_its_own(tmp_path: Path) -> None:
    found = load_file(write(tmp_path, f"from worldline.nodes.algorithms.gossip import Gossip\n{NODE}"))
    assert found.node.__name__ == "Mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "defines no class of nodes (derive one class from Node, or say ALGORITHM = "),
        ("", "defines no class of nodes"),
        (NODE + NODE.replace("Mine", "Other"), "defines 2 classes of nodes (derive one class from Node, or say"),
        ("from worldline.nodes.algorithms.gossip import Gossip", "defines no class of nodes"),
        (f"{NODE}\nALGORITHM = Mine", "its ALGORITHM isn't an Algorithm"),
    ],
)
def test_what_holds_no_algorithm_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_file(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n\nclass Mine(Node:\n    pass\n", "can't be loaded, in line 3: SyntaxError"),
        ("x = 1\n  y = 2\n", "can't be loaded, in line 2: IndentationError"),
        ("x = 1\n\n1 / 0\n", "can't be loaded, in line 3: ZeroDivisionError"),
        ("def f():\n    raise KeyError('k')\n\nf()\n", "can't be loaded, in line 2: KeyError"),
        ("import no_such_module_at_all\n", "can't be loaded, in line 1: ModuleNotFoundError"),
        ("x = '\0'\n", "can't be loaded"),
    ],
)
def test_what_cannot_be_loaded_says_where(tmp_path: Path, text: str, words: str) -> None:
    file = write(tmp_path, text)
    for _ in range(2):  # Nothing of it is left that a second attempt would take for the file.
        with pytest.raises(ConfigurationError) as caught:
            load_file(file)
        assert str(caught.value).startswith(f"{file} {words}")
    file.write_text(NODE)
    assert load_file(file).name == "mine"


def test_what_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_bytes(NODE.replace("Says", "Grüßt").encode("latin-1"))
    with pytest.raises(WorldlineError, match="can't be loaded"):
        load_file(file)


def test_a_file_that_ends_the_program_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, f"{NODE}\nimport sys\nsys.exit('bye')\n")
    with pytest.raises(ConfigurationError, match="can't be loaded, in line 11: SystemExit: bye"):
        load_file(file)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    for missing in (tmp_path / "nowhere.py", tmp_path, tmp_path / "no" / "folder.py"):
        with pytest.raises(ConfigurationError, match=f"there is no file {missing}"):
            load_file(missing)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"mine.txt isn't a Python file \(its name ends in \.py\)"):
        load_file(write(tmp_path, NODE, "mine.txt"))


@pytest.mark.parametrize("name", ["random.py", "json.py", "my-own.py", "my.own.py", "worldline.py", "2nd try.py"])
def test_it_may_be_called_anything(tmp_path: Path, name: str) -> None:
    before = dict(sys.modules)
    found = load_file(write(tmp_path, NODE, name))
    assert found.name == name.removesuffix(".py")
    for module in ("random", "json", "worldline"):
        assert sys.modules[module] is before[module]
    assert random.Random(1).random() == 0.13436424411240122
    assert pickle.loads(pickle.dumps(found)).node is found.node


def test_it_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "sub", "TEXT = 'from beside'\n", "beside.py")
    file = write(tmp_path / "sub", f"import beside\n{NODE}\nMine.__doc__ = beside.TEXT\n")
    assert load_file(file).summary == "from beside"


def test_a_class_that_lies_beside_it_can_be_its_node(tmp_path: Path) -> None:
    write(tmp_path, NODE, "beside_too.py")
    found = load_file(write(tmp_path, f"from beside_too import Mine\n{ALGORITHM}"))
    assert found.node.__name__ == "Mine"


def test_it_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, f"{NODE}\nfrom pathlib import Path\nwith open('log', 'a') as log:\n    log.write('x')\n")
    monkeypatch.chdir(tmp_path)
    first = load_file(file)
    assert load_file(Path("mine.py")).node is first.node
    assert (tmp_path / "log").read_text() == "x"


def test_files_of_the_same_name_are_different(tmp_path: Path) -> None:
    first = load_file(write(tmp_path / "a", NODE))
    second = load_file(write(tmp_path / "b", NODE.replace("Says", "Denies")))
    assert (first.summary, second.summary) == ("Says that it is mine.", "Denies that it is mine.")


def test_a_file_may_have_dataclasses_and_types_of_its_own(tmp_path: Path) -> None:
    text = f"""
from __future__ import annotations
from dataclasses import dataclass
from msgspec import Struct
{NODE}
@dataclass
class Said:
    what: str
class Asked(Struct, frozen=True):
    by: Said
"""
    assert load_file(write(tmp_path, text)).node.__name__ == "Mine"
