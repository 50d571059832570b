"""`make browser`: finds or installs what the page's tests need, says so in one line, and never stands in their way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
NEEDED = ("bash", "chmod", "env", "head", "make", "mkdir", "rm", "timeout")
FAILS, INSTALLS = (
    "exit 100",
    "[[ $1 == update || $* == *--download-only* ]] || { echo >bin/chromium; chmod +x bin/chromium; }",
)

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="this needs make and coreutils"),
]


def browser(folder: Path, *goals: str) -> str:
    """Return what make says of a browser, where there are only the commands in a folder."""
    command = ["make", "--no-print-directory", "-f", str(MAKEFILE), *goals]
    made = subprocess.run(
        command, cwd=folder, env={"PATH": str(folder / "bin")}, capture_output=True, text=True, check=True
    )
    return "".join(line for line in made.stdout.splitlines(keepends=True) if line.startswith("Chromium"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def apt(folder: Path, does: str) -> None:
    (folder / "bin" / "apt-get").write_text(f"#!/usr/bin/env bash\necho x >>asked\n{does}\n")
    (folder / "bin" / "apt-get").chmod(0o755)


def test_without_apt_it_says_why_there_is_none(folder: Path) -> None:
    assert browser(folder, "browser") == (
        "Chromium: none here, and it takes root and apt to install it, so the page's tests in a browser are skipped\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install packages")
def test_what_fails_is_not_tried_again_unless_asked_for(folder: Path) -> None:
    apt(folder, FAILS)
    test = ("--eval", "tests: browser", "tests")
    said = browser(folder, *test)
    assert said.startswith("Chromium: apt can't install it (see build/no-chromium.log), so the page's tests")
    assert browser(folder, *test).endswith("`make browser` tries again to install it\n")
    assert (folder / "asked").read_text() == "x\n"
    browser(folder, "browser")
    assert (folder / "asked").read_text() == "x\nx\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may install packages")
def test_it_is_installed_once(folder: Path) -> None:
    apt(folder, INSTALLS)
    assert browser(folder, "browser") == f"Chromium: installed Debian's, {folder}/bin/chromium\n"
    assert browser(folder, "browser") == f"Chromium: {folder}/bin/chromium\n"
    assert len((folder / "asked").read_text()) == 6
