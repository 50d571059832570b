"""Entry points: from `module:name` to a program, or to a mistake that is told with its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worldline import Program
from worldline.federation.participant.declaration import Declaration
from worldline.launch.file.startable import load_program
from worldline.model import ConfigurationError, UsageError

MODULE = '''
from worldline import Program

def plain(self):
    """Does nothing."""

class Robot:
    def run(self, participant):
        """Does nothing."""

robot = Robot()
whole = Program(plain, publishes=["pose"], subscribes={"target": "mailbox"}, period="5ms")
number = 7

def generator(self):
    yield self.advance(to="1s")

async def coroutine(self):
    self.publish("t", b"")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with modules that are forgotten afterwards."""
    (tmp_path / "entry_cast.py").write_text(MODULE)
    (tmp_path / "entry_broken.py").write_text("import sys\n\nraise RuntimeError('not today')\n")
    (tmp_path / "entry_typo.py").write_text("def f(:\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in sorted(set(sys.modules) - before):
        del sys.modules[name]


def test_a_function_does_what_the_declaration_says(folder: Path) -> None:
    declared = Declaration(publishes=["a"], subscribes=["b"], period="2ms", controls=True)
    program = load_program("entry_cast:plain", folder, declared.said(), guest=True)
    assert program.run.__name__ == "plain"
    assert program.as_plain() == declared.as_plain()
    assert program.guest


def test_a_name_may_lead_inside_an_object(folder: Path) -> None:
    assert load_program("entry_cast:robot.run", folder).run.__name__ == "run"


def test_a_program_declares_what_the_file_leaves_open_and_nothing_else(folder: Path) -> None:
    program = load_program("entry_cast:whole", folder, guest=True)
    assert isinstance(program, Program)
    assert program.publishes == ("pose",)
    assert program.guest
    both = load_program("entry_cast:whole", folder, {"publishes": ("pose",), "latency_least": 5})
    assert (both.publishes, both.latency_least) == (("pose",), 5)
    with pytest.raises(UsageError, match=r"entry_cast:whole declares publishes = \[pose\], and the .* says \[image\]"):
        load_program("entry_cast:whole", folder, {"publishes": ("image",)})


@pytest.mark.parametrize(
    ("entry", "kind", "text"),
    [
        ("entry_cast:number", UsageError, r"entry_cast:number is 7 \(an entry is a function"),
        ("entry_cast:missing", UsageError, r"entry_cast has no missing \(entry_cast has .*plain, robot, whole\)$"),
        ("entry_cast:plian", UsageError, r'entry_cast has no plian \(did you mean "plain"\?\)'),
        ("entry_cast:number.x", UsageError, "entry_cast has no number.x"),
        ("entry_cast:robot.missing", UsageError, "entry_cast has no robot.missing"),
        ("entry_cast:generator", ConfigurationError, "generator is a generator or a coroutine"),
        ("entry_cast:coroutine", ConfigurationError, "coroutine is a generator or a coroutine"),
        (
            "entry_broken:f",
            UsageError,
            r"entry_broken can't be imported: RuntimeError: not today, in entry_broken.py, line 3$",
        ),
        ("entry_typo:f", UsageError, r"entry_typo can't be imported: SyntaxError: [^(]*, in entry_typo.py, line 1$"),
        ("entry_nowhere:f", UsageError, "entry_nowhere can't be imported: ModuleNotFoundError"),
    ],
)
def test_a_mistake_is_told_with_its_place(folder: Path, entry: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        load_program(entry, folder)


def test_what_lies_in_the_directory_wins_over_what_is_installed(folder: Path) -> None:
    (folder / "entry_shadow.py").write_text("def f(self): 'the near one'\n")
    other = folder / "elsewhere"
    other.mkdir()
    (other / "entry_shadow.py").write_text("def f(self): 'the far one'\n")
    sys.path.append(str(other))
    assert load_program("entry_shadow:f", folder).run.__doc__ == "the near one"


def test_modules_of_one_name_in_two_directories_are_two(folder: Path) -> None:
    found = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "entry_twin.py").write_text(f"def f(self): '{name}'\n")
        found.append(load_program("entry_twin:f", folder / name).run.__doc__)
    assert found == ["one", "two"]
