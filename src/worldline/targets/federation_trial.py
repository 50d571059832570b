"""Trials of federations by the names of their files and properties, as a search hands them to its processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

from worldline.federation.program import Federation
from worldline.federation.trial import FederationTrial
from worldline.launch.entry import load_object
from worldline.model.distributions import DrawnValue
from worldline.model.drawn_faults import KINDS, parse_fault_kinds
from worldline.model.errors import ConfigurationError, shown
from worldline.search.calm import WrittenDraws
from worldline.search.day import as_day
from worldline.search.properties import AT_END, Property
from worldline.search.quiet import quietly
from worldline.targets.finding import SEARCHED, found_federation
from worldline.targets.ready import Options


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """What is to be tried, as it was written: plain data, which other processes understand.

    Properties are ``module:name``, as seen from the target's folder. `faults` come in addition to the target's own, and
    `drawn_faults` are kinds such as ``crash=1,hang=2``; or `only_faults` are all there are. `table`
    replaces draws, as `--draws` names it. `draws` are those that a shrunk failure takes; with them, everything else is
    calm. `day` is the kind of day, if it isn't up to the search.
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

    @property
    def directory(self) -> Path:
        """Where modules are looked for: the target's folder."""
        return Path(self.target.partition(":")[0]).resolve().parent


def made_trial(request: TrialRequest) -> FederationTrial:
    """Return the trial that is asked for, in this process."""
    options = Options(
        seed=request.seed,
        until=request.until,
        settings=request.settings,
        faults=request.faults,
        only_faults=request.only_faults,
        draws=request.table,
    )
    kinds = {} if request.drawn_faults is None else parse_fault_kinds(request.drawn_faults)
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
