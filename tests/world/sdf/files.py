"""Small SDF files for tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from worldline.world.description import WorldDescription
from worldline.world.sdf import WorldFileError, read_world

BOX = "<geometry><box><size>1 1 1</size></box></geometry>"
LINK = f'<link name="body"><collision name="c">{BOX}</collision></link>'


def wrapped(body: str, start: str = "") -> str:
    """Return a world that says this; the body begins on line 3."""
    return f'{start}<sdf version="1.11">\n<world name="w">\n{body}\n</world></sdf>'


def model(name: str, body: str = LINK) -> str:
    return f'<model name="{name}">{body}</model>'


def stage(body: str) -> str:
    return f'<plugin name="gz::sim" filename="dummy">{body}</plugin>'


class Files:
    """Writes files into a folder and reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "world.sdf"

    def write(self, content: str | bytes, name: str = "world.sdf") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, content: str | bytes) -> WorldDescription:
        return read_world(self.write(content))

    def world(self, body: str) -> WorldDescription:
        return self.read(wrapped(body))

    def notes(self, body: str) -> list[str]:
        return [str(note) for note in self.world(body).notes]

    def refused(self, content: str | bytes, line: int | None, text: str) -> WorldFileError:
        """Make sure that a file is refused for this reason on this line."""
        self.write(content)
        where = f"{self.path}: " if line is None else f"{self.path}: line {line}: "
        with pytest.raises(WorldFileError, match=f"^{re.escape(where)}.*{text}") as caught:
            read_world(self.path)
        assert caught.value.facts["line"] == line
        error: Any = caught.value
        assert isinstance(error, WorldFileError)
        return error
