"""The files that a world is made of: the one that was named, and those that it includes.

A file may come from a stranger, so what it includes has to be in the world's own folder, or in those that somebody has
named as resource paths, wherever links lead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from worldline.model.errors import shortened, shown
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.xml_document import ElementBudget, parse, read_content

_OVERRIDDEN = ("pose", "static")
_PATHS = ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH")
_LOCAL = ("file", "model", "package")
_CONFIG, _USUAL = "model.config", "model.sdf"
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}")


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
        self._model_files: dict[Path, Path] = {}  # By the folder of the model.

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
        lacking: tuple[Path, Path] | None = None
        outside: Path | None = None
        for place in (self._folders[uri.owner], *self._places):
            path = place / named
            try:
                is_folder = self._is_allowed(path) and path.is_dir()
                file = self._model_file(path) if is_folder else path
                if not self._is_allowed(file):  # Whether there is such a file isn't told, either.
                    outside = outside or file
                elif file.is_file():
                    return file
                elif is_folder:
                    lacking = lacking or (path, file)
            except (OSError, ValueError):  # Too long a name, or one that no file can have.
                continue
        if lacking is not None:
            folder, file = lacking
            what = (
                f"neither a {_USUAL} nor a {_CONFIG} that names a file"
                if file == folder / _USUAL
                else f"a {_CONFIG} that names {shown(str(file))}, where no file is"
            )
            raise uri.error(f"the folder {shown(str(folder))} has {what}")
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

    def _model_file(self, folder: Path) -> Path:
        """Return the file of a model's folder: the one of the highest version in its model.config, as in Gazebo."""
        if folder not in self._model_files:
            self._model_files[folder] = self._configured(folder / _CONFIG) or folder / _USUAL
        return self._model_files[folder]

    def _configured(self, config: Path) -> Path | None:
        """Return the file that a model.config names, or the config itself if it is one that must not be read."""
        if not self._is_allowed(config):
            return config
        if not config.is_file():
            return None
        owner = shortened(str(config))
        files = parse(read_content(config, owner), owner, self._budget).children("sdf")
        return config.parent / max(files, key=_version_of).word() if files else None

    def _is_allowed(self, path: Path) -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, folder)) == folder for folder in self._allowed)


def _version_of(element: SdfElement) -> tuple[int, ...]:
    """Return the version that an element is of; one without is the lowest."""
    version = (element.attribute("version") or "").strip()
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()
