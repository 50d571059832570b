"""A TOML document that is read place by place, so that every mistake in it is reported at once.

A reader takes a `TomlPlace` and returns what stands there, or refuses it by raising `ConfigurationError`. A reader of
a table or a list notes the refusal of each of its places and goes on with the next; `Document.demand_no_mistakes`
raises them all as one error. What was refused is missing from what a table gives, so what is made of the rest is good
for further checks and nothing else until that call has returned.

Values come from the file, or from changes such as ``link.latency=5ms`` on the command line. Changes are put into the
document before it is read: they go through the same checks and are reported the same way, as coming from --set.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from worldline.model.errors import ConfigurationError, shortened, shown

# Finds the lines of a TOML file on which its keys stand, for messages: the parser keeps none of them.

Steps = tuple[str | int, ...]
_STATEMENT_LINES_MAX = 200  # Each further line of a statement is read with all before it.


def lines_of(text: str) -> dict[Steps, int]:
    """Return on which line each table and key of a valid document stands, by the way to it.

    The document is cut into statements: as many lines as the parser needs to understand them by themselves.
    """
    found: dict[Steps, int] = {}
    table: Steps = ()
    statement: list[str] = []
    counts: dict[Steps, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        statement.append(line)
        try:
            said = tomllib.loads("\n".join(statement))
        except (ValueError, RecursionError):
            if len(statement) > _STATEMENT_LINES_MAX:
                break
            continue
        first, is_header = number - len(statement) + 1, statement[0].lstrip().startswith("[")
        statement = []
        if is_header:
            table = _table(said, counts)
            found.setdefault(table, first)
        else:
            _note(found, table, said, first)
    return found


def _table(header: Any, counts: dict[Steps, int]) -> Steps:
    """Return the way to the table that a header begins; of an array of tables, to its last."""
    steps: Steps = ()
    while header:
        if isinstance(header, list):
            counts[steps] = counts.get(steps, 0) + 1
            return (*steps, counts[steps] - 1)
        ((key, header),) = header.items()
        steps = (*steps, key)
        if steps in counts and isinstance(header, dict):
            steps = (*steps, counts[steps] - 1)
    return steps


def _note(found: dict[Steps, int], steps: Steps, said: Any, line: int) -> None:
    for key, value in said.items() if isinstance(said, dict) else ():
        found.setdefault((*steps, key), line)
        _note(found, (*steps, key), value, line)


FILE_SIZE_MAX = 2**20  # Bytes; a thousand participants need a tenth of it.
TOP = "the top of the file, above the first [table]"

T = TypeVar("T")


@dataclass(frozen=True)
class TomlTable:
    """The keys that a table may have, and how each is read.

    Of each group in `needs` there must be at least one, of each group in `either` at most one. `renamed` are keys that
    people will try, and what each is called here.
    """

    title: str
    keys: Mapping[str, Callable[[TomlPlace], Any]]
    needs: tuple[tuple[str, ...], ...] = ()
    either: tuple[tuple[str, ...], ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


class Document:
    """What the file and the command line say, and the mistakes found in it so far.

    `tables` are all that such a document can have; they serve to tell where a misplaced key belongs. `options` have
    changes that were written in another way than with --set, by the key that they set: ``{"until": "--until"}``.
    """

    def __init__(
        self,
        file: Path,
        tables: Sequence[TomlTable] = (),
        changes: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.file = file
        self.tables = tuple(tables)
        self.refused: list[Steps] = []
        self._mistakes: dict[str, None] = {}  # In order, each once.
        self.warnings: list[str] = []  # What is legal, and hardly meant.
        self._options = options or {}
        self._changed: dict[Steps, str] = {}  # What --set put there, as it was written.
        self._text = _text(file)
        self._lines: dict[Steps, int] | None = None
        self.root = TomlPlace(self, (), _load(file, self._text, [table.title for table in tables]))
        for change in changes:
            try:
                self._change(change)
            except ConfigurationError as error:
                key = change.partition("=")[0].strip()
                shown_key = key if key.isprintable() and 0 < len(key) <= 100 else quoted(key)
                self._mistakes[f"--set: {shown_key}: {error}"] = None

    def note(self, steps: Steps, reason: str) -> None:
        """Note a mistake at a place."""
        self.refused.append(steps)
        self._mistakes[self._located(steps, reason)] = None

    def warn(self, steps: Steps, reason: str) -> None:
        """Note what is no mistake, and hardly meant."""
        self.warnings.append(self._located(steps, reason))

    def _located(self, steps: Steps, reason: str) -> str:
        if len(steps) == 1 and steps[0] in self._options:
            return f"{self._options[str(steps[0])]}: {reason}"
        if any(steps[: len(changed)] == changed for changed in self._changed):
            where = "--set"
        else:
            line = self._line(steps)
            where = str(self.file) if line is None else f"{self.file}: line {line}"
            if line is not None and any(changed[: len(steps)] == steps for changed in self._changed):
                where += ", with --set"  # It may be what was put inside.
        return ": ".join(part for part in (where, self._key(steps), reason) if part)

    def _line(self, steps: Steps) -> int | None:
        """Return the line of a place, or of the innermost table around it that has one; None for the whole file."""
        if self._lines is None:
            self._lines = lines_of(self._text)
        around = (steps[:length] for length in range(len(steps), 0, -1))
        return next((self._lines[each] for each in around if each in self._lines), None)

    def demand_no_mistakes(self) -> None:
        """Raise one error for all mistakes, if there are any."""
        if self._mistakes:
            raise _error(*self._mistakes)

    def written(self, steps: Steps) -> str | None:
        """Return the text that the command line gave for this place, if it did."""
        return self._changed.get(steps)

    def _key(self, steps: Steps) -> str:
        """Write the way to a place as a person would look for it: ``participants[2] "arm".subscribes.target``."""
        text, value = "", self.root.value
        for step in steps:
            if isinstance(step, str):
                value = value.get(step) if isinstance(value, dict) else None
                text += f"{'.' if text else ''}{_clipped(step)}"
            else:
                value = value[step]
                named = isinstance(value, dict) and isinstance(value.get("name"), str)
                text += f"[{step + 1}]" + (f" {quoted(value['name'])}" if named else "")
        return text

    def _change(self, change: str) -> None:
        """Put one ``key=value`` from the command line into the document."""
        match = _CHANGE.fullmatch(change)
        if match is None:
            raise ConfigurationError(
                f"{shown(change)} isn't a change", advice="write key=value, as in link.latency=5ms"
            )
        inside: Any = self.root.value
        steps: Steps = ()
        *way, last = _KEY_PART.finditer(match["key"])
        for part in way:
            step = _step(inside, part)
            steps = (*steps, step)
            if isinstance(inside, dict) and step not in inside:
                inside[step] = {}
                self._changed[steps] = ""
            inside = inside[step]
        step = _step(inside, last)
        steps, text = (*steps, step), match["value"].strip()
        inside[step] = _change_value(text)
        self._changed = {old: was for old, was in self._changed.items() if old[: len(steps)] != steps}
        self._changed[steps] = text


@dataclass(frozen=True, eq=False)
class TomlPlace:
    """A value in a document, and the way to it."""

    document: Document
    steps: Steps
    value: Any

    def at(self, step: str | int) -> TomlPlace:
        return TomlPlace(self.document, (*self.steps, step), self.value[step])

    def read(self, reader: Callable[[TomlPlace], T]) -> T | None:
        """Return what stands here, or note why that can't be read and return None."""
        try:
            return reader(self)
        except ConfigurationError as error:
            self.note(str(error))
            return None

    def note(self, reason: str) -> None:
        self.document.note(self.steps, reason)

    def text(self) -> str:
        """Read a text. On the command line everything can be one: there, 2 is also "2" if a text is wanted."""
        value, written = self.value, self.document.written(self.steps)
        if written is not None and not isinstance(value, str | list | dict):
            value = written
        if not isinstance(value, str):
            raise ConfigurationError(f"{said(value)} isn't text", advice='write text in quotes: "..."')
        if "\0" in value:
            raise ConfigurationError(f"{shown(value)} contains a NUL character")
        return value

    def items(self, of: str, example: str) -> list[TomlPlace]:
        """Read a list and return its places."""
        if self.document.written(self.steps) == "" and isinstance(self.value, dict):
            raise ConfigurationError(
                "the file has none, so nothing of them can be set", advice=f"write {example} there"
            )
        if not isinstance(self.value, list):
            raise ConfigurationError(f"{said(self.value)} isn't a list of {of}", advice=f"write {example}")
        return [self.at(place) for place in range(len(self.value))]

    def entries(self, example: str) -> Iterator[tuple[str, TomlPlace]]:
        """Read a table whose keys are free; return its keys and places."""
        if not isinstance(self.value, dict):
            raise ConfigurationError(f"{said(self.value)} isn't a table", advice=f"write {example}")
        return ((key, self.at(key)) for key in self.value)

    def table(self, table: TomlTable) -> dict[str, Any]:
        """Read a table by its keys and return what could be read."""
        found: dict[str, Any] = {}
        meant: list[str] = []
        for key, place in self.entries(table.title):
            if key in table.keys:
                try:
                    found[key] = table.keys[key](place)
                except ConfigurationError as error:
                    place.note(str(error))
            else:
                meant += get_close_matches(table.renamed.get(key, key)[:99], table.keys, 1, 0.7)
                place.note(_unknown(key, table, self.document.tables))
        for group in table.needs:
            # A misspelled key is one mistake, not two.
            if not any(key in self.value or key in meant for key in group):
                advice = f" (write {', '.join(group[:-1])} or {group[-1]})" if len(group) > 1 else ""
                self.document.note((*self.steps, group[0]), f"it is missing{advice}")
        for group in table.either:
            first, *more = [key for key in self.value if key in group] or [""]
            for key in more:
                self.at(key).note(f"there is {first} too (use one of them)")
        return found


def said(value: object) -> str:
    """Write a value into an error's text, in the words of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return value.isoformat() if isinstance(value, date | time) else shown(value)


def quoted(text: str) -> str:
    """Write a name in quotes, on one line, however it is spelled."""
    clipped = text if len(text) <= 400 else f"{text[:397]}..."
    return json.dumps(clipped, ensure_ascii=not clipped.isprintable())


def top_key_of(change: str) -> str | None:
    """Return the key at the top of the file that a change sets something of; None if it isn't a change."""
    match = _CHANGE.fullmatch(change)
    part = None if match is None else _KEY_PART.match(match["key"])
    return None if part is None else _unquoted(part["name"])


def nearest(name: str, known: Sequence[str], otherwise: str) -> str:
    """Return the advice for a name that isn't known: the one that was probably meant, or else all there are."""
    if close := get_close_matches(name[:99], known, 1, 0.7):
        return f"did you mean {quoted(close[0])}?"
    listed = ", ".join(_clipped(each) for each in known[:12])
    return f"{otherwise} {listed}{', ...' if len(known) > 12 else ''}"


_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_STEP = r"""[^\s."'\[\]=]+|"[^"]*"|'[^']*'"""
_CHANGE = re.compile(rf"\s*(?P<key>(?:{_STEP})(?:\[[0-9]{{1,6}}\]|\.(?:{_STEP}))*)\s*=(?P<value>.*)", re.DOTALL)
_KEY_PART = re.compile(rf"\[(?P<number>[0-9]+)\]|(?P<name>{_STEP})")
_POSITION = re.compile(r"(?P<reason>.*) \(at (?:line (?P<line>[0-9]+), column [0-9]+|end of document)\)", re.DOTALL)
_WAY, _WORD = re.compile(r"\('.*?',?\)"), re.compile(r"[^'(), ]+")  # Python's parser writes ('link', 'loss').
_UNQUOTED = re.compile(r"[^=]*=\s*(?!true\b|false\b)[0-9.]*[A-Za-zµ/].*")


def _clipped(key: str) -> str:
    return key if _BARE.fullmatch(key) else quoted(key)


def _unknown(key: str, table: TomlTable, tables: Sequence[TomlTable]) -> str:
    """Say that there is no such key, and where it belongs or what was meant."""
    if key in table.renamed:
        return f"there is no such key (write {table.renamed[key]})"
    homes = [other.title for other in tables if key in other.keys]
    if homes:
        return f"there is no such key here (it belongs to {' or '.join(homes)})"
    return f"there is no such key ({nearest(key, list(table.keys), 'the keys here are')})"


def _step(inside: Any, part: re.Match[str]) -> Any:
    """Return the key or the place in a list that one part of a change's key means."""
    number, name = part["number"], part["name"]
    if number is not None:
        if not isinstance(inside, list) or not 1 <= int(number) <= len(inside):
            raise ConfigurationError(f"there is no [{number}]", advice="places in a list are counted from 1")
        return int(number) - 1
    name = _unquoted(name)
    if isinstance(inside, dict):
        return name
    if not isinstance(inside, list):
        raise ConfigurationError(f"{said(inside)} isn't a table, so {quoted(name)} in it can't be set")
    tables = [table if isinstance(table, dict) else {} for table in inside]
    for place, table in enumerate(tables):
        if table.get("name") == name:
            return place
        if isinstance(table.get("names"), list) and name in table["names"]:
            raise ConfigurationError(
                f"{quoted(name)} shares a table with others",
                advice=f"give it a table of its own in the file, or set [{place + 1}] for all of them",
            )
    named = [table["name"] for table in tables if isinstance(table.get("name"), str)]
    advice = nearest(name, named, "there are:") if named else f"write one of {_places(tables)}"
    raise ConfigurationError(f"nothing is named {quoted(name)} there", advice=advice)


def _unquoted(name: str) -> str:
    return name[1:-1] if name[0] in "\"'" else name


def _places(tables: Sequence[Mapping[str, Any]]) -> str:
    """List the places of tables that have no names, each with the first thing that it says."""
    first = [next((f"{_clipped(key)} = {shown(value)}" for key, value in table.items()), "") for table in tables]
    listed = [f"[{place}] ({text})" if text else f"[{place}]" for place, text in enumerate(first, 1)]
    return ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "")


def _change_value(text: str) -> Any:
    """Read a change's value as TOML if it is that, and as plain text if not."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return read["value"] if len(read) == 1 else text


def _text(file: Path) -> str:
    """Return what the file contains, or say in one line why it can't be read."""
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_SIZE_MAX + 1)
    except FileNotFoundError:
        raise _error(f"{file}: there is no such file") from None
    except IsADirectoryError:
        raise _error(f"{file}: it is a directory (name a file in it)") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _error(f"{file}: it can't be read: {reason}") from error
    if len(content) > FILE_SIZE_MAX:
        raise _error(f"{file}: it is larger than {FILE_SIZE_MAX // 2**20} MiB, too large for a federation's file")
    try:
        return content.decode("utf-8-sig")  # Some editors put a mark at the beginning.
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _error(f"{file}: line {line}: it isn't UTF-8 text (save it as UTF-8)") from error


def _load(file: Path, text: str, titles: Sequence[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _error(f"{file}: its lists or tables are nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        if file.suffix == ".py":
            advice = f"`python {file}` runs it, `worldline check {file}` tries its schedules"
            raise _error(f"{file}: it is a Python file, and a federation's file is TOML ({advice})") from error
        raise _error(f"{file}: {_syntax(str(error), text, titles)}") from error
    except ValueError as error:
        raise _error(f"{file}: it contains a number with too many digits") from error


def _syntax(problem: str, text: str, titles: Sequence[str]) -> str:
    """Put the place of a syntax error first, with what stands there, and add a word on the commonest one."""
    match = _POSITION.fullmatch(problem)
    if match is None:
        return problem
    lines = text.rstrip().split("\n")
    number = min(int(match["line"]), len(lines)) if match["line"] else len(lines)
    line = lines[number - 1].strip()
    advice = ' (text and times are written in quotes, as in "5ms")' if _UNQUOTED.fullmatch(line) else ""
    if f"[{line}]" in titles:
        advice = f" (write [{line}]: there can be several)"
    elif line in titles:
        advice = " (write it like this everywhere, with two brackets)"
    reason = _WAY.sub(lambda way: ".".join(_WORD.findall(way[0])), match["reason"])
    return f"line {number}: {shortened(line)}: {reason[0].lower()}{reason[1:]}{advice}"


def _error(*mistakes: str) -> ConfigurationError:
    return ConfigurationError("\n".join(mistakes), mistakes=list(mistakes))
