"""What the pages about nodes show is what the commands print.

After a change that alters it, ``python -m tests.test_docs_nodes`` writes it anew; what a page leaves out stays left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

import pytest

from worldline.nodes.algorithms import NAMES, find

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (DOCS / "first-algorithm.md", DOCS / "nodes.md")
EXAMPLE = ROOT / "examples" / "channels" / "channels.py"
LEFT_OUT = "..."

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Reader:
    """Does what a page says, from its top to its end, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / "channels.py"
        self.program = ""
        (folder / "examples").symlink_to(ROOT / "examples")

    def retell(self, page: str) -> str:
        """Return the page with what the commands in it really print."""
        return _BLOCK.sub(lambda block: f"```{block[1]}\n{self._retell_block(block[1], block[2])}```", page)

    def _retell_block(self, language: str, body: str) -> str:
        if language == "diff":
            old, new = (_side(body, sign) for sign in "-+")
            text = self.own.read_text()
            assert text.count(old) == 1
            self.own.write_text(text.replace(old, new))
        elif language == "py" and body.startswith("    "):  # Some of the example's methods.
            for part in body.split("\n\n"):
                assert part.strip("\n") in EXAMPLE.read_text()
        elif language == "py" and "ALGORITHM" in body:
            self.own.write_text(f"{self.own.read_text()}\n{body}")
        elif language in ("py", "python"):
            self.program = body
            if "class Station" in body:
                self.own.write_text(body)
        elif body.startswith("$ "):
            return "".join(f"$ {command}\n{self._output(command, shown)}" for command, shown in _commands(body))
        return body

    def _output(self, command: str, shown: str) -> str:
        words = command.split()
        if words[0] == "python":
            (self.folder / words[1]).write_text(self.program)
        # The report doesn't depend on the workers, and one is there soonest.
        given = f"{command} --workers 1" if "--seeds" in words else command
        python = quote(sys.executable)
        script = f'worldline() {{ {python} -m worldline "$@"; }}; python() {{ {python} "$@"; }}; {given}'
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=50, check=False
        )
        return _shortened(done.stdout + done.stderr, shown)


def _side(diff: str, sign: str) -> str:
    return "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] in (sign, " "))


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """Yield each command, and what the page shows for it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _shortened(output: str, shown: str) -> str:
    """Leave out of the output as much as the page does: what stands between its first lines and its last ones."""
    lines, kept = output.splitlines(keepends=True), shown.splitlines()
    if LEFT_OUT not in kept:
        return output
    first = kept.index(LEFT_OUT)
    last = len(kept) - first - 1
    return "".join((*lines[:first], f"{LEFT_OUT}\n", *lines[len(lines) - last :]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    assert Reader(tmp_path).retell(text) == text


def test_the_table_has_every_algorithm_with_what_it_says_of_itself() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| (.*) \| (.*) \|$", PAGES[1].read_text(), re.MULTILINE)
    assert [name for name, _, _ in rows] == list(NAMES)
    for name, links, stands in rows:
        algorithm = find(name)
        assert ("FIFO" in links) == algorithm.fifo, name
        assert ("any order" in links) != algorithm.fifo, name
        assert stands == (algorithm.faults.replace(",", ", ") or "none"), name


def test_the_example_stands_the_faults_that_it_claims(tmp_path: Path) -> None:
    shown = "holds always: nobody changes its channel"
    command = (
        f"worldline nodes --file {quote(str(EXAMPLE))} --topology ring:6 --faults crash,partition,link,loss --seeds 50"
    )
    assert shown in Reader(tmp_path)._output(command, "")


if __name__ == "__main__":
    for page in PAGES:
        with TemporaryDirectory() as folder:
            page.write_text(Reader(Path(folder)).retell(page.read_text()))
