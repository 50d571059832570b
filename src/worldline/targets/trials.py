"""Trials of federations: named for the processes of a search, and written down whole to be run again elsewhere."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json, structs

from worldline.federation.inprocess.trial import FederationTrial
from worldline.federation.participant.program import Federation
from worldline.model.draws.distributions import DrawnValue
from worldline.model.errors import UsageError
from worldline.model.faults import KINDS, parse_fault_kinds
from worldline.search.day import as_day
from worldline.search.schedules import as_schedules
from worldline.search.searching import quietly, read_saved, write_saved
from worldline.search.shrinking import WrittenDraws
from worldline.targets.federation import is_table_file
from worldline.targets.finding import SEARCHED, found_federation
from worldline.targets.ready import RunOptions


class TrialRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be tried, as it was written: plain data, which other processes understand, and which is saved.

    Properties are ``module:name``, as seen from the target's folder, besides those that the target itself names.
    `faults` come in addition to the target's own, and `drawn_faults` are kinds such as ``crash=1,hang=2``; or
    `only_faults` are all there are. `table` replaces draws, as `--draws` names it. `draws` are those that a shrunk
    failure takes; with them, everything else is calm. `day` is the kind of day, if it isn't up to the search.
    `schedules` is how event loops choose.
    """

    target: str
    seed: int | None = None
    until: str | None = None
    settings: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    drawn_faults: str | None = None
    only_faults: tuple[str, ...] | None = None
    table: str | None = None
    draws: dict[str, DrawnValue] | None = None
    day: str | None = None
    schedules: str | None = None


def made_trial(request: TrialRequest) -> FederationTrial:
    """Return the trial that is asked for, in this process."""
    options = RunOptions(
        seed=request.seed,
        until=request.until,
        settings=request.settings,
        faults=request.faults,
        only_faults=request.only_faults,
        draws=request.table,
        properties=request.properties,
    )
    kinds = {} if request.drawn_faults is None else parse_fault_kinds(request.drawn_faults)
    with quietly():
        found, ready = found_federation(request.target, options, SEARCHED)
        first = found if isinstance(found, Federation) else found()
        properties = ready.properties()
    trial = FederationTrial(
        make=(lambda: found) if isinstance(found, Federation) else found,
        properties=properties,
        seed=first.seed,
        kinds=kinds,
        table=ready.draws,
        draws=None if request.draws is None else WrittenDraws(request.draws),
        day=None if request.day is None else as_day(request.day, KINDS),
        schedules=None if request.schedules is None else as_schedules(request.schedules),
    )
    return trial.with_choices()


class _SavedRequest(TrialRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target and the table of draws are named as seen from the file's folder: they are moved together."""

    format: int
    seed: int


def save_trial(request: TrialRequest, trial: FederationTrial, path: Path) -> None:
    """Write down a trial of what was asked for, with its seed; or what shrinking has left of it."""
    folder = path.resolve().parent
    file, colon, name = request.target.partition(":")
    saved = structs.replace(
        request,
        target=os.path.relpath(Path(file).resolve(), folder) + colon + name,
        table=_moved(request.table, lambda table: os.path.relpath(Path(table).resolve(), folder)),
        seed=trial.seed,
        day=None if trial.day is None else str(trial.day),
    )
    if trial.faults is not None:
        left = tuple(map(str, trial.faults))
        saved = structs.replace(saved, faults=(), drawn_faults=None, only_faults=left)
    if isinstance(trial.draws, WrittenDraws):
        saved = structs.replace(saved, draws=trial.draws.written, day=None)
    write_saved(path, saved)


def is_saved_trial(path: Path) -> bool:
    """Whether a file is a saved failure of a federation, as far as it can be read; of nodes it names no target."""
    try:
        return "target" in json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, DecodeError, UnicodeDecodeError, RecursionError):
        return True  # It is read again, and refused.


def load_trial_request(path: Path, named: TrialRequest, command: str = "search") -> TrialRequest:
    """Read what was written down; what it runs is what the user has `named`, for a command.

    Such a file is data, and may come from a stranger. So its target, properties, settings and table of draws, all of
    which name code, count only if the user names them, too.
    """
    saved = read_saved(path, _SavedRequest, "a saved failure", advice="worldline search --save writes one")
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
            advice=f"if you trust what it names: {command_of_saved(path, says, command)}",
        )
    return structs.replace(
        named,
        seed=saved.seed,
        until=saved.until,
        faults=saved.faults,
        drawn_faults=saved.drawn_faults,
        only_faults=saved.only_faults,
        draws=saved.draws,
        day=saved.day,
        schedules=saved.schedules,
    )


def command_of_saved(path: Path, request: TrialRequest, command: str = "search") -> str:
    """Return the command that runs a saved failure, or shows it."""
    words = ["worldline", command, str(path), "--target", request.target]
    words += [word for name in request.properties for word in ("--property", name)]
    words += [word for setting in request.settings for word in ("--set", setting)]
    words += ["--draws", request.table] if request.table is not None else []
    return shlex.join(words)


def _moved(table: str | None, move: Callable[[str], str]) -> str | None:
    """Return a table of draws as it is named elsewhere: a function is found in the target's folder anyway."""
    return table if table is None or not is_table_file(table) else move(table)
