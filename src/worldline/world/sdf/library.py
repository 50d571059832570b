"""The files that a world is made of: the one that was named, and those that it includes."""

from __future__ import annotations

from pathlib import Path

from worldline.model.errors import shortened, shown
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.xml_document import ElementBudget, parse, read_content

_OVERRIDDEN = ("pose", "static")


class SdfLibrary:
    """Reads files relative to those that name them, and remembers all that was read."""

    def __init__(self) -> None:
        self.roots: list[SdfElement] = []
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
        """Return the file that a URI means: next to the one that names it, nowhere else."""
        word = uri.word()
        scheme, colon, rest = word.partition("://")
        if colon and scheme not in ("file", "model"):
            raise uri.error(
                f"{shown(word)} is an address on the web, and nothing is loaded from there",
                "save the model next to this file, and include it by its path",
            )
        path = self._folders[uri.owner] / (rest if colon else word)
        try:
            found = path / "model.sdf" if path.is_dir() else path
            if found.is_file():
                return found
        except (OSError, ValueError):  # Too long a name, or one that no file can have.
            pass
        raise uri.error(f"there is no file {shown(str(path))} to include")
