"""Failures as files: a federation's trial that is written down whole, to be run again elsewhere."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import Struct, json

from worldline.model.errors import ConfigurationError, UsageError
from worldline.saving.destination import save
from worldline.targets.draw_files import is_table_file
from worldline.targets.federation_trial import TrialRequest

FORMAT = 1


class _SavedTrial(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The target and the table of draws are named as seen from the file's folder: they are moved together."""

    format: int
    target: str
    seed: int
    until: str | None = None
    settings: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    drawn_faults: str | None = None
    only_faults: tuple[str, ...] | None = None
    table: str | None = None
    draws: dict[str, bool | int | float] | None = None
    day: str | None = None


def save_trial(request: TrialRequest, path: Path) -> None:
    """Write down what is to be tried, with its seed."""
    assert request.seed is not None
    folder = path.resolve().parent
    file, colon, name = request.target.partition(":")
    saved = _SavedTrial(
        format=FORMAT,
        target=os.path.relpath(Path(file).resolve(), folder) + colon + name,
        seed=request.seed,
        until=request.until,
        settings=request.settings,
        properties=request.properties,
        faults=request.faults,
        drawn_faults=request.drawn_faults,
        only_faults=request.only_faults,
        table=_moved(request.table, lambda table: os.path.relpath(Path(table).resolve(), folder)),
        draws=request.draws,
        day=request.day,
    )
    save(path, json.format(json.encode(saved), indent=1) + b"\n")


def load_trial_request(path: Path, named: TrialRequest) -> TrialRequest:
    """Read what was written down; what it runs is what is `named` by whoever wants it run.

    Such a file is data, and may come from a stranger. So its target, properties, settings and table of draws, all of
    which name code, count only if the user names them, too.
    """
    try:
        saved = json.decode(path.read_bytes(), type=_SavedTrial)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} isn't a saved failure: {error}", advice="worldline search --save writes one"
        ) from error
    if saved.format != FORMAT:
        raise ConfigurationError(f"{path} has the format {saved.format}", advice=f"this version reads {FORMAT}")
    tables = tuple(None if each is None or is_table_file(each) else each for each in (saved.table, named.table))
    is_named = (
        bool(named.target)
        and (sorted(named.properties), sorted(named.settings)) == (sorted(saved.properties), sorted(saved.settings))
        and (saved.table is None) == (named.table is None)
        and tables[0] == tables[1]
    )
    if not is_named:
        says = TrialRequest(
            target=os.path.normpath(path.parent / saved.target),
            settings=saved.settings,
            properties=saved.properties,
            table=_moved(saved.table, lambda table: os.path.normpath(path.parent / table)),
        )
        raise UsageError(
            f"{path} is data, and runs only what you name",
            advice=f"if you trust what it names: {command_of_saved(path, says)}",
        )
    return replace(
        named,
        seed=saved.seed,
        until=saved.until,
        faults=saved.faults,
        drawn_faults=saved.drawn_faults,
        only_faults=saved.only_faults,
        draws=saved.draws,
        day=saved.day,
    )


def command_of_saved(path: Path, request: TrialRequest) -> str:
    """Return the command that runs a saved failure."""
    words = ["worldline", "search", str(path), "--target", request.target]
    words += [word for name in request.properties for word in ("--property", name)]
    words += [word for setting in request.settings for word in ("--set", setting)]
    words += ["--draws", request.table] if request.table is not None else []
    return shlex.join(words)


def _moved(table: str | None, move: Callable[[str], str]) -> str | None:
    """Return a table of draws as it is named elsewhere: a function is found in the target's folder anyway."""
    return table if table is None or not is_table_file(table) else move(table)
