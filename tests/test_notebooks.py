"""The example notebooks run from top to bottom, without a terminal, and show what they are shown to show."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.world.test_docs_world import without_machine

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS_MAX = 100


def executed(notebook: Path, folder: Path) -> Any:
    """Run a notebook in a folder next to the other examples, and return it with its outputs."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for each in FOLDER.parent.iterdir():
        if each.is_dir() and each != FOLDER:
            (folder / each.name).symlink_to(each)
    (folder / "notebooks").mkdir()
    book = nbformat.read(notebook, as_version=4)
    for cell in book.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(folder / "notebooks")}}
    nbclient.NotebookClient(book, timeout=SECONDS_MAX, resources=resources).execute()
    for cell in book.cells:
        cell.metadata.clear()  # When it was executed.
    return book


def shown(book: Any) -> list[list[dict[str, str]]]:
    """Return what each cell shows, by kind; of a text that is printed, that."""
    return [
        [dict(output.get("data") or {"text": output.get("text", "")}) for output in cell.get("outputs", [])]
        for cell in book.cells
    ]


@pytest.mark.long
@pytest.mark.timeout(200)
@pytest.mark.filterwarnings("default")  # Of what runs the notebooks.
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_did(notebook: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib")
    before, after = shown(nbformat.read(notebook, as_version=4)), shown(executed(notebook, tmp_path))
    assert [[sorted(output) for output in cell] for cell in after] == [
        [sorted(output) for output in cell] for cell in before
    ]
    texts = ["\n".join(_texts(cells)) for cells in (before, after)]
    if notebook.stem == "world":  # What an engine computes depends on the kind of processor.
        texts = [without_machine(text) for text in texts]
    assert texts[0] == texts[1]
    assert any("image/svg+xml" in output for cell in after for output in cell)


def _texts(cells: list[list[dict[str, str]]]) -> list[str]:
    """Return the texts and tables, without what isn't the same in every process."""
    kept = ("text", "text/html")
    found = [output[kind] for cell in cells for output in cell for kind in kept if kind in output]
    return [re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL) for text in found]


def test_every_notebook_has_outputs_and_no_errors() -> None:
    nbformat = pytest.importorskip("nbformat")
    assert [path.stem for path in NOTEBOOKS] == ["federation", "kernel", "nodes", "spacetime", "sweep", "world"]
    for notebook in NOTEBOOKS:
        book = nbformat.read(notebook, as_version=4)
        nbformat.validate(book)
        outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
        assert outputs, notebook
        assert not [output for output in outputs if output.output_type == "error"]
        assert str(ROOT) not in notebook.read_text()


def renew() -> None:
    """Write the notebooks anew with what they show now: ``python -m tests.test_notebooks``."""
    from tempfile import TemporaryDirectory

    import nbformat

    for notebook in [path for path in NOTEBOOKS if not sys.argv[1:] or path.stem in sys.argv[1:]]:
        with TemporaryDirectory() as folder:
            book = executed(notebook, Path(folder))
        notebook.write_text(nbformat.writes(book) + "\n")


if __name__ == "__main__":
    renew()
