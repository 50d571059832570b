"""What the site shows beside the pages in this folder: commands as they explain themselves, examples, the API.

The pages are read on their own, too, by readers of the repository. So links out of this folder stay as they are there,
and lead here to pages that are made of the files that they name.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LANGUAGES = {".py": "python", ".toml": "toml", ".sdf": "xml", ".xml": "xml", ".md": ""}
ROOMS = {
    "federations": "worldline",
    "kernel": "worldline.kernel",
    "nodes": "worldline.nodes",
    "spacetime": "worldline.spacetime",
    "world": "worldline.world",
    "recording": "worldline.recording",
    "plots": "worldline.pictures.plot",
    "search": "worldline.search",
    "experiments": "worldline.experiments",
    "metasim": "worldline.metasim",
    "learning": "worldline.learning",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    pages = {
        "reference/commands.md": commands(),
        **{f"reference/{page}.md": api(room) for page, room in ROOMS.items()},
        **{page: (ROOT / name).read_text() for name, page in SHOWN.items()},
        **examples(),
    }
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Lead links out of the folder to the pages that are made of what they name."""
    here = PurePosixPath("docs", page.file.src_uri).parent
    if page.file.src_uri in SHOWN.values():
        here = PurePosixPath()

    def led(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        place = normpath(f"{here}/{target}")
        shown = SHOWN.get(place) or (example_page(place) if is_shown(place) else None)
        if shown is None and place.startswith("docs/"):
            shown = place.removeprefix("docs/")
        if shown is None:
            return found[0]
        return f"]({relpath(shown, str(PurePosixPath(page.file.src_uri).parent))}{anchor})"

    return re.sub(r"\]\((?![a-z]+:)([^)#\s]+)(#[^)]*)?\)", led, markdown)


def is_shown(place: str) -> bool:
    return place.startswith(("examples/", "src/worldline/spacetime/examples"))


def example_page(place: str) -> str:
    parts = PurePosixPath(place).parts
    if parts[0] == "src":
        return "examples/spacetime-examples.md"
    return f"examples/{parts[1].removesuffix('.py')}.md"


def commands() -> str:
    """Return the help of every command."""
    names = re.findall(r"^  (\w+)  ", worldline_help(), re.MULTILINE)
    sections = [f"## worldline {name}\n\n```text\n{worldline_help(name)}\n```" for name in names]
    return "\n\n".join(["# Commands", "What `worldline COMMAND --help` prints.", *sections])


def worldline_help(*command: str) -> str:
    surroundings = {**os.environ, "COLUMNS": "84", "PYTHONPATH": str(ROOT / "src"), "WORLDLINE_UNCOMPILED": "1"}
    asked = [sys.executable, "-m", "worldline", *command, "--help"]
    said = subprocess.run(asked, check=True, capture_output=True, text=True, env=surroundings).stdout
    return said.replace("python -m worldline", "worldline").strip()


def api(room: str) -> str:
    """Return a page of all public names of a room."""
    module = ast.parse((ROOT / "src" / room.replace(".", "/") / "__init__.py").read_text())
    public = next(
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    homes = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    entries = [f"::: {homes[name]}" for name in sorted(public, key=str.lower) if name in homes and name != "build"]
    return "\n\n".join([f"# {room}", ast.get_docstring(module) or "", *entries])


def examples() -> dict[str, str]:
    """Return a page for each example, with what its files say, and an index."""
    pages, rows = {}, []
    for folder in sorted(each for each in (ROOT / "examples").iterdir() if each.is_dir() and each.name[0] not in "._"):
        pages[f"examples/{folder.name}.md"] = files_of(folder.name, folder)
        rows.append(f"| [{folder.name}]({folder.name}.md) | {about(folder)} |")
    pages["examples/leaky.md"] = files_of("leaky", ROOT / "examples/leaky.py")
    pages["examples/spacetime-examples.md"] = files_of("Agents", ROOT / "src/worldline/spacetime/examples")
    pages["examples/index.md"] = "\n".join(["# Examples", "", "| example | shows |", "| --- | --- |", *rows])
    return pages


def about(folder: Path) -> str:
    """Return the first sentence that an example's program says of itself."""
    programs = [folder / f"{folder.name}.py", *sorted(folder.glob("*.py"))]
    docstring = next((ast.get_docstring(ast.parse(file.read_text())) for file in programs if file.exists()), None) or ""
    return docstring.partition("\n")[0]


def files_of(title: str, place: Path) -> str:
    parts = [f"# {title}"]
    for file in sorted(place.iterdir()) if place.is_dir() else [place]:
        if file.name == "README.md":
            text = re.sub(r"^# .*\n", "", file.read_text())
            parts.insert(1, re.sub(r"\]\((\w+)\.(\w+)\)", r"](#\1\2)", text))  # To what is shown below.
        elif file.suffix in LANGUAGES:
            parts.append(f"## {file.name}\n\n````{LANGUAGES[file.suffix]}\n{file.read_text().strip()}\n````")
    return "\n\n".join(parts)
