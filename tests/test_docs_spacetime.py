"""What the pages about spacetime show is what the commands print.

After a change that alters it, ``python -m tests.test_docs_spacetime`` writes it anew, as for the pages about nodes.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.test_docs_nodes import DOCS, ROOT, Reader, _side
from worldline.pictures.spacetime import minkowski_svg
from worldline.spacetime.examples import NAMES, find

PAGES = (DOCS / "first-agents.md", DOCS / "spacetime.md")
EXAMPLE = ROOT / "examples" / "spacetime" / "probe.py"


class Traveler(Reader):
    """Does what a page says, with one file of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.own = folder / "probe.py"

    def _retell_block(self, language: str, body: str) -> str:
        if language == "diff":
            old, new = (_side(body, sign) for sign in "-+")
            text = self.own.read_text()
            assert text.count(old) == 1, old
            self.own.write_text(text.replace(old, new))
            return body
        if language == "python" and "def model(" in body:
            self.own.write_text(body)
        return super()._retell_block(language, body)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    assert Traveler(tmp_path).retell(text) == text


def test_the_tutorial_ends_with_the_example(tmp_path: Path) -> None:
    traveler = Traveler(tmp_path)
    traveler.retell(PAGES[0].read_text())
    assert traveler.own.read_text() == EXAMPLE.read_text()


def test_the_picture_is_the_one_that_is_drawn() -> None:
    assert _relay() == (DOCS / "relay.svg").read_text(encoding="utf-8")


def _relay() -> str:
    simulation = find("relay").build(trace=True)
    result = simulation.run(until=46.0)
    return minkowski_svg(result.records, 2, field=simulation.field, title="relay, seed 0", until=46.0)


def test_the_table_has_every_example_with_its_parameters() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGES[1].read_text(), re.MULTILINE)
    assert [name for name, _ in rows if name in NAMES] == list(NAMES)
    for name, parameters in rows:
        if name in NAMES:
            shown = ", ".join(f"`{key}={value}`" for key, value in find(name).parameters.items())
            assert parameters == shown, name


if __name__ == "__main__":
    (DOCS / "relay.svg").write_text(_relay(), encoding="utf-8")
    for page in PAGES:
        with TemporaryDirectory() as folder:
            page.write_text(Traveler(Path(folder)).retell(page.read_text()))
