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
from worldline.search.searching import SAVED_FORMAT, quietly, read_saved, write_saved
from worldline.search.shrinking import WrittenDraws
from worldline.targets.federation import is_table_file
from worldline.targets.finding import SEARCHED, found_federation
from worldline.targets.ready import RunOptions


class TrialRequest(Struct, frozen=True, kw_only=True):
    """What is to be tried, as it was written: plain data, which other processes understand, and which is saved.

    `draws` are those that a shrunk failure takes; with them, everything else is calm. `day` is the kind of day, if it
    isn't up to the search. `schedules` is how event loops choose.
    """

    target: str
    options: RunOptions = RunOptions()
    draws: dict[str, DrawnValue] | None = None
    day: str | None = None
    schedules: str | None = None


def made_trial(request: TrialRequest) -> FederationTrial:
    """Return the trial that is asked for, in this process."""
    options = structs.replace(request.options, drawn_faults=None)  # Those are drawn for each seed.
    drawn = request.options.drawn_faults
    kinds = {} if drawn is None else parse_fault_kinds(drawn)
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


class SavedTrial(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request in a file. The target and the `table` of draws are named as seen from the file's folder.

    So they are moved together.
    """

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
    draws: dict[str, DrawnValue] | None = None
    day: str | None = None
    schedules: str | None = None

    def options(self) -> RunOptions:
        """Return what it says of the run, apart from what names code."""
        return RunOptions(
            seed=self.seed,
            until=self.until,
            faults=self.faults,
            drawn_faults=self.drawn_faults,
            only_faults=self.only_faults,
        )


def save_trial(request: TrialRequest, trial: FederationTrial, path: Path) -> None:
    """Write down a trial of what was asked for, with its seed; or what shrinking has left of it."""
    folder = path.resolve().parent
    file, colon, name = request.target.partition(":")
    options = request.options
    if trial.faults is not None:
        options = structs.replace(options, faults=(), drawn_faults=None, only_faults=tuple(map(str, trial.faults)))
    is_written = isinstance(trial.draws, WrittenDraws)
    saved = SavedTrial(
        format=SAVED_FORMAT,
        target=os.path.relpath(Path(file).resolve(), folder) + colon + name,
        seed=trial.seed,
        until=options.until,
        settings=options.settings,
        properties=options.properties,
        faults=options.faults,
        drawn_faults=options.drawn_faults,
        only_faults=options.only_faults,
        table=_moved(options.draws, lambda table: os.path.relpath(Path(table).resolve(), folder)),
        draws=trial.written if is_written else request.draws,
        day=None if trial.day is None or is_written else str(trial.day),
        schedules=request.schedules,
    )
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
    saved = read_saved(path, SavedTrial, "a saved failure", advice="worldline search --save writes one")
    chosen = named.options
    tables = tuple(None if each is None or is_table_file(each) else each for each in (saved.table, chosen.draws))
    is_named = (
        bool(named.target)
        and (sorted(chosen.properties), sorted(chosen.settings)) == (sorted(saved.properties), sorted(saved.settings))
        and (saved.table is None) == (chosen.draws is None)
        and tables[0] == tables[1]
    )
    if not is_named:
        table = _moved(saved.table, lambda table: os.path.normpath(path.parent / table))
        says = TrialRequest(
            target=os.path.normpath(path.parent / saved.target),
            options=RunOptions(settings=saved.settings, properties=saved.properties, draws=table),
        )
        raise UsageError(
            f"{path} is data, and runs only what you name",
            advice=f"if you trust what it names: {command_of_saved(path, says, command)}",
        )
    options = structs.replace(
        saved.options(), settings=chosen.settings, properties=chosen.properties, draws=chosen.draws
    )
    return TrialRequest(
        target=named.target, options=options, draws=saved.draws, day=saved.day, schedules=saved.schedules
    )


def command_of_saved(path: Path, request: TrialRequest, command: str = "search") -> str:
    """Return the command that runs a saved failure, or shows it."""
    words = ["worldline", command, str(path), "--target", request.target]
    words += [word for name in request.options.properties for word in ("--property", name)]
    words += [word for setting in request.options.settings for word in ("--set", setting)]
    words += ["--draws", request.options.draws] if request.options.draws is not None else []
    return shlex.join(words)


def _moved(table: str | None, move: Callable[[str], str]) -> str | None:
    """Return a table of draws as it is named elsewhere: a function is found in the target's folder anyway."""
    return table if table is None or not is_table_file(table) else move(table)
