"""The files that a world is made of: the one that was named, and those that it includes.

A file may come from a stranger, so what it includes has to be in the world's own folder, or in those that somebody has
named as resource paths, wherever links lead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from worldline.model.errors import shortened, shown
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.xml_document import ElementBudget, parse, read_content

_OVERRIDDEN = ("pose", "static")
_PATHS = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH")
_LOCAL = ("file", "model", "package")


def resource_paths(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders in which Gazebo looks for models."""
    return [Path(each) for name in _PATHS for each in environment.get(name, "").split(os.pathsep) if each]


class SdfLibrary:
    """Reads a world's file and those that it includes, and remembers all that was read."""

    def __init__(self, world: Path, resources: Sequence[Path] = ()) -> None:
        self.roots: list[SdfElement] = []
        self._places = [world.parent, *resources]
        self._allowed = [os.path.realpath(each) for each in self._places]
        self._budget = ElementBudget()
        self._contents: dict[Path, bytes] = {}
        self._folders: dict[str, Path] = {}

    def open(self, path: Path) -> SdfElement:
        """Return the root element of an SDF file."""
        owner = shortened(str(path))
        if path not in self._contents:
            self._contents[path] = read_content(path, owner)
        self._folders[owner] = path.parent
        root = parse(self._contents[path], owner, self._budget)
        self.roots.append(root)
        if root.tag not in ("sdf", "gazebo"):
            raise root.error(f"this is <{root.shown_tag}>, not <sdf>")
        return root

    def models_in(self, element: SdfElement) -> list[SdfElement]:
        """Return the models of a world or model: those that it has, and those that it includes."""
        return [
            self._included(each) if each.tag == "include" else each for each in element.children("model", "include")
        ]

    def _included(self, include: SdfElement) -> SdfElement:
        """Return a model from another file, with the name, pose and plugins that it is to have here."""
        uri = include.needed("uri")
        root = self.open(self._locate(uri))
        models = root.children("model")
        if len(models) != 1:
            raise uri.error(f"{root.owner} has {len(models)} models, and not the one to include")
        root.attribute("version")
        model = models[0]
        name = include.child("name")
        if name is not None:
            model.attributes["name"] = name.word()
        for tag in _OVERRIDDEN:
            given = include.child(tag)
            if given is not None:
                model.content = [given, *(each for each in model.content if each.tag != tag)]
        model.content += include.children("plugin")
        return model

    def _locate(self, uri: SdfElement) -> Path:
        """Return the file that a URI means: next to the one that names it, or the first among the resources."""
        word = uri.word()
        scheme, colon, rest = word.partition("://")
        if colon and scheme not in _LOCAL:
            raise uri.error(
                f"{shown(word)} is an address on the web, and nothing is loaded from there",
                "save the model next to this file, and include it by its path",
            )
        named = rest if colon else word
        outside: Path | None = None
        for place in (self._folders[uri.owner], *self._places):
            path = place / named
            try:
                for found in (path, path / "model.sdf"):
                    if not self._is_allowed(found):  # Whether there is such a file isn't told, either.
                        outside = outside or found
                    elif found.is_file():
                        return found
            except (OSError, ValueError):  # Too long a name, or one that no file can have.
                continue
        if outside is not None:
            real = Path(os.path.realpath(outside))
            raise uri.error(
                f"{shown(word)} is outside of the world's folder and of the resource paths",
                f"to allow its folder, add it to {_PATHS[0]}: {shown(str(real.parent if real.suffix else real))}",
            )
        raise uri.error(
            f"there is no file {shown(str(self._folders[uri.owner] / named))} to include",
            f"{_PATHS[0]} may name folders of models, {os.pathsep} between them",
        )

    def _is_allowed(self, path: Path) -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, folder)) == folder for folder in self._allowed)
