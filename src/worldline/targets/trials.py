"""Trials of federations: named for the processes of a search, and written down whole to be run again elsewhere."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path

import msgspec
from msgspec import Struct, json

from worldline.federation.inprocess.trial import FederationTrial
from worldline.federation.participant.program import Federation
from worldline.files.saving import save
from worldline.launch.file.startable import load_object
from worldline.model.draws.distributions import DrawnValue
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.faults.drawn import KINDS, parse_fault_kinds
from worldline.search.day import as_day
from worldline.search.properties import AT_END, Property
from worldline.search.searching import quietly
from worldline.search.shrinking import WrittenDraws
from worldline.targets.federation import is_table_file
from worldline.targets.finding import SEARCHED, found_federation
from worldline.targets.ready import RunOptions

# Trials of federations by the names of their files and properties, as a search hands them to its processes.


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """What is to be tried, as it was written: plain data, which other processes understand.

    Properties are ``module:name``, as seen from the target's folder. `draws` are those that a shrunk failure takes;
    with them, everything else is calm. `day` is the kind of day, if it isn't up to the search.
    """

    target: str
    options: RunOptions = field(default_factory=RunOptions)
    properties: tuple[str, ...] = ()
    draws: dict[str, DrawnValue] | None = None
    day: str | None = None

    @property
    def directory(self) -> Path:
        """Where modules are looked for: the target's folder."""
        return Path(self.target.partition(":")[0]).resolve().parent


def made_trial(request: TrialRequest) -> FederationTrial:
    """Return the trial that is asked for, in this process."""
    drawn = request.options.drawn_faults  # By each trial, from its own seed.
    kinds = {} if drawn is None else parse_fault_kinds(drawn)
    options = msgspec.structs.replace(request.options, drawn_faults=None)
    with quietly():
        found, table = found_federation(request.target, options, SEARCHED)
        first = found if isinstance(found, Federation) else found()
        properties = tuple(load_property(name, request.directory) for name in request.properties)
    return FederationTrial(
        make=(lambda: found) if isinstance(found, Federation) else found,
        properties=properties,
        seed=first.seed,
        kinds=kinds,
        table=table,
        draws=None if request.draws is None else WrittenDraws(request.draws),
        day=None if request.day is None else as_day(request.day, KINDS),
    )


def load_property(name: str, directory: Path) -> Property:
    """Import a property: one that is decorated, or a function of a story that has to hold at the end."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigurationError(
            f"{shown(name)} doesn't name a property", advice="write module:function, as for an entry"
        )
    found = load_object(name, directory)
    check = found.check if isinstance(found, Property) else found
    if not callable(check):
        raise ConfigurationError(
            f"{name} is {shown(found)}", advice='a property is a function of a story: @always("..."), @at_end("...")'
        )
    _check_arguments(name, check)
    if isinstance(found, Property):
        return found
    said = (getattr(found, "__doc__", None) or attribute.replace("_", " ")).strip().partition("\n")[0].rstrip(".")
    return Property(AT_END, said, found)


def _check_arguments(name: str, check: Callable[..., object]) -> None:
    """Refuse what can't be called with a story: a function of something else, or a class whose objects are."""
    if not isinstance(check, type):
        _check_call(name, check, (None,), "with a story")
        return
    _check_call(name, check, (), "without arguments")
    call = next((vars(base)["__call__"] for base in check.__mro__ if "__call__" in vars(base)), None)
    if call is None:
        raise ConfigurationError(f"{name} is a class whose objects can't be called", advice="write its __call__")
    _check_call(name, call, (None, None), "with a story")


def _check_call(name: str, function: Callable[..., object], given: tuple[None, ...], how: str) -> None:
    try:
        signature(function).bind(*given)
    except TypeError as error:
        raise ConfigurationError(
            f"{name} can't be called {how}: {error}", advice="a property takes one argument, the story"
        ) from None
    except ValueError:  # What some built-in functions take isn't known.
        return


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
    options = request.options
    assert options.seed is not None
    folder = path.resolve().parent
    file, colon, name = request.target.partition(":")
    saved = _SavedTrial(
        format=FORMAT,
        target=os.path.relpath(Path(file).resolve(), folder) + colon + name,
        seed=options.seed,
        until=options.until,
        settings=options.settings,
        properties=request.properties,
        faults=options.faults,
        drawn_faults=options.drawn_faults,
        only_faults=options.only_faults,
        table=_moved(options.draws, lambda table: os.path.relpath(Path(table).resolve(), folder)),
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
    given = named.options
    tables = tuple(None if each is None or is_table_file(each) else each for each in (saved.table, given.draws))
    is_named = (
        bool(named.target)
        and (sorted(named.properties), sorted(given.settings)) == (sorted(saved.properties), sorted(saved.settings))
        and (saved.table is None) == (given.draws is None)
        and tables[0] == tables[1]
    )
    if not is_named:
        says = TrialRequest(
            target=os.path.normpath(path.parent / saved.target),
            options=RunOptions(
                settings=saved.settings,
                draws=_moved(saved.table, lambda table: os.path.normpath(path.parent / table)),
            ),
            properties=saved.properties,
        )
        raise UsageError(
            f"{path} is data, and runs only what you name",
            advice=f"if you trust what it names: {command_of_saved(path, says)}",
        )
    options = msgspec.structs.replace(
        given,
        seed=saved.seed,
        until=saved.until,
        faults=saved.faults,
        drawn_faults=saved.drawn_faults,
        only_faults=saved.only_faults,
    )
    return replace(named, options=options, draws=saved.draws, day=saved.day)


def command_of_saved(path: Path, request: TrialRequest) -> str:
    """Return the command that runs a saved failure."""
    words = ["worldline", "search", str(path), "--target", request.target]
    words += [word for name in request.properties for word in ("--property", name)]
    words += RunOptions(settings=request.options.settings, draws=request.options.draws).words()
    return shlex.join(words)


def _moved(table: str | None, move: Callable[[str], str]) -> str | None:
    """Return a table of draws as it is named elsewhere: a function is found in the target's folder anyway."""
    return table if table is None or not is_table_file(table) else move(table)
