"""What the documentation shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from worldline.lock.states import diagram

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def command(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_placeholder_is_left(page: Path) -> None:
    found = re.findall(r"\b[A-Z]+_[A-Z_0-9]{4,}\b", page.read_text())
    assert [word for word in found if not word.startswith("WORLDLINE_")] == []  # Those are environment variables.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_runs(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(python_blocks(page)):
        program = tmp_path / f"block{number}.py"
        program.write_text(block)
        done = command(str(program), cwd=tmp_path)  # What a block writes doesn't belong to the project.
        assert done.returncode == 0, done.stderr


def test_the_readmes_programs_print_what_the_readme_shows(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    tennis, rumour, ping = python_blocks(ROOT / "README.md")
    (tmp_path / "tennis.py").write_text(tennis)
    (tmp_path / "rumour.py").write_text(rumour)
    (tmp_path / "ping.py").write_text(ping)
    own, cell, *_ = dict.fromkeys(re.findall(r"digest ([0-9a-f]{32})", text))
    assert command("rumour.py", cwd=tmp_path).stdout in text
    assert command("ping.py", cwd=tmp_path).stdout in text
    relay = command("-m", "worldline", "spacetime", "relay", "--check", "--executor", "processes(2)", cwd=tmp_path)
    assert relay.stdout in text
    ran = command("tennis.py", cwd=tmp_path)
    assert ran.stdout.endswith(f"digest {own}\n"), ran.stderr
    file = ROOT / "examples" / "robot_cell" / "robot_cell.toml"
    ran = command("-m", "worldline", "run", str(file), "--executor", "in-process", "--no-record")
    assert ran.stdout.endswith(f"digest {cell}\n"), ran.stderr
    checked = command("-m", "worldline", "check", "tennis.py", cwd=tmp_path)
    assert checked.stdout == re.search(r"\$ worldline check tennis.py\n(.*?\n)```", text, re.DOTALL)[1]  # type: ignore[index]


def test_the_readme_shows_what_algorithms_do() -> None:
    text = (ROOT / "README.md").read_text()
    for arguments in (
        ("bellman-ford", "--edges", "0-1,0-2,1-2", "--seed", "1"),
        ("--file", "examples/broken_mutex/broken_mutex.py", "--seeds", "1000"),
    ):
        (shown,) = re.findall(
            rf"\$ worldline nodes {' '.join(arguments)}\n(.*?)(?:^\$ |^```)", text, re.DOTALL | re.MULTILINE
        )
        told = command("-m", "worldline", "nodes", *arguments).stdout
        for part in shown.split("...\n"):
            assert part in told


def test_the_kernels_guide_shows_what_its_first_program_prints(tmp_path: Path) -> None:
    page = ROOT / "docs" / "kernel.md"
    (tmp_path / "first.py").write_text(python_blocks(page)[0])
    (shown,) = re.findall(r"```\n( *\d+\.\d+ms .*?)```", page.read_text(), re.DOTALL)
    assert command("first.py", cwd=tmp_path).stdout == shown


def test_the_guide_shows_what_the_checker_says_of_the_leaky_example() -> None:
    page = (ROOT / "docs" / "first-federation.md").read_text()
    (shown,) = re.findall(r"\$ worldline check examples/leaky.py\n(.*?)```", page, re.DOTALL)
    assert command("-m", "worldline", "check", "examples/leaky.py").stdout == shown


def test_the_diagram_in_the_design_is_the_table_in_the_code() -> None:
    (shown,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
    assert shown == diagram()
