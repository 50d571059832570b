"""Turns the XML of a world's file into elements: tolerant of Gazebo's habits, deaf to hostile files.

Gazebo's own parser accepts what XML forbids, and a tenth of its own worlds make use of that: `--` in comments, prefixes
that are bound to nothing, blanks before the declaration. So comments and the declaration are blanked out first (their
lines stay), and expat is run without namespaces.

A document type is refused: it serves no purpose in SDF, and is how a small file becomes gigabytes of entities, or asks
for other files. Size, depth and the number of elements are limited, the last over all files of a world, because files
can include each other.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.parsers import expat

from worldline.world.sdf.element import SdfElement, WorldFileError

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


class ElementBudget:
    """How many elements the files of a world may still have."""

    def __init__(self) -> None:
        self.left = ELEMENTS_MAX


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


def parse(content: bytes, owner: str, budget: ElementBudget) -> SdfElement:
    """Return the root element of an XML file."""
    text = _without_comments(_decoded(content, owner), owner)
    return _Builder(owner, budget).build(text)


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
        if end < 0:  # Whoever looked on for the end of each of a million openings would look for hours.
            line = text.count("\n", 0, opening.start()) + 1
            raise WorldFileError.found(owner, line, f"{opening[0]} begins here and isn't closed by {closing}")
        position = end + len(closing)
        passage = text[opening.start() : position]
        kept.append(passage if opening[0] == "<![CDATA[" else " " + "\n" * passage.count("\n"))
    kept.append(text[position:])
    return "".join(kept)


class _Builder:
    """Makes a tree of what expat reports."""

    def __init__(self, owner: str, budget: ElementBudget) -> None:
        self._owner = owner
        self._budget = budget
        self._open: list[SdfElement] = []
        self._texts: list[list[str]] = []
        self._root: SdfElement | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data
        self._parser.StartDoctypeDeclHandler = self._doctype

    def build(self, text: str) -> SdfElement:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code) or "it can't be read"
            raise WorldFileError.found(self._owner, error.lineno, f"the XML is broken: {reason}") from None
        assert self._root is not None, "expat refuses a document without an element"
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        self._budget.left -= 1
        if self._budget.left < 0:
            raise WorldFileError.found(self._owner, line, f"there are more than {ELEMENTS_MAX} elements")
        if len(self._open) >= DEPTH_MAX:
            raise WorldFileError.found(self._owner, line, f"elements are nested more than {DEPTH_MAX} deep")
        element = SdfElement(tag, attributes, line, self._owner)
        if self._open:
            self._open[-1].content.append(element)
        else:
            self._root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, tag: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def _data(self, text: str) -> None:
        self._texts[-1].append(text)

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal: bool) -> None:
        line = self._parser.CurrentLineNumber
        raise WorldFileError.found(
            self._owner, line, "a document type isn't allowed", "remove <!DOCTYPE …>: SDF needs none"
        )
