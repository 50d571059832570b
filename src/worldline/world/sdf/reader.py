"""Reads a world from an SDF file: the one that was named, and those that it includes.

What is wrong is a `WorldFileError` with file and line. What is right and not supported becomes a note of the
description, with its line: see `element` for how that is made sure of.

A file may come from a stranger, so what it includes has to be in the world's own folder, or in those that are named as
resource paths, wherever links lead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from worldline.model.errors import shortened, shown
from worldline.model.time import MS, format_time
from worldline.world.description import Level, LoadingNote, Performer, WorldDescription
from worldline.world.pose import UPRIGHT
from worldline.world.sdf.element import MODEL_FRAME, WORLD_FRAME, FrameScope, SdfElement, WorldFileError, local_pose
from worldline.world.sdf.models import outline, read_box, read_model
from worldline.world.sdf.plugins import note_plugin, plugin_name

# Turns the XML of a world's file into elements: tolerant of Gazebo's habits, deaf to hostile files.
#
# Gazebo's own parser accepts what XML forbids, and a tenth of its own worlds make use of that: `--` in comments,
# prefixes that are bound to nothing, blanks before the declaration. So comments and the declaration are blanked out
# first (their lines stay), and expat is run without namespaces.
#
# A document type is refused: it serves no purpose in SDF, and is how a small file becomes gigabytes of entities, or
# asks for other files. Size, depth and the number of elements are limited, the last over all files of a world, because
# files can include each other.

FILE_SIZE_MAX = 16 * 2**20  # Bytes. Gazebo's world of 3,000 shapes has two million.
DEPTH_MAX = 100
ELEMENTS_MAX = 500_000

_OPENING = re.compile(r"<!--|<!\[CDATA\[|<\?")
_CLOSING = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_DECLARED = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_ENCODINGS = {
    **dict.fromkeys(("utf-8", "utf8", "us-ascii", "ascii"), "utf-8"),
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1"), "latin-1"),
    "windows-1252": "cp1252",
}


def read_content(path: Path, owner: str) -> bytes:
    """Return a file's bytes, or say in one line why it can't be read."""
    try:
        with path.open("rb") as opened:
            content = opened.read(FILE_SIZE_MAX + 1)
    except FileNotFoundError:
        raise WorldFileError.found(owner, None, "there is no such file") from None
    except IsADirectoryError:
        raise WorldFileError.found(owner, None, "it is a directory", "name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorldFileError.found(owner, None, f"it can't be read: {reason}") from error
    if len(content) > FILE_SIZE_MAX:
        raise WorldFileError.found(
            owner, None, f"it is larger than {FILE_SIZE_MAX // 2**20} MiB, too large for a world"
        )
    return content


def parse(content: bytes, owner: str, numbers: Iterator[int], notes: list[LoadingNote]) -> SdfElement:
    """Return the root element of an XML file. `numbers` and `notes` are those of all files of a world."""
    root: list[SdfElement] = []
    opened: list[tuple[SdfElement, list[str]]] = []  # With the texts in each.
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(problem: str, advice: str | None = None) -> NoReturn:
        raise WorldFileError.found(owner, parser.CurrentLineNumber, problem, advice)

    def start(tag: str, attributes: dict[str, str]) -> None:
        if next(numbers) > ELEMENTS_MAX:
            refuse(f"there are more than {ELEMENTS_MAX} elements")
        if len(opened) >= DEPTH_MAX:
            refuse(f"elements are nested more than {DEPTH_MAX} deep")
        element = SdfElement(tag, attributes, parser.CurrentLineNumber, owner, notes)
        (opened[-1][0].content if opened else root).append(element)
        opened.append((element, []))

    def end(_: str) -> None:
        element, texts = opened.pop()
        element.text = "".join(texts)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: opened[-1][1].append(text)
    parser.StartDoctypeDeclHandler = lambda *_: refuse(
        "a document type isn't allowed", "remove <!DOCTYPE …>: SDF needs none"
    )
    try:
        parser.Parse(_without_comments(_decoded(content, owner), owner), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "it can't be read"
        raise WorldFileError.found(owner, error.lineno, f"the XML is broken: {reason}") from None
    return root[0]


def _decoded(content: bytes, owner: str) -> str:
    declared = _DECLARED.match(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif declared:
        word = declared[1].decode("ascii").lower()
        if word not in _ENCODINGS:
            raise WorldFileError.found(owner, 1, f"the encoding {word} isn't supported", "save it as UTF-8")
        encoding = _ENCODINGS[word]
    else:
        encoding = "utf-8"
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorldFileError.found(owner, line, f"it isn't {encoding.upper()} text", "save it as UTF-8") from None


def _without_comments(text: str, owner: str) -> str:
    """Blank out comments and processing instructions, which may stand and contain what XML forbids; keep the lines."""
    kept: list[str] = []
    position = 0
    while opening := _OPENING.search(text, position):
        kept.append(text[position : opening.start()])
        closing = _CLOSING[opening[0]]
        end = text.find(closing, opening.end())
        if end < 0:  # To look on for the end of each of a million openings would take hours.
            line = text.count("\n", 0, opening.start()) + 1
            raise WorldFileError.found(owner, line, f"{opening[0]} begins here and isn't closed by {closing}")
        position = end + len(closing)
        passage = text[opening.start() : position]
        kept.append(passage if opening[0] == "<![CDATA[" else " " + "\n" * passage.count("\n"))
    kept.append(text[position:])
    return "".join(kept)


_OVERRIDDEN = ("pose", "static")
_MERGED = ("link", "joint", "frame", "model", "include", "plugin")  # What of a model can be part of another.
_MERGED_MAX = 20
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
        self.notes: list[LoadingNote] = []
        self._places = [world.parent, *resources]
        self._allowed = [os.path.realpath(each) for each in self._places]
        self._numbers = count(1)  # Of elements.
        self._contents: dict[Path, bytes] = {}
        self._folders: dict[str, Path] = {}
        self._model_files: dict[Path, Path] = {}  # By the folder of the model.

    def open(self, path: Path) -> SdfElement:
        """Return the root element of an SDF file."""
        owner = shortened(str(path))
        if path not in self._contents:
            self._contents[path] = read_content(path, owner)
        self._folders[owner] = path.parent
        root = parse(self._contents[path], owner, self._numbers, self.notes)
        self.roots.append(root)
        if root.tag not in ("sdf", "gazebo"):
            raise root.error(f"this is <{root.shown_tag}>, not <sdf>")
        return root

    def models_in(self, element: SdfElement) -> list[SdfElement]:
        """Return the models of a world or model: those that it has, and those that it includes."""
        if element.tag == "model":
            self._merge_into(element)
        return [
            self._included(each) if each.tag == "include" else each for each in element.children("model", "include")
        ]

    def _merge_into(self, model: SdfElement, depth: int = 0) -> None:
        """Put the content of models that are merged into another in the place of what includes them."""
        content: list[SdfElement] = []
        for each in model.content:
            if each.tag == "include" and each.says("merge"):
                if depth > _MERGED_MAX:
                    raise each.error(
                        f"models are merged more than {_MERGED_MAX} deep", "does a file merge itself into its own?"
                    )
                merged = self._included(each)
                self._merge_into(merged, depth + 1)
                content += _as_part(merged, {part.attributes.get("name", "") for part in (*content, *merged.content)})
            else:
                content.append(each)
        model.content = content

    def _included(self, include: SdfElement) -> SdfElement:
        """Return a model from another file, with the name, pose and plugins that it is to have here."""
        uri = include.needed("uri")
        root = self.open(self._locate(uri))
        models = root.children("model")
        if len(models) != 1:
            raise uri.error(f"{root.owner} has {len(models)} models, and not the one to include")
        root.attribute("version")
        model = models[0]
        if (name := include.child("name")) is not None:
            model.attributes["name"] = name.word()
        if (frame := include.child("placement_frame")) is not None:
            model.attributes["placement_frame"] = frame.word()
        for tag in _OVERRIDDEN:
            if (given := include.child(tag)) is not None:
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
        files = parse(read_content(config, owner), owner, self._numbers, self.notes).children("sdf")
        return config.parent / max(files, key=_version_of).word() if files else None

    def _is_allowed(self, path: Path) -> bool:
        real = os.path.realpath(path)
        return any(os.path.commonpath((real, folder)) == folder for folder in self._allowed)


def _version_of(element: SdfElement) -> tuple[int, ...]:
    """Return the version that an element is of; one without is the lowest."""
    version = element.attribute("version")
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


def _as_part(model: SdfElement, taken: Container[str]) -> list[SdfElement]:
    """Take out of a model what can be part of another, and return it, with a frame in the place of the model's own."""
    name = f"_merged__{model.name()}{MODEL_FRAME}"
    while name in taken:
        name += "_"
    pose = _pose_in(model)
    pose.attributes.setdefault("relative_to", MODEL_FRAME)
    frame = SdfElement("frame", {"name": name}, model.line, model.owner, model.notes, content=[pose])
    parts = [each for each in model.content if each.tag in _MERGED]
    model.content = [each for each in model.content if each.tag not in (*_MERGED, "pose")]
    links = [each.attributes.get("name", "") for each in parts if each.tag == "link"]
    if held := model.attribute("canonical_link") or next(iter(links), ""):
        frame.attributes["attached_to"] = held
    for each in parts:
        _rename(each, MODEL_FRAME, name)
        is_placed = each.tag in ("link", "model", "include") or (
            each.tag == "frame" and not each.attributes.get("attached_to")
        )
        if is_placed:
            _pose_in(each).attributes.setdefault("relative_to", name)
        if each.tag == "frame":
            each.attributes.setdefault("attached_to", name)
    return [frame, *parts]


def _pose_in(element: SdfElement) -> SdfElement:
    """Return the element's <pose>, which it gets if it has none."""
    found = next((each for each in element.content if each.tag == "pose"), None)
    if found is None:
        found = SdfElement("pose", {}, element.line, element.owner, element.notes)
        element.content.append(found)
    return found


def _rename(element: SdfElement, old: str, new: str) -> None:
    """Call a frame otherwise wherever an element of a model names it."""
    for attribute in ("relative_to", "expressed_in", "attached_to"):
        if element.attributes.get(attribute, "").strip() == old:
            element.attributes[attribute] = new
    if element.tag in ("parent", "child") and element.text.strip() == old:
        element.text = new
    for each in element.content:
        if element.tag not in ("model", "include") or each.tag == "pose":  # The rest of a model has its own names.
            _rename(each, old, new)


# The world itself: its models, its physics, its levels.

_GRAVITY = (0.0, 0.0, -9.8)  # As SDF says.


def read_world(path: str | Path) -> WorldDescription:
    """Read a world from an SDF file, and check it. Models that it includes are also looked for as Gazebo does."""
    library = SdfLibrary(Path(path), resource_paths(os.environ))
    root = library.open(Path(path))
    with root.blamed():
        world = _read(root, library)
    notes = [*library.notes, *(note for each in library.roots for note in each.unread())]
    own = [replace(note, file="") if note.file == root.owner else note for note in notes]
    return replace(world, notes=tuple(own))


def _read(root: SdfElement, library: SdfLibrary) -> WorldDescription:
    version = root.attribute("version")
    if version in ("1.0", "1.2", "1.3", "1.4"):
        root.note(
            f"this is SDF {version}; the axes of its joints are read as in 1.5 and later, in the joints' own frames"
        )
    worlds = root.children("world")
    if not worlds:
        raise root.error("there is no <world> in this file")
    if len(worlds) > 1:
        raise worlds[1].error("there is a second <world>, and only one can be simulated")
    world = worlds[0]
    name = world.name()
    frames = FrameScope(world, WORLD_FRAME, [outline(each, library.models_in) for each in library.models_in(world)])
    frames.add_nested()
    frames.add_frames()
    frames.check()
    models = {}
    for each in frames.nested:
        with each.owner.blamed():
            model = read_model(each, frames.pose_of(each.owner.name(), each.owner))
        models[model.name] = model
    unsimulated = {each.attributes.get("name", "") for each in world.content if each.tag in ("actor", "light")}
    about: dict[tuple[str, int], SdfElement] = {}
    levels: list[Level] = []
    performers: list[Performer] = []
    for plugin in world.children("plugin"):
        if plugin_name(plugin) != LEVELS_PLUGIN:
            note_plugin(plugin)
            continue
        for element in plugin.children("performer"):
            about["performer", len(performers)] = element
            performers.append(_performer(element))
        for element in plugin.children("level"):
            about["level", len(levels)] = element
            levels.append(_level(element, unsimulated - models.keys()))
    step, factor = _physics(world)
    with world.blamed(about):
        return WorldDescription(
            name=name,
            gravity=world.vector_in("gravity", _GRAVITY),
            step=step,
            real_time_factor=factor,
            models=models,
            levels=tuple(levels),
            performers=tuple(performers),
        )


def _physics(world: SdfElement) -> tuple[int, float]:
    """Return the step in nanoseconds and the real-time factor. Of several <physics>, the default one or the first."""
    profiles = world.children("physics")
    if not profiles:
        return MS, 1.0
    chosen = ([each for each in profiles if each.says("default")] or profiles)[0]
    for each in profiles:
        if each is not chosen:
            each.discard()
            each.note("this <physics> isn't the one that is used")
    chosen.attribute("name")
    chosen.attribute("type")
    step, factor = chosen.child("max_step_size"), chosen.child("real_time_factor")
    nanoseconds = MS
    if step is not None:
        nanoseconds = step.nanoseconds()
        if nanoseconds == 0:
            raise step.error(f"a step of {shown(step.word())} s is too small", "the least is a nanosecond")
        if not step.is_whole_nanoseconds():
            step.note(f"a step of {shown(step.word())} s is rounded to {format_time(nanoseconds)}")
    if factor is not None and factor.number() < 0:
        raise factor.error(f"a real-time factor must be at least 0, not {shown(factor.word())}")
    return nanoseconds, 1.0 if factor is None else factor.number()


# Levels and performers, in Gazebo's plugin `gz::sim` of a world.

LEVELS_PLUGIN = "gz::sim"


def _performer(element: SdfElement) -> Performer:
    name = element.name()
    with element.blamed():
        return Performer(
            name=name,
            model=element.needed("ref", f"performer {shown(name)}").word(),
            size=read_box(element, f"performer {shown(name)}").size,
        )


def _level(element: SdfElement, unsimulated: Container[str]) -> Level:
    name = element.name()
    pose = element.child("pose")
    placed = local_pose(pose)
    if pose is not None and placed.quaternion != UPRIGHT:
        pose.note(f"level {shown(name)} is turned; its box lies along the axes all the same")
    entities = []
    for ref in element.children("ref"):
        if ref.word() in unsimulated:
            ref.note(f"level {shown(name)} names {shown(ref.word())}, which isn't simulated")
        else:
            entities.append(ref.word())
    with element.blamed():
        return Level(
            name=name,
            center=placed.position,
            size=read_box(element, f"level {shown(name)}").size,
            buffer=element.number_in("buffer", 0.0),
            entities=tuple(entities),
        )
