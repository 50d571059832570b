"""What the documentation shows is what happens."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import worldline
from worldline import run
from worldline.history import Observer
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import federation_of
from worldline.lock.states import diagram

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
WRAPPED = [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
LINKED = [*WRAPPED, *sorted((ROOT / "examples").glob("*/README.md"))]
COLUMNS_MAX = 120
RUN_ELSEWHERE = {
    *("learning.md", "metasim.md", "observers.md", "plot.md", "testing.md"),
    *("world.md", "world-discovery.md", "world-interaction.md"),
}
"""Pages whose programs all run in other tests, which compare what they print."""
ROOMS = {
    **dict.fromkeys(("kernel.md", "from-simpy.md", "first-simulation.md"), "worldline.kernel"),
    **dict.fromkeys(("nodes.md", "first-algorithm.md"), "worldline.nodes"),
    **dict.fromkeys(("spacetime.md", "first-agents.md"), "worldline.spacetime"),
}
"""Pages on one room alone: a name of another one, such as a federation's `Message`, is a mistake there."""
FOR_ALL_ROOMS = ("worldline.errors", "worldline.history", "worldline.recording")
FOREIGN = {
    *("Environment", "FilterStore", "PreemptiveResource", "PriorityResource", "PriorityStore", "get", "succeed"),
    *("AsyncVectorEnv", "SyncVectorEnv"),  # Gymnasium's; above, SimPy's
    *("AdvanceTo", "DrakeLcm", "Initialize", "Simulator", "reset_context"),  # Drake's
    *("lcm_handle", "set_queue_capacity", "_exit", "setblocking"),  # LCM's, Python's
    *("ApplyJointForce", "JointController", "JointPositionController", "VelocityControl"),  # Gazebo's
    *("Physics", "SceneBroadcaster", "UserCommands"),
    *("KiB", "MiB", "GiB", "TiB"),  # units
    "worldline.outcome",  # in a recording
    *("Ask", "Class", "D", "Lander", "on_x", "sweep", "wash_up"),  # a reader's, of a formula, or of our tests
}
"""Names in the prose that aren't Worldline's. Those that a page's own programs use needn't be here."""
HAS_DRAKE = importlib.util.find_spec("pydrake") is not None


def path_in_project(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_fenced_code(text: str) -> str:
    """Return a page with its fenced code emptied, but as many lines as before: those are counted."""
    fenced = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
    return fenced.sub(lambda block: "\n" * block[0].count("\n"), text)


def anchors(text: str) -> set[str]:
    """Return what the headings of a page can be linked to as, by GitHub's rules."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *$", without_fenced_code(text), re.MULTILINE):
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(anchor)
    return found


def long_lines(text: str) -> list[int]:
    """Return the numbers of the lines that could be wrapped: not those of tables, and not a link or an image alone."""
    alone = re.compile(r" *([-*] )?!?\[[^\]]*\]\([^)]*\)[.,;:]?")
    return [
        number
        for number, line in enumerate(without_fenced_code(text).splitlines(), 1)
        if len(line) > COLUMNS_MAX and not line.startswith("|") and not alone.fullmatch(line)
    ]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@cache
def names_defined() -> tuple[set[str], set[str]]:
    """Return the names of all classes, and of all that anything is called, in the sources."""
    text = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    classes = re.findall(r"^ *class (\w+)", text, re.MULTILINE)
    others = re.findall(r"def (\w+)|^ +(\w+): | as (\w+)|^ *(?:from \S+ )?import (.+)", text, re.MULTILINE)
    bound = [line.partition(" = ")[0] for line in text.splitlines() if " = " in line]
    said = "\n".join([*classes, *bound, *(each for found in others for each in found)])
    return set(classes), set(re.findall(r"\w+", said))


def unknown_names(page: str, text: str, classes: set[str], names: set[str]) -> set[str]:
    """Return the names in a page's prose that look like Worldline's and aren't: of classes, functions and attributes.

    Those that the page's own programs use are known: they run.
    """
    shown = re.findall(r"`([^`\n]+)`", without_fenced_code(text))
    programs = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    known = {*dir(builtins), *FOREIGN, *re.findall(r"\w+", programs)}
    rooms = (*FOR_ALL_ROOMS, ROOMS[page]) if page in ROOMS else ()
    of_rooms = {name for room in rooms for name in importlib.import_module(room).__all__}
    unknown = set[str]()
    for code in shown:
        kinds = re.findall(r"(?<![\w.\"'/\\-])([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)*)\b(?![\w-]*[/.])", code)
        unknown |= {kind for kind in kinds if kind not in known | (of_rooms if rooms else classes)}
        calls = re.findall(r"([A-Za-z_]\w*)\(|\bme\.(\w+)", code)
        unknown |= {name for call in calls for name in call if name and name not in known | names}
        dotted = re.findall(r"\bworldline(?:\.[A-Za-z_]\w*)+", code)
        unknown |= {name for name in dotted if name not in known and not is_importable(name)}
    return unknown


def is_importable(dotted: str) -> bool:
    """Whether there is a module of that name, or something in a module."""
    found: object = worldline
    path = "worldline"
    for name in dotted.split(".")[1:]:
        path += f".{name}"
        if not hasattr(found, name) and not (hasattr(found, "__path__") and importlib.util.find_spec(path)):
            return False
        found = getattr(found, name) if hasattr(found, name) else importlib.import_module(path)
    return True


def command(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=100, check=False
    )


def test_links_between_pages_lead_somewhere() -> None:
    for page in LINKED:
        text = without_fenced_code(page.read_text())
        for target, anchor in re.findall(r"\]\((?!https://)([^)#]*)(?:#([^)]*))?\)", text):
            file = page.parent / target if target else page
            assert file.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(file.read_text()), f"{page}: {target}#{anchor}"


def test_headings_have_the_anchors_that_github_gives_them() -> None:
    text = "# A file: `model`\n```\n# a comment\n```\n## Executors, traces\n## Limits\n### Limits\n"
    assert anchors(text) == {"a-file-model", "executors-traces", "limits", "limits-1"}


def test_prose_is_wrapped() -> None:
    assert {path_in_project(page): found for page in WRAPPED if (found := long_lines(page.read_text()))} == {}


def test_only_what_can_be_wrapped_is_too_long() -> None:
    long = "word " * 30
    assert long_lines(f"{long}\n```\n{long}\n```\n| {long} |\n![{long}](plot.svg)\n- {long}\n") == [1, 7]


def test_no_placeholder_is_left() -> None:
    environment = ("WORLDLINE_", "LCM_", "XDG_", "GZ_", "IGN_", "SDF_", "HELICS_")
    sockets = ("AF_", "SOCK_", "SO_")
    for page in PAGES:
        found = re.findall(r"\b[A-Z]+_[A-Z_0-9]{4,}\b", page.read_text())
        assert [word for word in found if not word.startswith((*environment, *sockets))] == [], page


def test_names_in_the_prose_are_those_of_the_code() -> None:
    classes, names = names_defined()
    pages = [page for page in LINKED if page.name != "CHANGELOG.md"]  # Which speaks of names that are gone.
    found = {path_in_project(page): unknown_names(page.name, page.read_text(), classes, names) for page in pages}
    assert {page: unknown for page, unknown in found.items() if unknown} == {}


def test_names_that_are_gone_are_found() -> None:
    classes, names = names_defined()
    text = (
        "`Message`, `EntityMessage`, `GoneThing`, `me.vanish`, `me.now`, `do_nothing_such()`, `worldline.gone.Thing`, "
        "`worldline.kernel.Entity`, `worldline.errors`\n```python\nclass Own: ...\n```\n`Own()`"
    )
    gone = {"GoneThing", "vanish", "do_nothing_such", "worldline.gone.Thing"}
    assert unknown_names("federation.md", text, classes, names) == gone
    assert unknown_names("kernel.md", text, classes, names) == {*gone, "Message"}


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in RUN_ELSEWHERE], ids=lambda page: page.name)
def test_every_python_block_runs(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for number, block in enumerate(python_blocks(page)):
        if "pydrake" in block and not HAS_DRAKE:
            pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
        named = re.match(r"# (\S+\.py)\n", block)  # Then others may import it.
        program = tmp_path / (named[1] if named else f"block{number}.py")
        program.write_text(block)
        done = command(str(program), cwd=tmp_path)  # What a block writes doesn't belong to the project.
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "program"), [("from-helics.md", "battery.py"), ("from-mosaik.md", "tank.py")])
def test_the_pages_for_others_users_show_what_our_programs_print(name: str, program: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / name
    (tmp_path / program).write_text(python_blocks(page)[0])
    (shown,) = re.findall(rf"```\n\$ python {program}\n(.*?)```", page.read_text(), re.DOTALL)
    assert command(program, cwd=tmp_path).stdout == shown


def test_the_page_on_observers_shows_what_its_program_prints(tmp_path: Path) -> None:
    page = ROOT / "docs" / "observers.md"
    (tmp_path / "mail.py").write_text(python_blocks(page)[0])
    (shown,) = re.findall(r"```\n(20s writer .*?)```", page.read_text(), re.DOTALL)
    assert command("mail.py", cwd=tmp_path).stdout == shown


def test_the_page_on_clocks_shows_what_its_program_prints(tmp_path: Path) -> None:
    page = ROOT / "docs" / "clocks.md"
    (tmp_path / "worker.py").write_text(python_blocks(page)[0])
    (shown,) = re.findall(r"```\n(at first .*?)```", page.read_text(), re.DOTALL)
    assert command("worker.py", cwd=tmp_path).stdout == shown


@pytest.mark.parametrize(("name", "picture"), [("clock_sync", "clock-sync.svg"), ("beat", "clocks-beat.svg")])
def test_the_page_on_clocks_has_the_pictures_that_the_examples_draw(
    name: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("WORLDLINE_OUTPUT", str(tmp_path))
    run(federation_of(read_setup(ROOT / "examples" / name / f"{name}.toml")))
    assert (tmp_path / f"{name}.svg").read_text() == (ROOT / "docs" / picture).read_text()


def test_the_page_on_observers_has_every_method_of_one() -> None:
    told = [name for name in vars(Observer) if not name.startswith("_")]
    assert re.findall(r"^\| `(\w+)\(.*\)` \|", (ROOT / "docs" / "observers.md").read_text(), re.MULTILINE) == told


def test_the_guide_shows_what_the_checker_says_of_the_leaky_example() -> None:
    page = (ROOT / "docs" / "first-federation.md").read_text()
    (shown,) = re.findall(r"\$ worldline check examples/leaky.py\n(.*?)```", page, re.DOTALL)
    assert command("-m", "worldline", "check", "examples/leaky.py").stdout == shown


def test_the_guide_shows_what_its_first_federation_prints(tmp_path: Path) -> None:
    page = ROOT / "docs" / "first-federation.md"
    (tmp_path / "room.py").write_text(python_blocks(page)[0])
    printed = command("room.py", cwd=tmp_path).stdout
    pattern = r"\$ python room.py\n(.*?)\.\.\.\n(.*?)\$ worldline run room.py\n\.\.\.\n(.*?)```"
    ((first, last, launched),) = re.findall(pattern, page.read_text(), re.DOTALL)
    assert printed.startswith(first)
    assert printed.endswith(last)
    done = command("-m", "worldline", "run", "--quiet", "--no-record", "room.py", cwd=tmp_path)
    assert done.stdout.endswith(launched)
    assert "temperature" not in done.stdout  # Loading the file for its `model` doesn't run it.
    (file,) = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "room.toml").write_text(file)
    done = command("-m", "worldline", "run", "--quiet", "--no-record", "room.toml", cwd=tmp_path)
    assert done.stdout.endswith(launched)
    assert page.read_text().count(launched) == 2


def test_the_page_on_sockets_shows_what_its_participants_print(tmp_path: Path) -> None:
    page = ROOT / "docs" / "from-sockets.md"
    (tmp_path / "after.py").write_text(python_blocks(page)[1])
    (shown,) = re.findall(r"```\n(got reading .*?)```", page.read_text(), re.DOTALL)
    assert command("after.py", cwd=tmp_path).stdout == shown


def test_the_guide_shows_what_the_one_that_runs_ahead_sends(tmp_path: Path) -> None:
    page = ROOT / "docs" / "federation.md"
    (program,) = (block for block in python_blocks(page) if "peek" in block)
    (tmp_path / "tank.py").write_text(program)
    (shown,) = re.findall(r"```\n(full at .*?)```", page.read_text(), re.DOTALL)
    assert command("tank.py", cwd=tmp_path).stdout == shown


def test_the_diagram_in_the_design_is_the_table_in_the_code() -> None:
    (shown,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
    assert shown == diagram()


def test_every_page_is_in_the_sites_index() -> None:
    listed = set(re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - listed == set()
