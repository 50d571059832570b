"""What the pages about nodes show is what the commands print.

After a change that alters it, ``python -m tests.test_docs_nodes`` writes it anew; what a page leaves out, by a line of
dots, stays left out.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest

from worldline.cli import main
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import KINDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (DOCS / "first-algorithm.md", DOCS / "nodes.md")
EXAMPLE = ROOT / "examples" / "channels" / "channels.py"
LEFT_OUT = "..."
PICTURED = "raft --seed 5 --until 1s --faults crash=1,partition=1"

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
        elif language == "py" and "\nmodel = " in body:
            self.own.write_text(f"{self.own.read_text()}\n{body}")
        elif language in ("py", "python"):
            self.program = body
            if "class Station" in body:
                self.own.write_text(body)
        elif body.startswith("$ "):
            return "".join(f"$ {command}\n{self._output(command, shown)}" for command, shown in _commands(body))
        return body

    def _output(self, command: str, shown: str) -> str:
        words = shlex.split(command)
        if words[0] == "worldline":
            return _shortened(self._worldline(words[1:]), shown)
        assert words[0] == "python"
        (self.folder / words[1]).write_text(self.program)
        words[0] = sys.executable
        done = subprocess.run(
            words,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return _shortened(done.stdout + done.stderr, shown)

    def _worldline(self, words: list[str]) -> str:
        """Run the command in this process: there are many, and each would take longer to start than to run."""
        if "--seeds" in words:
            words = [*words, "--workers", "1"]  # The report doesn't depend on them.
        wants_errors = words[-2:] != ["2>", "/dev/null"]
        words = words if wants_errors else words[:-2]
        for name in [name for name in sys.modules if name.startswith("worldline_file_")]:
            del sys.modules[name]  # The page changes its file.
        out, errors = StringIO(), StringIO()
        with (
            chdir(self.folder),
            mock.patch.object(sys, "argv", ["worldline", *words]),
            redirect_stdout(out),
            redirect_stderr(errors),
            pytest.raises(SystemExit),
        ):
            main()
        return out.getvalue() + (errors.getvalue() if wants_errors else "")


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


@pytest.mark.long
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
        faults = "all" if set(algorithm.faults.split(",")) == set(KINDS) else algorithm.faults.replace(",", ", ")
        assert stands == (faults or "none"), name


def test_the_example_stands_the_faults_that_it_claims(tmp_path: Path) -> None:
    claimed = "crash,partition,link,loss"
    words = ["nodes", "--file", str(EXAMPLE), "--topology", "ring:6", "--faults", claimed, "--seeds", "50"]
    assert "holds always: no station changes its channel\n" in Reader(tmp_path)._worldline(words)


def test_the_example_needs_its_stable_channel(tmp_path: Path) -> None:
    assert "Without `stable`, seed 5 fails." in PAGES[0].read_text()
    (tmp_path / "forgetful.py").write_text(EXAMPLE.read_text().replace('stable = ("channel",)', ""))
    words = ["nodes", "--file", "forgetful.py", "--faults", "crash,partition,link,loss", "--seeds", "6", "--no-shrink"]
    assert ": seed 5 fails\n" in Reader(tmp_path)._worldline(words)


def test_the_picture_is_the_one_that_is_drawn(tmp_path: Path) -> None:
    assert f"`worldline nodes {PICTURED} --diagram raft.svg`" in (DOCS / "nodes.md").read_text()
    assert _pictured(tmp_path) == (DOCS / "raft.svg").read_text(encoding="utf-8")


def _pictured(folder: Path) -> str:
    Reader(folder)._worldline(["nodes", *PICTURED.split(), "--quiet", "--diagram", "raft.svg"])
    return (folder / "raft.svg").read_text(encoding="utf-8")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        (DOCS / "raft.svg").write_text(_pictured(Path(folder)), encoding="utf-8")
    for page in PAGES:
        with TemporaryDirectory() as folder:
            page.write_text(Reader(Path(folder)).retell(page.read_text()))
