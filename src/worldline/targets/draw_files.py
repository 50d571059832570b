"""Reads the table of draws that somebody gives to a command: a file, or a function that replaces draws."""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from worldline.model.draw_rows import DrawInputs, DrawRow, functions_in, read_draws
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError, shown

_COLUMNS = ["name", "value"]
_FORM = "give FILE.toml, FILE.json, FILE.csv or module:function"


def read_draws_given(text: str, folder: Path) -> DrawInputs:
    """Read what `--draws` says. The modules of functions are looked for in this folder first, as entries are."""
    file = Path(text)
    read = _READERS.get(file.suffix)
    if read is None:
        if ":" not in text:
            raise UsageError(f"--draws {text}: that is neither a table nor a function", advice=_FORM)
        return _with_functions([DrawRow("*", function=text)], folder)
    try:
        given = read(file)
        return _with_functions(read_draws(given).rows, folder)
    except OSError as error:
        raise UsageError(f"{text} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"{text} can't be read: {error}") from error
    except WorldlineError as error:
        raise UsageError(f"{text}: {error.problem}", advice=error.advice) from error


def is_table_file(text: str) -> bool:
    """Whether what `--draws` says is a file, and not a function."""
    return Path(text).suffix in _READERS


def _with_functions(rows: Sequence[DrawRow], folder: Path) -> DrawInputs:
    """Return rows along with the functions that they name, which are looked for in this folder first."""
    given = DrawInputs(tuple(rows))
    if not functions_in(rows):
        return given
    from worldline.federation.draw_functions import with_functions  # Here, since few tables have any.

    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    return with_functions(given)


def _from_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _from_json(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ConfigurationError(f"it holds {shown(found)}", advice='write {"latency/image": "5ms"}')
    return found


def _from_csv(file: Path) -> dict[str, Any]:
    """Read two columns. A value is taken as JSON would, and as text if it isn't any: 5ms."""
    found: dict[str, Any] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        if [title.strip() for title in next(reader, [])] != _COLUMNS:
            raise ConfigurationError("its first line isn't name,value", advice="it says what the columns are")
        for row in reader:
            if not row:
                continue
            if len(row) != len(_COLUMNS):
                raise ConfigurationError(f"line {reader.line_num} has {len(row)} columns", advice="write name,value")
            name, value = (cell.strip() for cell in row)
            if name in found:
                raise ConfigurationError(f"line {reader.line_num}: draw {name} is there twice")
            try:
                found[name] = json.loads(value)
            except ValueError:
                found[name] = value
    return found


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {".toml": _from_toml, ".json": _from_json, ".csv": _from_csv}
