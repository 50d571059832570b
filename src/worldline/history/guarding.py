"""Stands between a run and its observer, so that a mistake of the observer isn't taken for one of the model.

A room tells its observer in the middle of what members do. Whatever the observer raises would pass through their code,
which could catch it, and then through what says which member failed.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NoReturn

from worldline.history.observer import TOLD, Observer
from worldline.history.telling import SeveralObservers
from worldline.model.blame import said_of
from worldline.model.errors import ObserverFailure, UsageError, WorldlineError, shown
from worldline.model.time import FOREVER

_TAKES_ANY_NUMBER = 0x04  # As `inspect.CO_VARARGS`.


def check_observer(observer: object) -> None:
    """Refuse what can't be told everything, before anything happens."""
    if isinstance(observer, Observer):
        _check_spelling(type(observer))
        return
    if isinstance(observer, type):
        raise UsageError(f"the observer is the class {observer.__name__}", advice=f"give {observer.__name__}(...)")
    missing = [name for name in TOLD if not callable(getattr(observer, name, None))]
    if missing:
        raise UsageError(
            f"the observer {shown(observer)} has no method {missing[0]}",
            advice="derive its class from worldline.history.Observer, whose methods do nothing",
        )


def _check_spelling(kind: type[Observer]) -> None:
    """Refuse a method that looks like one that is told things, and that would never be called."""
    inherited = [name for name in TOLD if getattr(kind, name) is getattr(Observer, name)]
    for name in sorted(set(dir(kind)) - set(dir(Observer))):
        near = [] if name.startswith("_") else get_close_matches(name, inherited, n=1, cutoff=0.75)
        if near and _takes_as_much(getattr(kind, name), getattr(Observer, near[0])):
            raise UsageError(
                f"{kind.__name__}.{name} would never be called: observers have no such method",
                advice=f"did you mean {near[0]}? If it is your own, give it another name",
            )


def _takes_as_much(method: Any, told: Any) -> bool:
    """Whether a method takes what another one is given: as many arguments as that one needs, or any number."""
    code = getattr(method, "__code__", None)
    needed = told.__code__.co_argcount - len(told.__defaults__ or ())
    return code is not None and (code.co_argcount >= needed or bool(code.co_flags & _TAKES_ANY_NUMBER))


class GuardedObserver(Observer):
    """Passes everything on. What the observer raises becomes an `ObserverFailure`, which `passed` repeats.

    So it ends the run even if code of the model has caught it. An error of ours, such as a recorder's whose disk is
    full, stays what it is: it says so itself.
    """

    def __init__(self, observer: Observer) -> None:
        check_observer(observer)
        self.guarded = observer
        self._told = observer if isinstance(observer, Observer) else SeveralObservers([observer])
        self._now = 0
        self._failure: WorldlineError | None = None

    def began(self, who: str, at: int) -> None:
        self._now = at
        try:
            self._told.began(who, at)
        except Exception as error:
            self._fail(error)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._now = at
        try:
            self._told.sent(who, number, topic, at, payload, until, detail)
        except Exception as error:
            self._fail(error)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        try:
            self._told.arrives(sender, number, receiver, at, copy, lost)
        except Exception as error:
            self._fail(error)

    def lasts(self, sender: str, number: int, until: int) -> None:
        try:
            self._told.lasts(sender, number, until)
        except Exception as error:
            self._fail(error)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        try:
            self._told.closed(receiver, topic, at)
        except Exception as error:
            self._fail(error)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self._now = at
        try:
            self._told.noted(who, topic, at, payload, detail)
        except Exception as error:
            self._fail(error)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        try:
            self._told.ended(who, at, chain)
        except Exception as error:
            self._fail(error)

    def passed(self, time: int) -> None:
        if time < FOREVER:
            self._now = time
        if self._failure is not None:
            raise self._failure
        try:
            self._told.passed(time)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, WorldlineError):
            error.of_observer = True
            self._failure = self._failure or error
            raise error
        if self._failure is None:
            self._failure = ObserverFailure(f"it raised {said_of(error)}", participant="the observer", at=self._now)
        raise self._failure from error
