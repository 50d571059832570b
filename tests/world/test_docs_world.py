"""The pages about worlds show what the commands and programs in them print.

Hashes depend on the kind of processor, so only this is compared: which of them are equal. After a change of what is
printed, ``python -m tests.world.test_docs_world`` writes the pages anew.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest

from tests.shell import printed
from tests.test_docs_nodes import _side
from tests.world.test_placement import stand, start, together
from worldline.cli import main
from worldline.cli.commands import app
from worldline.model.errors import BrokenOff
from worldline.world.groups import place
from worldline.world.secondary import ended_in

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "world.md"
PAGES = (PAGE, ROOT / "docs" / "first-world.md", ROOT / "docs" / "from-gazebo.md")
SECONDARIES = ["S1", "S2", "S3"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Retelling:
    """Does what a page says, from its top to its end, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._printed = ""  # By the program that the page showed last.
        (folder / "examples").symlink_to(ROOT / "examples")

    def retell(self, page: str) -> str:
        return _BLOCK.sub(lambda block: f"```{block[1]}\n{self._block(block[1], block[2])}```", page)

    def _block(self, language: str, body: str) -> str:
        if language == "python":
            self._printed = self._captured(lambda: exec(body, {}))
        elif language == "diff":
            file = self._folder / "world.sdf"
            old, new = (_side(body, sign) for sign in "-+")
            assert file.read_text().count(old) == 1
            file.write_text(file.read_text().replace(old, new))
        elif named := re.match(r"<!-- (\S+\.sdf) -->\n", body):
            (self._folder / named[1]).write_text(body)
        elif not language and self._printed:
            body, self._printed = self._printed, ""
        elif body.startswith("$ "):
            commands = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
            return "".join(f"$ {command}\n{self._output(command)}" for command in commands)
        return body

    def _output(self, command: str) -> str:
        words = shlex.split(command)
        if words[0] == "worldline":
            return self._captured(lambda: _call(words))
        return printed(command, self._folder)

    def _captured(self, run: Callable[[], object]) -> str:
        """Run something in this process: another one would take longer to start."""
        said = StringIO()
        with chdir(self._folder), redirect_stdout(said), redirect_stderr(said):
            run()
        return said.getvalue()


def _call(words: list[str]) -> None:
    with mock.patch.object(sys, "argv", words), pytest.raises(SystemExit):
        main()


def without_machine(page: str) -> str:
    """Leave out how long it took, and what is said if that was long; name hashes by the order in which they occur."""
    seen: dict[str, str] = {}
    page = re.sub(r"^still running: .*\n", "", page, flags=re.MULTILINE)
    page = re.sub(r"(simulated|runs) in [\d.]+ s", r"\1", page)
    page = re.sub(r"(  \d+) +\d+\.\d\d$", r"\1", page, flags=re.MULTILINE)  # A row of `verify` ends with seconds.
    return re.sub(r"\b[0-9a-f]{32}\b", lambda found: seen.setdefault(found[0], f"hash {len(seen)}"), page)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    assert without_machine(Retelling(tmp_path).retell(text)) == without_machine(text)


def test_the_commands_that_arent_run_can_be() -> None:
    page = "".join(page.read_text() for page in PAGES)
    found = re.findall(r"^(?=worldline world)(.*)$", page, re.MULTILINE) + re.findall(
        r"[`*](worldline world .*?)`", page
    )
    assert len(found) >= 10
    for command in found:
        name, *arguments = shlex.split(command)[1:]
        _parse(name, arguments)


def _parse(name: str, arguments: list[str]) -> None:
    """Read the arguments of a command as it would itself, and no more; what it doesn't know raises."""
    from typer.main import get_command

    group = get_command(app)
    made = group.get_command(group.make_context("worldline", [name]), name)  # type: ignore[attr-defined]
    assert made is not None
    made.make_context(name, arguments)


def test_the_moves_are_those_of_the_placement() -> None:
    rows = re.findall(r"^\| (.*) enters? (L\d) \| (.*) \| (P1 on .*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 3
    before = {"P1": "L1", "P2": "L2", "P3": "L2"}
    for who, level, moved, then in rows:
        levels, distribution = start(" ".join(SECONDARIES), **before)
        positions = stand(**(before | dict.fromkeys(who.split(" and "), level)))
        changed = levels.update(positions)
        after = place(together(levels, positions), SECONDARIES, distribution, changed)
        others = [name for name, where in after.items() if distribution[name] != where]
        assert " and ".join(others) == moved.replace("none", "")
        assert ", ".join(f"{name} on {where}" for name, where in after.items()) == then


def test_a_death_is_told_as_shown() -> None:
    (shown,) = re.findall(r"^(the run ended in step 1165: .*)$", PAGE.read_text(), re.MULTILINE)
    cause = "its connection was closed, and it hadn't left"
    lost = BrokenOff(f"the run was broken off: {cause}", participant="left", cause=cause)
    assert str(ended_in(1165, lost)) == shown


if __name__ == "__main__":
    for page in PAGES:
        with TemporaryDirectory() as folder:
            page.write_text(Retelling(Path(folder)).retell(page.read_text()))
