"""Properties: what must hold in a run, and when.

A check is a function of the run that returns whether the property holds; an assertion that fails in it says why not. A
check that has to remember something takes a dict as well, which is its own and empty when a run begins; or it is a
class: each run makes one of it, and calls that.

Nothing changes between two events. So what must hold within some time has failed as soon as an event is later than
that, and it failed when the time was over: that is the moment which a `Violation` names.

A federation's run is judged by its story, one happening after the other: by what an observer is told, as recordings
are made. A message is received when it arrives, even if its receiver's program takes it later, or never. The order is
that of times, of names at the same time, and of each participant's own doings: what it received, and what it then noted
and sent. No message arrives when it is sent, so nothing comes before its cause. The order depends on the history alone,
so a property holds on every executor or on none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from worldline.history.account import log_line_in
from worldline.history.observer import LOG, Observer
from worldline.history.outcome import Outcome
from worldline.model.blame import said_of
from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.names import MessageFate, fate_of
from worldline.model.errors import ConfigurationError, ModelError, WorldlineError, shortened, shown
from worldline.model.lifecycle import ESTOP_LOG, FAULT_LOG
from worldline.model.payload import from_json
from worldline.model.reading import as_time
from worldline.model.segments import read_any, read_segment
from worldline.model.text import printable
from worldline.model.time import FOREVER, TimeLike, format_time
from worldline.processes.failures import is_from_outside


class JudgedRun(Protocol):
    """What a check looks at, whichever room has made it."""

    @property
    def now(self) -> int: ...

    @property
    def last(self) -> Any:
        """What happened just now, in the room's own terms; None: this is about the whole run."""

    @property
    def actor(self) -> str | None:
        """Who acted last; None: this is about the whole run."""

    @property
    def is_cut(self) -> bool:
        """Whether more would have happened if the run hadn't been ended."""


Check = Callable[[Any], bool]
When = Literal["always", "eventually", "each time", "at the end"]
AT_END: When = "at the end"
_NUMPY_TRUTHS = (("numpy", "bool"), ("numpy", "bool_"))  # By name, since NumPy may not be there; it has changed it.


class Property(Struct, frozen=True):
    """A check, when it has to hold, and what it says in words.

    It has to hold `within` some time if that is given: of the start of the run, or of each moment at which `after`
    holds, which is a check as well.
    """

    when: When
    text: str
    check: Any  # A Check, or a class whose objects are one.
    within: int | None = None
    after: Any = None

    def __str__(self) -> str:
        return f"{self.when}: {self.text}{'' if self.within is None else f', within {format_time(self.within)}'}"

    def __reduce__(self) -> Any:
        """Travel to other processes by name: a decorated check has its name no more, the property has it."""
        module, name = self.check.__module__, self.check.__qualname__
        if getattr(sys.modules.get(module), name, None) is self:
            return _of_module, (module, name)
        return Property, (self.when, self.text, self.check, self.within, self.after)


def _of_module(module: str, name: str) -> Property:
    found: Property = getattr(import_module(module), name)
    return found


def _decorator(
    name: str, when: When, text: str, within: TimeLike | None = None, after: Any = None
) -> Callable[[Any], Property]:
    if not isinstance(text, str):
        of = getattr(text, "__name__", shown(text))
        raise ConfigurationError(
            f"@{name} of {of} has no text", advice=f'say what must hold: @{name}("all nodes agree")'
        )
    limit = None if within is None else as_time(within, f"a time for @{name} to hold within")
    return lambda check: Property(when, text, check, limit, after)


def always(text: str) -> Callable[[Any], Property]:
    """Let a check hold after every event."""
    return _decorator("always", "always", text)


def eventually(text: str, *, within: TimeLike | None = None) -> Callable[[Any], Property]:
    """Let a check hold after some event, or at the end; with `within`, no later than that."""
    return _decorator("eventually", "eventually", text, within)


def leads_to(text: str, *, after: Any, within: TimeLike | None = None) -> Callable[[Any], Property]:
    """Let a check hold after each moment at which `after` holds: then, later, or at the end; or `within` some time.

    A check with a second argument is given what had just happened at that moment, and is asked for each by itself. What
    is due only after a run was ended from outside isn't judged.
    """
    if not callable(after):
        raise ConfigurationError(
            f"@leads_to of {shown(text)} has no moments: after={shown(after)}",
            advice="give a function that says when: after=asked",
        )
    return _decorator("leads_to", "each time", text, within, after)


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
        self._each_time: list[_EachTime] = []
        self._at_end: list[tuple[Property, Check]] = []
        places = {"always": self._always, "eventually": self._pending, "at the end": self._at_end}
        for each in properties:
            if not isinstance(each, Property):
                raise ConfigurationError(
                    f"{shown(each)} isn't a property", advice='decorate it: @always("..."), @eventually or @at_end'
                )
            if each.when == "each time":
                self._each_time.append(_EachTime(each))
            else:
                places[each.when].append((each, _fresh(each, each.check)))

    @property
    def watches(self) -> bool:
        """Whether there is anything to do before the end."""
        return bool(self._always or self._pending or self._each_time)

    def reach(self, time: int) -> None:
        """Judge what has to hold before this time; nothing has happened since the last look."""
        for each, _ in self._pending:
            if each.within is not None and each.within < time:
                raise _violation(each, f"never held within {format_time(each.within)}", None, each.within)
        for owed in self._each_time:
            owed.reach(time)

    def look(self, run: JudgedRun) -> None:
        """Judge what has come of an event."""
        self.reach(run.now)
        for each, check in self._always:
            _demand(each, check, run, during=True)
        if self._pending:
            self._pending = [(each, check) for each, check in self._pending if _complaint(each, check, run) is not None]
        for owed in self._each_time:
            owed.look(run)

    def finish(self, run: JudgedRun) -> None:
        """Judge the run as a whole."""
        self.reach(run.now)
        for each, check in (*self._always, *self._pending, *self._at_end):
            _demand(each, check, run, during=False)
        for owed in self._each_time:
            owed.finish(run)


class _Since(NamedTuple):
    """A moment after which something is due: when, after whose doing, and what that was."""

    at: int
    who: str | None
    what: Any


class _EachTime:
    """Judges one property that has to hold after each of many moments."""

    def __init__(self, stated: Property) -> None:
        self._stated = stated
        self._after = _fresh(stated, stated.after)
        self._tells_apart = remembers(stated.check)
        self._check: Any = stated.check if self._tells_apart else _fresh(stated, stated.check)
        self._within = FOREVER if stated.within is None else stated.within
        self._owed: list[_Since] = []  # The earliest comes first. Where they aren't told apart, it stands for all.
        self._complaint = ""

    def reach(self, time: int) -> None:
        if self._owed and self._owed[0].at + self._within < time:
            self._fail(self._owed[0], self._owed[0].at + self._within, during=True)

    def look(self, run: JudgedRun) -> None:
        is_due = _complaint(self._stated, self._after, run) is None
        if is_due and (self._tells_apart or not self._owed):
            self._owed.append(_Since(run.now, run.actor, run.last))
        self._settle(run)

    def finish(self, run: JudgedRun) -> None:
        self._settle(run)
        for since in self._owed:
            if not (run.is_cut and since.at + self._within > run.now):
                self._fail(since, run.now, during=False)

    def _settle(self, run: JudgedRun) -> None:
        """Forget what holds now."""
        if self._tells_apart:
            self._owed = [since for since in self._owed if not self._holds(run, since)]
        elif self._owed and self._holds(run, self._owed[0]):
            self._owed.clear()

    def _holds(self, run: JudgedRun, since: _Since) -> bool:
        check = (lambda at: self._check(at, since.what)) if self._tells_apart else self._check
        complaint = _complaint(self._stated, check, run)
        self._complaint = complaint or ""
        return complaint is None

    def _fail(self, since: _Since, at: int, *, during: bool) -> None:
        limit = "" if self._stated.within is None else f" within {format_time(self._stated.within)}"
        actor = "" if since.who is None else f" by {since.who}"
        due = f"due{actor} since {format_time(since.at)}, it didn't come{limit}"
        complaint = f"{due}: {self._complaint}" if self._complaint else due
        raise _violation(self._stated, "failed", since.who, at, complaint=complaint, during=during)


def remembers(check: object) -> bool:
    """Whether a check takes a dict besides the run."""
    return isinstance(check, FunctionType) and check.__code__.co_argcount - len(check.__defaults__ or ()) == 2


def _fresh(each: Property, given: Any) -> Check:
    """Return a check of a property, with a memory of its own if it has one."""
    if remembers(given):
        memory: dict[Any, Any] = {}
        return lambda run: given(run, memory)
    if not isinstance(given, type):
        found: Check = given
        return found
    try:
        check: Check = given()
    except Exception as error:
        raise BrokenCheck(f"the check of {each.text!r} raised {said_of(error)}, before the run") from error
    return check


def _demand(each: Property, check: Check, run: JudgedRun, *, during: bool) -> None:
    complaint = _complaint(each, check, run)
    if complaint is not None:
        verdict = "never held" if each.when == "eventually" else "failed"
        who = run.actor if during else None
        raise _violation(each, verdict, who, run.now, complaint=complaint, during=during)


def _violation(
    each: Property, verdict: str, who: str | None, at: int, *, complaint: str = "", during: bool = True
) -> Violation:
    problem = f"property {verdict}: {each.text}{f': {complaint}' if complaint else ''}"
    return Violation(problem, participant=who, at=at, property=each.text, during=during)


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


_FACT = re.compile(r"""(?<![\w.-])([A-Za-z_][\w.-]*)=("(?:[^"\\]|\\.)*"|[^\s,;]+)""")  # term=3, role="a leader"
_DIES = re.compile(r"(?:^\S+ |: )(?:crash|kill) ")


class Story:
    """What has happened so far. `last` happened just now; at the end it is None.

    `is_cut` says whether the run was ended from outside, so that more would have happened.
    """

    def __init__(self, *, is_cut: bool = False) -> None:
        self.now = 0
        self.is_cut = is_cut
        self.last: Happening | None = None
        self.happenings: list[Happening] = []
        self._by_kind: dict[HappeningKind, list[Happening]] = {}  # What always has to hold asks for one kind each time.
        self.ends: dict[str, int] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._stated = 0  # How many happenings are in there; most properties never ask.

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

    @property
    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """What each participant has last said of itself, by name: what it published, by topic, and facts that it noted.

        Facts are ``role=leader term=3`` in a line of its log, or the keys of a line that is a JSON object. A
        participant that crashes has said nothing any more.
        """
        for each in self.happenings[self._stated :]:
            own = self._states.setdefault(each.who, {})
            if each.kind == "sent":
                own[each.topic] = _value_of(each.text)
            elif each.kind == "noted":
                own.update(facts_in(each.text))
            elif each.kind == "befell" and _DIES.search(each.text):
                own.clear()
        self._stated = len(self.happenings)
        return self._states

    def state(self, name: str) -> Mapping[str, Any]:
        """Return what a participant has last said of itself; nothing, if it hasn't said anything."""
        return self.states.get(name, {})

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
            verdicts.reach(each.at)
            self.now, self.last = each.at, each
            self.happenings.append(each)
            self._by_kind.setdefault(each.kind, []).append(each)
            if verdicts.watches:
                verdicts.look(self)
        self.last = None
        self.ends = dict(ends)
        self.now = max(ends.values(), default=self.now)
        verdicts.finish(self)


def _value_of(text: str) -> Any:
    """Return what a text says if it is JSON, otherwise the text."""
    try:
        return from_json(text.encode())
    except WorldlineError:
        return text


def facts_in(line: str) -> dict[str, Any]:
    if line.startswith("{") and isinstance(found := _value_of(line), dict):
        return found
    return {name: _value_of(value) for name, value in _FACT.findall(line)}


class StoryObserver(Observer):
    """Keeps what happens in a run, to be told in one order when it is over."""

    def __init__(self) -> None:
        self._doings: list[tuple[_Place, Happening]] = []  # What participants have sent and noted.
        self._sent: dict[tuple[str, int], Happening] = {}
        self._arrivals: dict[tuple[str, str], dict[_Place, Happening]] = {}  # By receiver and topic.

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        made = self._sent[who, number] = Happening(at, who, "sent", topic, payload, who)
        self._do(made)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if topic != LOG or payload is None:
            return
        line = log_line_in(payload)
        if line.kind:
            self._do(Happening(at, who, "befell", "", line.text.removeprefix(FAULT_LOG).encode(), who))
        else:
            self._do(Happening(at, who, "noted", LOG, line.text.encode(), who))

    def _do(self, made: Happening) -> None:
        self._doings.append(((made.at, made.who, 1, len(self._doings)), made))

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        sent = self._sent[sender, number]
        arrivals = self._arrivals.setdefault((receiver, sent.topic), {})
        place = (at, receiver, 0, sent.at, sender, number, copy)
        if lost is None:
            arrivals[place] = Happening(at, receiver, "received", sent.topic, sent.payload, sender)
        else:
            arrivals.pop(place, None)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        arrivals = self._arrivals.get((receiver, topic), {})
        for place in [place for place in arrivals if place[0] >= at]:
            del arrivals[place]

    def happenings(self) -> list[Happening]:
        """Return what has happened, in the one order."""
        received = [told for arrivals in self._arrivals.values() for told in arrivals.items()]
        return [each for _, each in sorted([*self._doings, *received], key=_place_of)]

    def judge(
        self, properties: Sequence[Property], outcome: Outcome, end: int | None
    ) -> tuple[Story, WorldlineError | None]:
        """Return the story of a run that has come to this, up to where a property failed, and that failure.

        The run was to end at `end`, if it hasn't ended by itself.
        """
        story = Story(is_cut=end is not None and outcome.now >= end)
        try:
            story.judge(self.happenings(), properties, outcome.times)
        except BrokenCheck:
            raise
        except WorldlineError as failure:
            return story, failure
        return story, None


_Place = tuple[Any, ...]
"""The place of a happening in the one order: its time, whose it is, and where it stands among those."""


def _place_of(told: tuple[_Place, Happening]) -> _Place:
    return told[0]


# The story of a failure in lines: what happened last, and of what was before that, what matters.


_LINES_MAX = 40
_EARLIER_MAX = 10


def told(each: Happening) -> str:
    """Say what happened as logs do."""
    if each.kind == "befell":
        return each.text if each.text.startswith(ESTOP_LOG) else f"fault: {each.text}"
    if each.kind == "noted":
        return f"noted  {each.text}"
    of = "" if each.sender == each.who else f" from {each.sender}"
    segment = read_any(each.payload)
    return f"{each.kind}  {each.topic}{of}: {shortened(each.text if segment is None else printable(str(segment)))}"


def is_idle(each: Happening) -> bool:
    """Whether it is a segment that only acknowledges or closes."""
    if each.kind not in ("sent", "received") or not each.topic.startswith("tcp/"):
        return False
    segment = read_segment(each.payload)
    return segment is not None and segment.is_idle


class StoryStep(NamedTuple):
    """One thing that happened. It matters if all may have begun there: a fault, or a message that the failure takes."""

    at: int
    who: str
    text: str
    matters: bool


def story_steps(
    happenings: Iterable[Happening], draws: Mapping[str, DrawnValue] | None, *, with_idle: bool = True
) -> Iterator[StoryStep]:
    """Yield what happened, one by one. `draws` are those that the failure takes: what they do to a message is said.

    Segments of programs that only acknowledge or close are left out unless it is told `with_idle` ones.
    """
    fates, sent = _fates(draws), dict[tuple[str, str], int]()
    for each in happenings:
        of = each.who, each.topic
        becomes = list[str]()
        if each.kind == "sent":
            number = sent[of] = sent.get(of, -1) + 1
            becomes = [fate.text for fate in fates if (fate.sender, fate.topic, fate.number) == (*of, number)]
        if becomes or with_idle or not is_idle(each):
            becoming = f"  ({', '.join(becomes)})" if becomes else ""
            matters = each.kind == "befell" or bool(becomes)
            yield StoryStep(each.at, each.who, f"{told(each)}{becoming}", matters)


def story_lines(
    happenings: Iterable[Happening], draws: Mapping[str, DrawnValue] | None, *, with_idle: bool = True
) -> list[str]:
    """Return the last lines of a story, and of those before them what matters."""
    steps = list(story_steps(happenings, draws, with_idle=with_idle))
    before = steps[:-_LINES_MAX]
    earlier = [_line(step) for step in before if step.matters][-_EARLIER_MAX:]
    found = [f"... {len(before):,} before that" + (", among them" if earlier else "")] if before else []
    found += [*earlier, "..."] if earlier else []
    return found + [_line(step) for step in steps[-_LINES_MAX:]]


def _line(step: StoryStep) -> str:
    return f"{format_time(step.at):>12}  {step.who}  {step.text}"


def _fates(draws: Mapping[str, DrawnValue] | None) -> Sequence[MessageFate]:
    fates = (fate_of(name, value) for name, value in (draws or {}).items())
    return [fate for fate in fates if fate is not None]
