"""Properties: what must hold in a run, and when.

A check is a function of the run that returns whether the property holds; an assertion that fails in it says why not. A
check that has to remember something takes a dict as well, which is its own and empty when a run begins; or it is a
class: each run makes one of it, and calls that.

A federation's run is judged by its story, one happening after the other. It is made of the participants' journals, so
it tells what their programs have seen and done, and when that was for them. Its order is that of times, of names at the
same time, and of each participant's own doings: what it received, and what it then noted and sent. No message arrives
when it is sent, so nothing comes before its cause. The order depends on the history alone, so a property holds on every
executor or on none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any, Literal, Protocol

from msgspec import Struct

from worldline.history.journal import Aside, Befell, Entry, Journal, Noted, Sent
from worldline.history.observer import LOG
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, ModelError, shown
from worldline.model.payload import from_json
from worldline.model.time import format_time
from worldline.processes.failures import is_from_outside


class JudgedRun(Protocol):
    """What a check looks at, whichever room has made it."""

    @property
    def now(self) -> int: ...

    @property
    def actor(self) -> str | None:
        """Who acted last; None: this is about the whole run."""


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
    """A property failed. Facts: `property`, and whether that showed `during` the run."""


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
            places[each.when].append((each, _fresh(each)))

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


def remembers(check: object) -> bool:
    """Whether a check takes a dict besides the run."""
    return isinstance(check, FunctionType) and check.__code__.co_argcount - len(check.__defaults__ or ()) == 2


def _fresh(each: Property) -> Check:
    """Return a property's check, with a memory of its own if it has one."""
    if remembers(each.check):
        memory: dict[Any, Any] = {}
        return lambda run: each.check(run, memory)
    if not isinstance(each.check, type):
        found: Check = each.check
        return found
    try:
        check: Check = each.check()
    except Exception as error:
        raise BrokenCheck(f"the check of {each.text!r} raised {said_of(error)}, before the run") from error
    return check


def _demand(each: Property, check: Check, run: JudgedRun, *, during: bool) -> None:
    complaint = _complaint(each, check, run)
    if complaint is not None:
        verdict = "never held" if each.when == "eventually" else "failed"
        raise Violation(
            f"property {verdict}: {each.text}{f': {complaint}' if complaint else ''}",
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
        returned = "nothing" if holds is None else shown(holds)
        raise BrokenCheck(
            f"the check of {each.text!r}, {_name_of(each.check)}, returned {returned}",
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


# -- The story of a run

HappeningKind = Literal["sent", "received", "noted", "befell"]


@dataclass(eq=False)
class Happening:
    """One participant has sent, received or noted something.

    `who` did it, at `at`; `sender` is whose message it is. What a participant wrote to its log was `noted`; a crash and
    the like `befell` it.
    """

    at: int
    who: str
    kind: HappeningKind
    topic: str
    payload: bytes
    sender: str

    @cached_property
    def value(self) -> Any:
        """The payload as an object, if it is JSON."""
        return from_json(self.payload)

    @property
    def text(self) -> str:
        """What was noted, or the payload as text."""
        return self.payload.decode("utf-8", "replace")


class Story:
    """What has happened so far. `last` happened just now; at the end it is None."""

    def __init__(self) -> None:
        self.now = 0
        self.last: Happening | None = None
        self.happenings: list[Happening] = []
        self._by_kind: dict[HappeningKind, list[Happening]] = {}  # What always has to hold asks for one kind each time.
        self.ends: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Story(now={format_time(self.now)}, {len(self.happenings)} happenings)"

    @property
    def actor(self) -> str | None:
        return None if self.last is None else self.last.who

    def sent(self, topic: str | None = None, *, by: str | None = None) -> list[Happening]:
        """Return what was sent so far, on a topic, by a participant, or both."""
        return self._of("sent", topic, by)

    def received(self, topic: str | None = None, *, by: str | None = None) -> list[Happening]:
        """Return what was received so far, on a topic, by a participant, or both."""
        return self._of("received", topic, by)

    def noted(self, *, by: str | None = None) -> list[Happening]:
        """Return what was noted so far."""
        return self._of("noted", None, by)

    def befell(self, *, whom: str | None = None) -> list[Happening]:
        """Return what happened to participants so far: faults, recoveries, emergency stops."""
        return self._of("befell", None, whom)

    def _of(self, kind: HappeningKind, topic: str | None, by: str | None) -> list[Happening]:
        found = self._by_kind.get(kind, [])
        if topic is not None:
            found = [each for each in found if each.topic == topic]
        if by is not None:
            found = [each for each in found if each.who == by]
        return list(found)

    def judge(self, happenings: Iterable[Happening], properties: Sequence[Property], ends: Mapping[str, int]) -> None:
        """Let it all happen, and raise a `Violation` where a property doesn't hold. `ends` are all participants'."""
        verdicts = Verdicts(properties)
        for each in happenings:
            self.now, self.last = each.at, each
            self.happenings.append(each)
            self._by_kind.setdefault(each.kind, []).append(each)
            if verdicts.watches:
                verdicts.look(self)
        self.last = None
        self.ends = dict(ends)
        self.now = max(ends.values(), default=self.now)
        verdicts.finish(self)


def told_by(journals: Mapping[str, Journal]) -> list[Happening]:
    """Return what journals tell, in one order."""
    found = [
        (happening.at, name, place, happening)
        for name, own in journals.items()
        for place, happening in enumerate(_told(name, own.told()))
    ]
    return [happening for *_, happening in sorted(found, key=lambda each: each[:3])]


def _told(name: str, entries: Iterable[Entry | Aside]) -> Iterator[Happening]:
    for entry in entries:
        if isinstance(entry, Sent):
            yield Happening(entry.at, name, "sent", entry.topic, entry.payload, name)
        elif isinstance(entry, Noted):
            yield Happening(entry.at, name, "noted", LOG, entry.text.encode(), name)
        elif isinstance(entry, Befell):
            yield Happening(entry.at, name, "befell", "", entry.what.encode(), name)
        else:
            message = entry.message
            yield Happening(entry.now, name, "received", message.topic, message.payload, message.sender)
