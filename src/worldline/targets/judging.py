"""Properties by which a federation's run is judged: found by their names, and asked when the run is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path

from worldline.federation.outcome import FederationOutcome
from worldline.history.observer import Observer
from worldline.history.telling import SeveralObservers
from worldline.launch.file.startable import load_object
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.search.properties import AT_END, BrokenCheck, Property, StoryObserver, remembers


def judged(
    properties: tuple[Property, ...],
    end: int | None,
    observer: Observer | None,
    run: Callable[[Observer | None], FederationOutcome],
) -> FederationOutcome:
    """Run something that an observer looks at; a property that doesn't hold is its outcome's failure."""
    told = StoryObserver()
    outcome = run(told if observer is None else SeveralObservers((told, observer)))
    try:
        _, failure = told.judge(properties, outcome, end)
    except BrokenCheck as broken:  # It tells nothing of the run, which is whole.
        failure = broken
    return replace(outcome, failure=failure)


def load_property(name: str, directory: Path, where: str) -> Property:
    """Import a property: one that is decorated, or a function of a story that has to hold at the end.

    `where` is what named it, for errors: an option, or a key of a file.
    """
    try:
        return _loaded(name, directory)
    except UsageError as error:
        raise type(error)(f"{where}: {error.problem}", advice=error.advice) from error.__cause__


def _loaded(name: str, directory: Path) -> Property:
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
    if isinstance(found, Property) and found.after is not None:
        _check_arguments(f"{name}'s after", found.after)
    if isinstance(found, Property):
        return found
    said = (getattr(found, "__doc__", None) or attribute.replace("_", " ")).strip().partition("\n")[0].rstrip(".")
    return Property(AT_END, said, found)


def _check_arguments(name: str, check: Callable[..., object]) -> None:
    """Refuse what can't be called with a story: a function of something else, or a class whose objects are."""
    if not isinstance(check, type):
        _check_call(name, check, (None, None) if remembers(check) else (None,), "with a story")
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
