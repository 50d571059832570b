"""Properties: what must hold in a run, and when.

A check is a function of the run that returns whether the property holds; an assertion that fails in it says why not. A
check that has to remember something is a class: each run makes one of it, and calls that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal, Protocol

from msgspec import Struct

from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, ModelError, shown
from worldline.processes.failures import is_from_outside


class JudgedRun(Protocol):
    """What a check looks at, whichever room has made it."""

    @property
    def now(self) -> int: ...

    @property
    def actor(self) -> str | None:
        """Who acted last; None: this is about everybody."""


Check = Callable[[Any], bool]
When = Literal["always", "eventually", "at the end"]
AT_END: When = "at the end"
_NUMPY_TRUTHS = (("numpy", "bool"), ("numpy", "bool_"))  # By name, since NumPy may not be there; it has changed it.


class Property(Struct, frozen=True):
    """A check, when it has to hold, and what it says in words."""

    when: When
    text: str
    check: Any  # A Check, or a class whose objects are one.

    def __str__(self) -> str:
        return f"{self.when}: {self.text}"

    def __reduce__(self) -> Any:
        """Travel to other processes by name: a decorated check has its name no more, the property has it."""
        module, name = self.check.__module__, self.check.__qualname__
        if getattr(sys.modules.get(module), name, None) is self:
            return _of_module, (module, name)
        return Property, (self.when, self.text, self.check)


def _of_module(module: str, name: str) -> Property:
    found: Property = getattr(import_module(module), name)
    return found


def _decorator(name: str, when: When, text: str) -> Callable[[Any], Property]:
    if not isinstance(text, str):
        of = getattr(text, "__name__", shown(text))
        raise ConfigurationError(
            f"@{name} of {of} has no text", advice=f'say what must hold: @{name}("all nodes agree")'
        )
    return lambda check: Property(when, text, check)


def always(text: str) -> Callable[[Any], Property]:
    """Let a check hold after every event."""
    return _decorator("always", "always", text)


def eventually(text: str) -> Callable[[Any], Property]:
    """Let a check hold after some event, or at the end."""
    return _decorator("eventually", "eventually", text)


def at_end(text: str) -> Callable[[Any], Property]:
    """Let a check hold when the run has ended."""
    return _decorator("at_end", AT_END, text)


class Violation(ModelError):
    """A property doesn't hold. Facts: `property`, and whether that showed `during` the run."""


class BrokenCheck(ModelError):
    """A check says nothing of whether its property holds: it raises, or returns something else. Its author must act."""

    exit_code = 2

    def on_seed(self, seed: int) -> BrokenCheck:
        """Return the error with the seed on which that shows."""
        problem = f"seed {seed}: {self.problem}"
        return BrokenCheck(problem, participant=self.participant, at=self.at, advice=self.advice)


class Verdicts:
    """Judges one run as it goes on."""

    def __init__(self, properties: Iterable[Property]) -> None:
        self._always: list[tuple[Property, Check]] = []
        self._pending: list[tuple[Property, Check]] = []
        self._at_end: list[tuple[Property, Check]] = []
        places = {"always": self._always, "eventually": self._pending, "at the end": self._at_end}
        for each in properties:
            if not isinstance(each, Property):
                raise ConfigurationError(
                    f"{shown(each)} isn't a property", advice='decorate it: @always("..."), @eventually or @at_end'
                )
            places[each.when].append((each, _fresh(each) if isinstance(each.check, type) else each.check))

    @property
    def watches(self) -> bool:
        """Whether there is anything to do before the end."""
        return bool(self._always or self._pending)

    def look(self, run: JudgedRun) -> None:
        """Judge what has come of an event."""
        for each, check in self._always:
            _demand(each, check, run, during=True)
        if self._pending:
            self._pending = [(each, check) for each, check in self._pending if _complaint(each, check, run) is not None]

    def finish(self, run: JudgedRun) -> None:
        """Judge the run as a whole."""
        for each, check in (*self._always, *self._pending, *self._at_end):
            _demand(each, check, run, during=False)


def _fresh(each: Property) -> Check:
    try:
        check: Check = each.check()
    except Exception as error:
        raise BrokenCheck(f"the check of {each.text!r} raised {said_of(error)}, before the run") from error
    return check


def _demand(each: Property, check: Check, run: JudgedRun, *, during: bool) -> None:
    complaint = _complaint(each, check, run)
    if complaint is not None:
        says = "never held" if each.when == "eventually" else "doesn't hold"
        raise Violation(
            f"{each.text}: that {says}{f', since {complaint}' if complaint else ''}",
            participant=run.actor if during else None,
            at=run.now,
            property=each.text,
            during=during,
        )


def _complaint(each: Property, check: Check, run: JudgedRun) -> str | None:
    """Return None if the check holds, otherwise why not, or an empty text if it doesn't say."""
    try:
        holds: object = check(run)
    except AssertionError as failed:
        return str(failed).partition("\n")[0]
    except BaseException as error:
        if is_from_outside(error):
            raise
        raise BrokenCheck(
            f"the check of {each.text!r} raised {said_of(error)}", participant=run.actor, at=run.now
        ) from error
    if not _is_truth(holds):
        raise BrokenCheck(
            f"the check of {each.text!r}, {_name_of(check)}, returned {'nothing' if holds is None else shown(holds)}",
            participant=run.actor,
            at=run.now,
            advice="it has to return True or False; an assertion can say why not",
        )
    return None if holds else ""


def _is_truth(value: object) -> bool:
    kind = type(value)
    return kind is bool or (kind.__module__, kind.__name__) in _NUMPY_TRUTHS


def _name_of(check: Any) -> str:
    kind = check if hasattr(check, "__qualname__") else type(check)
    return f"{kind.__module__}:{kind.__qualname__}"
