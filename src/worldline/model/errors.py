"""Errors, named by who has to act on them.

======================  =====================================================
class                   who acts
======================  =====================================================
`UsageError`            the person who called or configured Worldline
`ModelError`            the author of the simulated model
`PeerError`             the author of the program at the other end
`LossError`             the one who looks after processes, machines and cables
`InternalError`         us: it is a bug in Worldline
======================  =====================================================

`Interrupted` is no fault.

An error carries its facts as fields, so that a program can act on them, and says them in its text, so that a person
can. It survives pickling, because workers and executors hand errors from process to process.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, ClassVar, Self

from worldline.model.text import printable
from worldline.model.time import format_time

_SHOWN_MAX = 400
_NEAREST_AMONG_MAX = 10_000  # To compare a name with more takes too long.
_NEAREST_LENGTH_MAX = 1_000  # So does comparing a longer one: that isn't a misspelled name.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # Of an object in memory: another one each time, and of no use.


FILE_MODULE = "worldline_file_"
"""How the names of modules begin that were loaded from a user's file: `random.py` mustn't hide Python's own."""


def shown(value: object) -> str:
    """Write a value that was given into an error's text, however large it is."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
        return f"the function {value.__name__}"
    if isinstance(value, int) and abs(value) >= 2**256:
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # It holds an int of thousands of digits, or is nested as deeply.
        return f"such a {type(value).__name__}"
    if not isinstance(value, str | bytes):
        text = _ADDRESS.sub("", text)
    return shortened(text.replace(FILE_MODULE, ""))


def shortened(text: str) -> str:
    """Return a text that was given, on one line, as much of it as a person can take in."""
    return printable(text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}...")


def nearest(name: object, known: Iterable[str], *, prefix: str = "") -> str | None:
    """Return, as advice, whether the known name was meant that is nearest to a misspelled one; None if none is near.

    A `prefix` that all have in common says nothing about how near they are.
    """
    from difflib import get_close_matches  # It takes long to load, and most runs have no use for it.

    names: Collection[str] = known if isinstance(known, Collection) else list(known)
    if not isinstance(name, str) or len(name) > _NEAREST_LENGTH_MAX or len(names) > _NEAREST_AMONG_MAX:
        return None
    rest = {each.removeprefix(prefix): each for each in names}
    near = get_close_matches(name.removeprefix(prefix), rest, n=1)
    return f"did you mean {shown(rest[near[0]])}?" if near else None


class WorldlineError(Exception):
    """The root of all errors that Worldline raises on purpose. `exit_code` is what a command ends with.

    The fact `mistakes` is for problems of several lines: what each of them says.
    """

    exit_code: ClassVar[int] = 70
    of_observer = False
    """Whether it was raised by what looks on, so that no participant is to blame."""

    def __init__(
        self,
        problem: str,
        *,
        participant: str | None = None,
        at: int | None = None,
        advice: str | None = None,
        **facts: Any,
    ) -> None:
        self.problem = problem
        self.participant = participant
        self.at = at
        self.advice = advice
        self.facts = facts
        super().__init__(self.text())

    def text(self) -> str:
        """Return it as a person is to read it: whatever it quotes can't begin a line, unless it is of `mistakes`."""
        where = ""
        if self.participant is not None:
            where = printable(self.participant)
        if self.at is not None:
            where = f"{where} at {format_time(self.at)}" if where else f"at {format_time(self.at)}"
        problem = "\n".join(map(printable, self.facts.get("mistakes", (self.problem,))))
        text = f"{where}: {problem}" if where else problem
        return f"{text} ({printable(self.advice)})" if self.advice else text

    def concerning(self, participant: str, at: int) -> Self:
        """Return the error with the participant named, if it was raised where that wasn't known."""
        if self.participant is None and not self.of_observer:
            self.participant, self.at = participant, at
            self.args = (self.text(),)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (type(self), self.problem, self.participant, self.at, self.advice, self.facts)
        return _rebuild, arguments, self.__dict__  # The last keeps notes, as ordinary exceptions do.


def _rebuild(
    kind: type[WorldlineError],
    problem: str,
    participant: str | None,
    at: int | None,
    advice: str | None,
    facts: dict[str, Any],
) -> WorldlineError:
    return kind(problem, participant=participant, at=at, advice=advice, **facts)


class UsageError(WorldlineError):
    """A call that its caller must change."""

    exit_code = 2


class ConfigurationError(UsageError):
    """A plan, link or name that can't be run as written; raised before anything starts."""


class ObserverFailure(UsageError):
    """What was given to look on has raised something; the model is fine."""

    of_observer = True


class ModelError(WorldlineError):
    """The simulated model did what it may not do."""

    exit_code = 1


class BrokenPromise(ModelError):
    """A send before the time until which its sender promised none. Facts: `promise`, `attempt`."""


class Stuck(ModelError):
    """No participant can go on, and nothing will change that; the text says who waits for whom."""

    exit_code = 4


class NonDeterminism(ModelError):
    """The same inputs gave two histories."""


class PeerError(WorldlineError):
    """The other end of a connection did what the protocol doesn't allow."""

    exit_code = 2


class LossError(WorldlineError):
    """A participant or a connection is gone."""

    exit_code = 3


class BrokenOff(LossError):
    """The run has been broken off, because of `participant`, if it was one. Facts: `told`, who is told; `cause`."""


class Interrupted(WorldlineError):
    """A user or a signal has ended it."""

    exit_code = 130


class Unread(Interrupted):
    """The reader of what is printed has had enough. The exit code is that of other commands, which a signal ends."""

    exit_code = 141


class InternalError(WorldlineError):
    """An invariant of Worldline doesn't hold."""

    def __init__(self, problem: str, **known: Any) -> None:
        super().__init__(
            problem, **({"advice": "this is a bug in Worldline: please report it, with this text"} | known)
        )
