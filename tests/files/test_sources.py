"""Which code a run is made of: what is hashed, and what isn't run for it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from worldline.files.loading import sources_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "main.py": "import helper, json, msgspec\nfrom parts import wheel\nfrom parts.axle import Axle\nraise Exit\n",
        "helper.py": "def late():\n    import rare\n",
        "rare.py": "import nowhere_installed\n",
        "parts/__init__.py": "",
        "parts/wheel.py": "from . import spoke\nfrom .axle import Axle\n",
        "parts/axle.py": "",
        "parts/spoke.py": "",
        "parts/unused.py": "",
        "unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_file_and_all_that_it_imports_from_next_to_it(project: Path) -> None:
    found = sources_of([project / "main.py"], project)
    assert list(found.code) == [
        *("helper.py", "main.py", "parts/__init__.py", "parts/axle.py", "parts/spoke.py", "parts/wheel.py", "rare.py")
    ]
    assert found.libraries == {"msgspec": msgspec.__version__}


def test_a_hash_changes_with_its_file_alone(project: Path) -> None:
    before = sources_of([project / "main.py"], project).code
    (project / "rare.py").write_text("import nowhere_installed  # a comment\n")
    after = sources_of([project / "main.py"], project).code
    assert [name for name in before if before[name] != after[name]] == ["rare.py"]


def test_it_is_the_same_from_everywhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sources_of([project / "main.py"], project)
    monkeypatch.chdir(project)
    assert sources_of([Path("main.py")], Path()) == found


def test_files_that_arent_python_or_cant_be_parsed_or_arent_there(tmp_path: Path) -> None:
    (tmp_path / "tool").write_bytes(b"\x7fELF\0")
    (tmp_path / "wrong.py").write_text("def :")
    found = sources_of([tmp_path / "tool", tmp_path / "wrong.py", tmp_path / "gone.py"], tmp_path)
    assert list(found.code) == ["tool", "wrong.py"]
    assert found.libraries == {}


def test_files_in_circles_and_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\n")
    (tmp_path / "inner").mkdir()
    assert list(sources_of([tmp_path / "a.py"], tmp_path / "inner").code) == ["../a.py", "../b.py"]
