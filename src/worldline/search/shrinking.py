"""What shrinking is made of in every room: runs that are counted, and leaving out as much as possible.

What is shrunk fails, and must go on failing in the same way (see `likeness_of`). And it must not get longer for its
reader. The measure is the number of lines: those that tell what happens up to the failure, and those that say what is
out of the ordinary, a line for each draw or fault. So what leaves out a draw may make the story a line longer. Where
the failure shows only at the end of the run, which ends no later, more lines are no harm: more goes on because less is
amiss. Runs cost time, so there is an end to them, and what was found by then is what counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from worldline.model.blame import described, own_line
from worldline.model.draws.distributions import (
    Chance,
    ClockOffset,
    ClockRate,
    Distribution,
    DrawnValue,
    Turn,
    checked_value,
)
from worldline.model.draws.table import DrawFunction
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError
from worldline.model.latency import Latency
from worldline.model.time import MS, US
from worldline.search.properties import BrokenCheck, Violation
from worldline.search.searching import Tried, deadline

# Tells whether two failures are the same: the same property or error, and a reason of the same shape.
#
# A reason says who and how many: ``2 and 1 are inside``, ``without one: [0, 1]``. In a smaller network these are
# others, so numbers, quoted texts and lists are all taken for the same, and so are one and many; what is left is its
# shape.

_VALUE = "#"
_QUOTED = re.compile(r"(?<!\w)('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)")  # Not the one in "doesn't".
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?:(?:ns|us|ms|s|min|h)\b)?")
_WORD = re.compile(r"\b(?:None|True|False|inf|nan)\b")
_LIST = re.compile(r"\[[^\[\]{}]*\]|\{[^\[\]{}]*\}|\((?:# ?,? ?)*\)")
_SEVERAL = re.compile(r"#(?:(?:, and | and |, or | or |[-:;,/ ]+|[<=>-]+)#)+")
_PLURAL = {"are": "is", "were": "was", "have": "has", "do": "does"}
_VERB = re.compile(rf"\b({'|'.join(_PLURAL)})(?=\b|n't)")
_NOUN = re.compile(r"(?<=# )(\w+?)s\b|\b(\w+?)s(?=:? #)")


def shape_of(text: str) -> str:
    """Return a text with every value in it replaced by the same sign."""
    for value in (_QUOTED, _ADDRESS, _NUMBER, _WORD):
        text = value.sub(_VALUE, text)
    before = ""
    while text != before:  # From the innermost list to the outermost.
        before, text = text, _LIST.sub(_VALUE, _SEVERAL.sub(_VALUE, text))
    return _NOUN.sub(r"\1\2", _VERB.sub(lambda found: _PLURAL[found[1]], text))


def likeness_of(failure: WorldlineError) -> tuple[str, ...]:
    """Return what all failures of the same kind have in common."""
    if isinstance(failure, Violation):
        when = "during the run" if failure.facts["during"] else "at the end"
        return (str(failure.facts["property"]), when, shape_of(failure.problem))
    cause = failure.__cause__
    if cause is None:
        return (type(failure).__name__, shape_of(failure.problem))
    return (type(failure).__name__, type(cause).__name__, shape_of(described(cause)), str(own_line(cause)))


# Calm circumstances: what isn't written down takes the usual time, nothing gets lost, and clocks are off the least.

_MIDDLE = 2**63  # Of the bits that a draw may have.


def calm(_name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
    """Return what a draw is when nothing out of the ordinary happens. What programs draw themselves stays as it is."""
    if isinstance(distribution, Latency):
        return usual(distribution)
    if isinstance(distribution, Chance) and distribution.probability < 1:
        return False
    if isinstance(distribution, Turn):
        return 0
    if isinstance(distribution, ClockOffset | ClockRate):
        return min(max(0, distribution.minimum), distribution.maximum)
    return value


def usual(latency: Latency) -> int:
    """Return a round time that is about the middle of what messages take."""
    middle = latency.draw(_MIDDLE)
    return rounded(latency, middle, 10 ** max(0, len(str(middle)) - 2))


def rounded(latency: Latency, time: int, unit: int) -> int:
    """Round to whole units, within what the latency may be."""
    return min(max(in_units(time, unit), latency.minimum), latency.maximum)


class WrittenDraws:
    """A function of draws: some are written down, and the others are calm.

    `calm_clocks` are those of clocks that were asked for and are calm: not all can be 0.
    """

    def __init__(self, written: Mapping[str, DrawnValue]) -> None:
        self.written = dict(written)
        self.calm_clocks: dict[str, int] = {}
        self.turns: dict[str, tuple[str, ...]] = {}  # The callback that ran, and those that were ready before it.
        self._asked: set[str] = set()

    @property
    def unasked(self) -> list[str]:
        """The names of those that the run hasn't drawn so far."""
        return [name for name in self.written if name not in self._asked]

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
        if name not in self.written:
            value = calm(name, distribution, value)
            if isinstance(distribution, ClockOffset | ClockRate):
                self.calm_clocks[name] = int(value)
            return value
        self._asked.add(name)
        value = self.written[name]
        if isinstance(distribution, Turn):  # Without other draws, there may be fewer to choose from.
            value = min(int(value), distribution.maximum)
            self.turns[name] = (distribution.ready[value], *distribution.ready[:value])
        return value


class DrawsSeen:
    """A function of draws that changes none and remembers those that aren't as in calm circumstances."""

    def __init__(self, given: DrawFunction | None) -> None:
        self._given = given
        self.restless: dict[str, DrawnValue] = {}
        self.distributions: dict[str, Distribution] = {}

    def __call__(self, name: str, distribution: Distribution, value: DrawnValue) -> DrawnValue:
        if self._given is not None:
            value = checked_value(distribution, self._given(name, distribution, value))
        if value != calm(name, distribution, value):
            self.restless[name] = value
            self.distributions[name] = distribution
        return value


RUNS_MAX = 5_000
_EARLIER_MAX = 24  # Earlier messages that are tried for each.
_MOVED_MAX = 8  # Messages for which that is done.

T = TypeVar("T")
F = TypeVar("F")  # Faults of a room.
K = TypeVar("K", bound=Hashable)  # What its draws are named by.
V = TypeVar("V")  # What they are.


@dataclass(frozen=True, kw_only=True)
class Shrunk(Generic[T]):
    """A failing trial with little left to remove, and the records of what happens in it, in the words of its room.

    There were so many `records_before`, and the seed had `drawn` so much, of which so much is `left`; faults count as
    draws or by themselves. `lines` say how things are in general, and one by one what is out of the ordinary. `unsure`
    names what might be smaller if its minimum were stated: no run shows what can work.
    """

    trial: T
    failure: WorldlineError
    records: list[Any]
    records_before: int
    drawn: int
    left: int
    faults_before: int = 0
    lines: list[str]
    runs: int
    unsure: tuple[str, ...] = ()

    def text(self) -> str:
        """Describe in words what it takes."""
        return "\n".join(self.lines)


class CountedRuns:
    """Runs trials, and counts them: at some point it is enough. It knows the failure that was found, and its length.

    `lines` is how many it takes to tell what failed last in the way that is looked for.
    """

    def __init__(
        self,
        failure: WorldlineError,
        lines: int,
        runs_max: int,
        seconds_max: float | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.done = 0
        self.lines = self._lines_before = lines
        self._failure = failure
        self._max = runs_max
        self._seconds_max = seconds_max
        self._progress = progress

    def fails(self, trial: Tried, lines_max: int | None = None) -> bool:
        """Whether a trial fails in the way that is looked for; no trial does once there were too many.

        If it takes more lines to tell than the failure that was found, or more than `lines_max`, it isn't shorter.
        """
        failure, lines = self._tried(trial)
        if failure is None or failure is _UNKNOWN:
            return False
        if likeness_of(failure) == likeness_of(self._failure):
            lines_max = self._lines_before if lines_max is None else lines_max
            if lines > lines_max and not self._is_no_later_end(failure):
                return False
            self.lines = lines
            return True
        if isinstance(failure, Stuck):
            self.done = self._max  # Each of these would take as long.
        return False

    def _is_no_later_end(self, failure: WorldlineError) -> bool:
        return failure.facts.get("during") is False and (failure.at or 0) <= (self._failure.at or 0)

    def passes(self, trial: Tried) -> bool:
        """Whether nothing is wrong with a trial; of none that is known once there were too many."""
        return self._tried(trial)[0] is None

    def _tried(self, trial: Tried) -> tuple[WorldlineError | None, int]:
        if self.done >= self._max:
            return _UNKNOWN, 0
        self.done += 1
        if self._progress is not None:
            self._progress(self.done)
        try:
            with deadline(self._seconds_max):
                outcome, lines = trial.measured()
                return outcome.failure, lines
        # A parameter doesn't fit: the node that it names isn't there, or it has no end. Or a check can't judge it.
        except (UsageError, Stuck, BrokenCheck):
            return _UNKNOWN, 0


_UNKNOWN = ModelError("it wasn't tried, or couldn't be")


def reduced(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out as much as possible: ever smaller parts, until not a single one can be left out.

    What is left is what `fails` was last true of.
    """
    kept = list(items)
    size = len(kept)
    while size:
        start, before = 0, len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
            else:
                start += size
        if size > 1:
            size //= 2
        elif len(kept) == before:
            break
    return kept


def lessened(time: int, fails: Callable[[int], bool]) -> int:
    """Return the least of the round times that fail: the one below it passes. If none fails, return the time itself.

    It is the one that `fails` was last true of.
    """
    for digits in (1, 2):
        shorter = _round_times(time, digits)
        if shorter and fails(shorter[-1]):
            low, high = -1, len(shorter) - 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if fails(shorter[middle]) else (middle, high)
            return shorter[high]
    return time


def _round_times(below: int, digits: int) -> list[int]:
    """Return the shorter times of so many digits in the unit that one would write them in, or a larger one."""
    least = next((unit for unit in (MS, US) if below >= unit), 1)
    found, scale = [], least
    while scale < below:
        first = 1 if scale == least else 10 ** (digits - 1)
        found += [number * scale for number in range(first, 10**digits) if number * scale < below]
        scale *= 10
    return sorted(set(found))


def in_units(time: int, unit: int) -> int:
    """Round to a whole number of units."""
    return (time + unit // 2) // unit * unit


class Shrinking(Generic[F, K, V]):
    """A trial that fails, made calmer step by step, whichever room it is of.

    Its circumstances are all that is out of the ordinary: its `faults`, and its `draws` by name. Draws of None are
    those that the seed makes, of which `drawn` are out of the ordinary. What is here is always what was tried last and
    failed as before. The room says how a trial is made of circumstances (`make` returns None if they don't go together)
    and when some faults are milder than others; and it tries what is simpler in its own terms. What was tried before
    isn't run again, and isn't counted.
    """

    def __init__(
        self,
        runs: CountedRuns,
        faults: tuple[F, ...],
        draws: dict[K, V] | None,
        *,
        drawn: int,
        make: Callable[[tuple[F, ...], dict[K, V] | None], Tried | None],
        is_milder: Callable[[Sequence[F], Sequence[F]], bool],
    ) -> None:
        self.faults = self._harshest = faults
        self.draws = draws
        self.drawn = drawn
        self._runs = runs
        self._make = make
        self._is_milder = is_milder
        self._lines = runs.lines
        self._length = runs.lines + drawn + len(faults)
        # How many lines it takes if it fails as before; later rounds ask much that earlier ones have asked.
        self._answers: dict[Hashable, int | None] = {(faults, _frozen(draws), None): runs.lines}

    def attempt(
        self, *, faults: tuple[F, ...] | None = None, draws: dict[K, V] | None = None, lines_max: int | None = None
    ) -> bool:
        """Have other faults or draws from now on, if it fails as before with them; return whether it does."""
        faults = self.faults if faults is None else faults
        draws = self.draws if draws is None else draws
        asked = faults, _frozen(draws), lines_max
        if asked not in self._answers:
            if lines_max is None:
                lines_max = self._length - len(faults) - (self.drawn if draws is None else len(draws))
            trial = self._make(faults, draws) if self._is_milder(faults, self._harshest) else None
            fails = trial is not None and self._runs.fails(trial, lines_max)
            self._answers[asked] = self._runs.lines if fails else None
        lines = self._answers[asked]
        if lines is None:
            return False
        self.faults, self.draws, self._lines = faults, draws, lines
        return True

    def attempt_fault(self, place: int, fault: F) -> bool:
        """Have another fault in the place of one."""
        return self.attempt(faults=(*self.faults[:place], fault, *self.faults[place + 1 :]))

    def attempt_draw(self, name: K, value: V) -> bool:
        """Have another value of a draw that is written down."""
        assert self.draws is not None
        return self.attempt(draws={**self.draws, name: value})

    def leave_out_faults(self) -> None:
        reduced(self.faults, lambda rest: self.attempt(faults=tuple(rest)))

    def leave_out_draws(self) -> None:
        reduced(list((self.draws or {}).items()), lambda rest: self.attempt(draws=dict(rest)))

    def make_earlier(
        self, message_of: Callable[[K], tuple[Hashable, int] | None], renumbered: Callable[[K, int], K]
    ) -> None:
        """Let the same happen to earlier messages, if it fails as soon then: by the same number, then to each.

        `message_of` says which message a draw is about, if it is about one, and its number. Draws about one go along.
        """
        before, lines = dict(self.draws or {}), self._lines
        about = {name: message for name in before if (message := message_of(name)) is not None}
        messages = list(dict.fromkeys(about.values()))
        kept = [number for _, number in messages]

        def fails_at(numbers: Sequence[int]) -> bool:
            moved = dict(zip(messages, numbers, strict=True))
            names = [renumbered(name, moved[about[name]]) if name in about else name for name in before]
            is_clash = len(set(names)) < len(names)
            return not is_clash and self.attempt(draws=dict(zip(names, before.values(), strict=True)), lines_max=lines)

        least = min(kept, default=0)
        for shift in range(least, max(0, least - _EARLIER_MAX), -1):
            shifted = [number - shift for number in kept]
            if fails_at(shifted):
                kept = shifted
                break
        for place in range(len(kept))[:_MOVED_MAX]:
            for earlier in range(min(kept[place], _EARLIER_MAX)):
                moved = [*kept[:place], earlier, *kept[place + 1 :]]
                if fails_at(moved):
                    kept = moved
                    break


def _frozen(draws: Mapping[K, V] | None) -> Hashable:
    return None if draws is None else frozenset(draws.items())
