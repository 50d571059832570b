"""The design of a sweep: which combinations of parameters are run.

A parameter has levels, ``doctors=2,3,4``, or a range, ``rate=0.5..2``. All combinations of levels are run, unless a
design says otherwise: ``latin:40`` and ``random:40`` take 40 points, in which a parameter's values are spread over its
levels or its range, evenly in every single parameter (a Latin hypercube), or drawn independently of each other. A file,
``FILE.csv``, has a point in each line. What is drawn depends on the first seed and the parameter's name alone.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.experiments.table import Cell
from worldline.files.loading import pairs
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError, shown
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import format_time

RUNS_MAX = 1_000_000
"""How many runs a sweep may have."""

_GRID = "grid"
_OPENING, _CLOSING = "([{", ")]}"
_FORM = "write latin:40, random:40 or FILE.csv"


class Design(Struct, frozen=True):
    """The parameters' names, and the points: their values as they are written, in the order of the names."""

    parameters: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]

    def settings(self, point: int) -> tuple[str, ...]:
        """Return a point as `--set` takes it."""
        return tuple(f"{name}={value}" for name, value in zip(self.parameters, self.points[point], strict=True))

    def cells(self, point: int) -> tuple[Cell, ...]:
        """Return a point as its row has it: numbers are numbers."""
        return tuple(map(as_cell, self.points[point]))


def made_design(settings: Sequence[str], kind: str = _GRID, seed: int = 0, seeds: int = 1) -> Design:
    """Make the design of settings such as ``doctors=2,3,4``, for so many seeds at each point."""
    given = _levels(settings)
    if kind == _GRID:
        _check_count(prod(map(len, given.values())) * seeds)
        for name, levels in given.items():
            if len(levels) == 1 and _ends(levels[0]):
                raise UsageError(
                    f"--set {name}={levels[0]} is a range, which has no levels to combine",
                    advice=f"list them: {name}=1,2,3; or draw some: --design latin:40",
                )
        return Design(tuple(given), tuple(product(*given.values())))
    word, colon, number = kind.partition(":")
    if colon and word in ("latin", "random"):
        return _drawn(given, word, _number(kind, number), seed, seeds)
    if kind.endswith(".csv"):
        return _from_file(Path(kind), given, seeds)
    raise UsageError(f"there is no design {shown(kind)}", advice=_FORM)


def as_cell(text: str) -> Cell:
    """Return a value as a number, if it is one. A table has only finite ones: others stay words."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if isfinite(number) else text
    return text


def as_settings(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return parameters as `--set` takes them; each has one value, or a list of them."""
    found = []
    for name, values in given.items():
        several = values if isinstance(values, list | tuple | range) else [values]
        if not several:
            raise UsageError(f"{name} has no values")
        found.append(f"{name}={','.join(_as_text(each) for each in several)}")
    return tuple(found)


def _as_text(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def _levels(settings: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for setting in settings:
        ((name, text),) = pairs([setting]).items()
        if name in found:
            raise UsageError(f"--set {name} is given twice", advice=f"list its values: --set {name}=1,2,3")
        found[name] = split_levels(text)
        if "" in found[name]:
            raise UsageError(f"--set {setting} has an empty value", advice=f"write --set {name}=1,2,3")
        twice = [each for each in found[name] if found[name].count(each) > 1]
        if twice:
            raise UsageError(f"--set {setting} has {twice[0]} twice", advice="repeat runs with --seeds")
    return found


def split_levels(text: str) -> list[str]:
    """Split a text at its commas, but for those in brackets: ``uniform(1ms, 5ms)`` is one value."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _check_count(runs: int) -> None:
    if runs > RUNS_MAX:
        raise UsageError(
            f"that makes {runs:,} runs, and a sweep has at most {RUNS_MAX:,}",
            advice="take fewer values or seeds, or draw some points: --design latin:1000",
        )


def _number(kind: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise UsageError(f"--design {kind} has no number of points", advice=_FORM)
    return int(text)


# -- Drawn points


def _ends(text: str) -> tuple[str, str] | None:
    low, dots, high = text.partition("..")
    return (low.strip(), high.strip()) if dots and low.strip() and high.strip() else None


def _drawn(given: Mapping[str, list[str]], word: str, count: int, seed: int, seeds: int) -> Design:
    if not given:
        raise UsageError("a design needs parameters", advice="--set rate=0.5..2")
    _check_count(count * seeds)
    columns = []
    for name, levels in given.items():
        stream = Stream(seed, "design", name)
        places = list(range(count))
        stream.shuffle(places)
        shares = [(place + stream.random()) / count if word == "latin" else stream.random() for place in places]
        columns.append(_spread(name, levels, shares))
    return Design(tuple(given), tuple(zip(*columns, strict=True)))


def _spread(name: str, levels: Sequence[str], shares: Sequence[float]) -> list[str]:
    """Return the values at these shares of a range, or of a list of levels."""
    ends = _ends(levels[0]) if len(levels) == 1 else None
    if ends is None:
        return [levels[int(share * len(levels))] for share in shares]
    low, high = (_as_number(name, levels[0], end) for end in ends)
    is_time = isinstance(as_cell(ends[0]), str)
    if not low < high:
        raise UsageError(f"--set {name}={levels[0]} is no range", advice="its first number is the smaller one")
    if isinstance(low, int) and isinstance(high, int) and not is_time:
        return [str(low + int(share * (high - low + 1))) for share in shares]
    values = [low + share * (high - low) for share in shares]
    return [format_time(round(value)) if is_time else repr(value) for value in values]


def _as_number(name: str, text: str, end: str) -> int | float:
    cell = as_cell(end)
    if not isinstance(cell, str) and cell is not None:
        return cell
    try:
        return as_time(end)
    except WorldlineError as error:
        raise UsageError(
            f"--set {name}={text} is no range of numbers or times", advice="list its values: a,b,c"
        ) from error


# -- A file of points


def _from_file(file: Path, given: Mapping[str, list[str]], seeds: int) -> Design:
    """Read a point from each line; parameters that are given besides have one value each."""
    for name, levels in given.items():
        if len(levels) > 1:
            raise UsageError(f"--set {name} has several values, and {file} has the points", advice="put it in there")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if any(map(str.strip, row))]
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} can't be read: {error}") from error
    if len(rows) < 2:
        raise ConfigurationError(
            f"{file} has no points", advice="its first line names the parameters, each other is one"
        )
    names = [name.strip() for name in rows[0][1]]
    if "" in names or len({*names}) < len(names) or {*names} & {*given}:
        raise ConfigurationError(f"{file}: its first line doesn't name each parameter once", advice="doctors,arrival")
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise ConfigurationError(f"{file}: line {number} has {len(row)} values for {len(names)} parameters")
    _check_count((len(rows) - 1) * seeds)
    fixed = tuple(levels[0] for levels in given.values())
    points = tuple((*(cell.strip() for cell in row), *fixed) for _, row in rows[1:])
    return Design((*names, *given), points)
