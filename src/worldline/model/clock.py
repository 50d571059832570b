"""Local clocks: what a participant's own clock shows at a time, and when it shows what, in exact integers.

Theory of operation
-------------------
Simulated time is true time: all participants share it, and it is perfect. A local clock shows something else, by a
little. It has an offset at time 0, and its rate differs from 1 by a drift in parts per billion, to which a random walk
may be added: in each segment, a span of `every` nanoseconds, the rate is constant. At stated true times it jumps. With
D(t) for the integral of drift and walk from 0 to t, which is a whole number of billionths of a nanosecond:

    local(t) = t + offset + floor(D(t) / 10^9) + all jumps at t or before

C1. Nothing is rounded but by that one floor: errors don't add up, however long the run and however short its steps.
C2. The rate is more than 0 and less than 2, since drift and walk together stay below 100 %. So between two jumps the
    clock never goes back, and it moves on by at most 2 ns in a nanosecond.
C3. A clock that is fast skips readings, one that is slow shows them for more than a nanosecond. So `true(l)` is the
    first time at which the clock shows *at least* l, and local(true(l)) is l or l + 1, unless a jump leads past it.
C4. The walk's draws are keyed by seed, participant and segment: what it shows doesn't depend on who has looked.

The functions take times and rates as text or whole numbers and check them; the structs hold plain integers, and are
what a server tells a participant.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, Final

from msgspec import MsgspecError, Struct, convert, to_builtins

from worldline.model.draws.distributions import RateLike, as_rate, format_rate
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.latency import Fixed, Latency, Normal, Table, as_spread, passed_in, spread_text
from worldline.model.randomness import draw_bits, key_of
from worldline.model.reading import as_time, as_time_difference
from worldline.model.time import FOREVER, TIME_MAX, Int64, TimeLike, format_time

BILLION: Final = 10**9
SEGMENTS_MAX = 2**25
"""How many segments of a walk are computed: each takes 24 bytes and about a microsecond."""


class RateWalk(Struct, frozen=True):
    """A random walk of a clock's rate: it changes by up to `step` once in `every` nanoseconds.

    It starts at 0 and stays `within` these bounds; both are in parts per billion.
    """

    step: Int64
    every: Int64
    within: Int64

    def __str__(self) -> str:
        return f"walk({format_rate(self.step)}, every={format_time(self.every)}, within={format_rate(self.within)})"


class ClockJump(Struct, frozen=True):
    """At a true time, the clock is set forward by so much, or back."""

    at: Int64
    by: Int64


class LocalClock(Struct, frozen=True, omit_defaults=True):
    """How a participant's clock differs from true time: in nanoseconds, its drift in parts per billion.

    Offset and drift may be distributions, of which a run draws one value for each participant: see `clock_in_run`.
    """

    offset: Int64 | Latency = 0
    drift: Int64 | Latency = 0
    wander: RateWalk | None = None
    jumps: tuple[ClockJump, ...] = ()

    @property
    def goes_back(self) -> bool:
        return min([jump.by for jump in self.jumps], default=0) < 0

    def __str__(self) -> str:
        """Write it as a federation's file has it."""
        said = [f'offset = "{_quantity_text(self.offset, format_time)}"'] if self.offset else []
        if self.drift:
            said.append(f'drift = "{_quantity_text(self.drift, format_rate)}"')
        if self.wander is not None:
            said.append(f'wander = "{self.wander}"')
        if self.jumps:
            jumps = [f'{{ at = "{format_time(each.at)}", by = "{format_time(each.by)}" }}' for each in self.jumps]
            said.append(f"jumps = [{', '.join(jumps)}]")
        return f"{{ {', '.join(said)} }}" if said else "{}"


ClockLike = LocalClock | Mapping[str, Any]
"""What stands for a local clock: `clock(...)`, or a mapping with the same keys."""

Jumps = Iterable[ClockJump | Mapping[str, Any]]

# --- Reading what people write ---

_WALK = re.compile(r"\s*walk\s*\(([^()]*)\)\s*")
_WALK_FORM = "walk(1ppm, every=1s, within=20ppm)"
_KEYS = ("offset", "drift", "wander", "jumps")


def clock(
    *,
    offset: TimeLike | Latency = 0,
    drift: RateLike | Latency = 0,
    wander: RateWalk | str | Mapping[str, Any] | None = None,
    jumps: Jumps = (),
) -> LocalClock:
    """Make a local clock and check it completely.

    `offset` is what it shows at time 0. `drift` is by how much it is fast, such as ``"40ppm"``, or slow:
    ``"-300ppb"``. Both may be distributions, such as ``"uniform(-40ppm, 40ppm)"``: then they are drawn once in a run.
    `wander` is a random walk of its rate, as ``"walk(1ppm, every=1s, within=20ppm)"``. `jumps` are mappings such as
    ``{"at": "2s", "by": "-5ms"}``, in the order of their times, which are true ones.
    """
    made = LocalClock(
        offset=as_offset(offset),
        drift=as_drift(drift),
        wander=None if wander is None else as_walk(wander),
        jumps=tuple([as_jump(each) for each in jumps]),
    )
    check_clock(made)
    return made


def as_clock(given: ClockLike) -> LocalClock:
    """Take a clock, or a mapping of what `clock` takes; check it."""
    if isinstance(given, LocalClock):
        check_clock(given)
        return given
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{shown(given)} isn't a clock", advice='write clock(offset="3ms", drift="40ppm")')
    for key in given:
        if key not in _KEYS:
            raise ConfigurationError(f"a clock has no {shown(key)}", advice=f"it has {', '.join(_KEYS)}")
    return clock(**given)


def clock_as_plain(described: LocalClock) -> dict[str, Any]:
    """Return a clock as data of which `as_clock` makes an equal one, and that JSON can hold."""
    plain: dict[str, Any] = to_builtins(described)
    return plain


def as_offset(value: TimeLike | Latency | Mapping[str, Any]) -> int | Latency:
    """Take what a clock shows at time 0: a time, which may be negative, or a text such as ``"uniform(-5ms, 5ms)"``."""
    return _as_quantity(value, as_time_difference, "an offset")


def as_drift(value: RateLike | Latency | Mapping[str, Any]) -> int | Latency:
    """Take by how much a clock is fast: a rate, or a text such as ``"uniform(-40ppm, 40ppm)"``."""
    return _as_quantity(value, as_rate, "a drift")


def _as_quantity(value: Any, read: Callable[[Any, str], int], what: str) -> int | Latency:
    made = as_spread(value, lambda number: read(number, what), what) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        try:
            made = convert(value, Latency)
        except MsgspecError:
            raise ConfigurationError(f"{shown(value)} isn't {what}") from None
    if isinstance(made, Fixed):
        return read(made.latency, what)
    return made if isinstance(made, Latency) else read(value, what)


def _quantity_text(quantity: int | Latency, write: Callable[[int], str]) -> str:
    return write(quantity) if isinstance(quantity, int) else spread_text(quantity, write)


def _bounds(quantity: int | Latency, write: Callable[[int], str], what: str) -> tuple[int, int]:
    """Return the least and the most that a quantity can be; refuse one that can't be drawn."""
    if isinstance(quantity, int):
        return quantity, quantity
    text = _quantity_text(quantity, write)
    if isinstance(quantity, Table) and not quantity.values:
        raise ConfigurationError(f"{text} isn't {what}", advice="a table needs at least one value")
    if (isinstance(quantity, Normal) and quantity.deviation < 0) or quantity.minimum > quantity.maximum:
        raise ConfigurationError(f"{text} isn't {what}", advice="write the smaller number first")
    return quantity.minimum, quantity.maximum


def as_walk(value: RateWalk | str | Mapping[str, Any]) -> RateWalk:
    """Take a random walk as text, ``"walk(1ppm, every=1s, within=20ppm)"``, or as a mapping of the same."""
    if isinstance(value, RateWalk):
        return value
    given: Mapping[str, Any] | None = None
    if not isinstance(value, str):
        given = value
    elif call := _WALK.fullmatch(value):
        given = passed_in(call[1], ("step", "every", "within"))
    if not isinstance(given, Mapping) or sorted(given) != ["every", "step", "within"]:
        raise ConfigurationError(f"{shown(value)} isn't a wander", advice=f'write "{_WALK_FORM}"')
    return RateWalk(
        step=as_rate(given["step"], "a walk's step"),
        every=as_time(given["every"], "the time between two steps of a walk"),
        within=as_rate(given["within"], "a walk's bound"),
    )


def as_jump(value: ClockJump | Mapping[str, Any]) -> ClockJump:
    """Take a jump as a mapping such as ``{"at": "2s", "by": "-5ms"}``."""
    if isinstance(value, ClockJump):
        return value
    if not isinstance(value, Mapping) or sorted(value) != ["at", "by"]:
        raise ConfigurationError(f"{shown(value)} isn't a jump", advice='write { at = "2s", by = "-5ms" }')
    return ClockJump(
        at=as_time(value["at"], "the time of a jump"),
        by=as_time_difference(value["by"], "a jump"),
    )


def check_clock(checked: LocalClock) -> None:
    """Refuse a clock that can't be, or that would stand still or run backwards; the error says which part of it."""
    for bound in _bounds(checked.offset, format_time, "an offset"):
        as_time_difference(bound, "an offset")
    walk = checked.wander
    if walk is not None:
        if walk.every < 1:
            raise ConfigurationError("a walk with no time between its steps isn't possible", advice="use at least 1ns")
        if walk.step < 0 or walk.within < 0:
            raise ConfigurationError(f"the steps and the bound of {walk} can't be negative")
    slowest, fastest = _bounds(checked.drift, format_rate, "a drift")
    if max(-slowest, fastest) + (0 if walk is None else walk.within) >= BILLION:
        wandering = "" if walk is None else f", with a walk within {format_rate(walk.within)},"
        harm = "run at twice the speed or more" if fastest >= BILLION else "stop or reverse the clock"
        raise ConfigurationError(
            f"a drift of {_quantity_text(checked.drift, format_rate)}{wandering} would {harm}",
            advice="drift and walk together must stay below 100%, which is 1000000ppm",
        )
    check_jumps(checked.jumps)


def check_jumps(jumps: tuple[ClockJump, ...], refuse: Callable[[int, str], None] | None = None) -> None:
    """Refuse jumps that aren't in order; `refuse` is told which one and why, if there are better places to say it."""
    before = 0
    for place, jump in enumerate(jumps):
        problem = ""
        if not 1 <= jump.at <= TIME_MAX:
            problem = f"it can't jump at {format_time(jump.at)} (use at least 1ns; an offset is there from the start)"
        elif jump.at <= before:
            problem = (
                f"its jump at {format_time(jump.at)} doesn't come after the one at {format_time(before)} "
                "(write jumps in the order of their times)"
            )
        elif jump.by == 0:
            problem = f"its jump at {format_time(jump.at)} is of no length (leave it out)"
        elif sum([abs(each.by) for each in jumps[: place + 1]]) > TIME_MAX:
            problem = f"its jumps are longer than the largest time, {format_time(TIME_MAX)}, together"
        if problem and refuse is None:
            raise ConfigurationError(f"jump {place + 1} of a clock: {problem}")
        if problem and refuse is not None:
            refuse(place, problem)
        before = max(before, jump.at)


# --- In a run ---


class RunningClock:
    """A participant's clock in one run: to and from what it shows.

    Between two jumps, and two steps of the walk, the rate is constant. It remembers the last such piece that it was
    asked about, since the next question is most often about the same.
    """

    def __init__(self, described: LocalClock, seed: int, name: str, steps: Callable[[int], int] | None = None) -> None:
        offset, drift = described.offset, described.drift
        assert isinstance(offset, int), "it hasn't been drawn"
        assert isinstance(drift, int), "it hasn't been drawn"
        self.described = described
        walk = described.wander
        if walk is not None and steps is None:
            steps = partial(_step, walk.step, key_of(seed, "clock", name))
        self._steps = steps  # Draws the step of a walk into a segment.
        self.is_steady = not drift and walk is None and not described.jumps
        self.shift = offset
        # Of each segment: the rate, and what was gained before it, in nanoseconds and billionths of them.
        self._rates = array("q", [drift])
        self._whole = array("q", [0])
        self._rest = array("q", [0])
        self._ats = [jump.at for jump in described.jumps]
        self._shifts = list(accumulate([jump.by for jump in described.jumps], initial=offset))
        self._enter(0)

    def _enter(self, time: int) -> None:
        """Look up the piece that a time is in."""
        walk = self.described.wander
        every = FOREVER if walk is None else walk.every
        segment = time // every
        if segment >= len(self._rates):
            self._walk_to(segment)
        self._origin = segment * every
        self._rate = self._rates[segment]
        self._left = self._rest[segment]
        jump = bisect_right(self._ats, time)
        self._ahead = self._shifts[jump] + self._whole[segment]  # At the origin, but for a fraction.
        self._begins = max(self._origin, self._ats[jump - 1] if jump else 0)
        self._ends = min(self._origin + every, self._ats[jump] if jump < len(self._ats) else FOREVER)

    def local(self, time: int) -> int:
        """Return what the clock shows at a true time."""
        if self.is_steady:
            return time + self.shift
        if time >= self._ends or time < self._begins:
            self._enter(time)
        passed = time - self._origin
        # A product of rate and time can be longer than 64 bits. So whole seconds are multiplied on their own.
        seconds = passed // BILLION
        more = (self._left + (passed - seconds * BILLION) * self._rate) // BILLION
        return time + self._ahead + seconds * self._rate + more

    def true(self, local: int, since: int) -> int:
        """Return the first time from `since` on at which the clock shows at least this; FOREVER if that is never."""
        if self.is_steady:
            return max(since, local - self.shift)
        time = since
        while self.local(time) < local:  # This also enters the piece.
            found = self._origin + self._passing(local - self._ahead - self._origin)
            if found < self._ends:
                return found
            if self._ends > TIME_MAX:
                return FOREVER
            time = self._ends
        return time

    def _passing(self, missing: int) -> int:
        """Return how much time passes from the origin until the clock has moved on by so much; at most FOREVER."""
        return min(-((self._left - missing * BILLION) // (BILLION + self._rate)), FOREVER)

    def due(self, period: int, since: int) -> int:
        """Return the first time from `since` on at which the clock comes to a multiple of a period; FOREVER if never.

        Coming to it includes a jump that leads past it, and after a jump back it comes to it again.
        """
        if self.is_steady:
            return -(-(since + self.shift) // period) * period - self.shift
        time = since
        while not self.is_due(period, time):
            found = self.true((self.local(time) // period + 1) * period, time)
            back = self._jump_back(time, found)
            if back is None:
                return found
            time = back
        return time

    def is_due(self, period: int, time: int) -> bool:
        """Whether the clock comes to a multiple of a period at just this time."""
        shows = self.local(time)
        if self.is_steady or time == 0:
            return shows % period == 0
        return shows // period > self.local(time - 1) // period

    def _jump_back(self, after: int, until: int) -> int | None:
        """Return when the clock is first set back after a time, if that is before another or then."""
        for jump in self.described.jumps[bisect_right(self._ats, after) : bisect_right(self._ats, until)]:
            if jump.by < 0:
                return jump.at
        return None

    def _walk_to(self, segment: int) -> None:
        walk = self.described.wander
        assert walk is not None
        assert self._steps is not None
        if segment >= SEGMENTS_MAX:
            raise UsageError(
                f"its clock wanders every {format_time(walk.every)}, and can't be told so far ahead",
                advice=f"up to {format_time(SEGMENTS_MAX * walk.every)} it can; or make the walk's steps less frequent",
            )
        drift = self._rates[0]
        rate = self._rates[-1] - drift
        whole, rest = self._whole[-1], self._rest[-1]
        for number in range(len(self._rates), segment + 1):
            more, rest = divmod(rest + (drift + rate) * walk.every, BILLION)
            whole += more
            rate = max(-walk.within, min(walk.within, rate + self._steps(number)))
            self._rates.append(drift + rate)
            self._whole.append(whole)
            self._rest.append(rest)


def _step(most: int, key: int, segment: int) -> int:
    """Draw the step of a walk into a segment."""
    return (draw_bits(key, segment) * (2 * most + 1) >> 64) - most


TRUE_TIME = RunningClock(LocalClock(), 0, "")
"""The clock of a participant that has none of its own."""
