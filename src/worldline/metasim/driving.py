"""Drives any simulator that can run to a time, and take and give messages, as a participant of a run.

Theory of operation
-------------------
A simulator either knows when it sends next (`due`), or finds out only by running.

If it knows, it promises to send nothing before, and asks for its next message until then: others needn't wait for it,
and it stops only where something arrives and where it sends.

If it doesn't, it peeks: nothing arrives before the time that the peek returns, so it runs up to there, and what it has
sent on the way is published with the times at which it was sent. It stops where something arrives, and at least once in
the time that a message takes to reach it; if no other can send it anything, at multiples of 100 ms. Where it stops
depends on the run's plan and messages alone, never on which is quicker: for a simulator that adapts its steps, or
publishes after each, a stop is something that shows.

A simulator lives in its participant's local time: if that has a clock of its own, all times here are those which the
clock shows. So it mustn't be set back in the run: no simulator can be.

At any time: what is sent at that time goes first, then what arrives is delivered, and whatever the simulator makes of
it comes then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from fractions import Fraction
from typing import Protocol

from worldline.federation.participant.participant import Participant
from worldline.lock.refusals import breaks_promise
from worldline.model import FOREVER, MS, TIME_MAX, Message, ModelError, UsageError, as_time, format_time
from worldline.model.time import SECOND

Send = Callable[[str, bytes, int], None]
"""Sends a message: channel, data, and when, in nanoseconds."""


_STRIDE = 100 * MS
"""How far one that is sent nothing goes at a time: others want to hear of it, and a server to hold it."""


class SimulatorEnded(BaseException):
    """A simulator has come to an end of its own: it leaves the run, and the others go on.

    Any method of a simulator may raise it. Not an `Exception`, like `RunEnded`: it isn't an error.
    """


class MessageSimulator(Protocol):
    """A simulator that can be driven. All times are whole nanoseconds."""

    def begin(self, now: int, send: Send) -> None:
        """Begin at a time, usually 0, and send what is to be said first; `send` may be kept, and used from now on."""

    def due(self) -> int | None:
        """Return the next time, after now, at which anything may be sent; TIME_MAX if never.

        None, if only running shows that.
        """

    def advance_to(self, time: int) -> None:
        """Run to a later time, and send what is sent on the way and at that very time."""

    def receive(self, messages: list[Message]) -> None:
        """Take what arrives at the present time, in order."""


def drive(participant: Participant, simulator: MessageSimulator) -> None:
    """Run a simulator under the run's authority, until the run ends."""
    _check_clock(participant)
    clock = participant.clock
    promised = 0
    begun = clock.now

    def send(channel: str, data: bytes, at: int) -> None:
        if at < promised:
            raise breaks_promise(at, promised).concerning(participant.name, at)
        is_skipped = 0 < promised <= at < clock.now  # A jump of the clock has led past the time that was waited for.
        when = None if is_skipped else at
        participant.publish(channel, data, when, at_once=False, clock="local")  # What it says next follows soon.

    with suppress(SimulatorEnded):
        simulator.begin(begun, send)
        while not participant.ended:
            due = simulator.due()
            if due is None:
                _run_ahead(participant, simulator)
                continue
            if due <= clock.now:
                raise _too_early(participant, due, is_first=begun == clock.now > 0)
            before = clock.now
            promise = due if due > promised else None
            promised = due
            if due >= TIME_MAX:
                messages = participant.next(promise=promise)  # Never is never, whatever a clock shows.
            else:
                messages = participant.next(due, promise=promise, clock="local")
            if clock.now > before:
                simulator.advance_to(clock.now)
            if messages:
                simulator.receive(messages)


def _run_ahead(participant: Participant, simulator: MessageSimulator) -> None:
    """Run as far as nothing arrives, then go there; or take what arrives now."""
    alone = participant.reach == FOREVER
    clock = participant.clock
    now = participant.peek(min((participant.now // _STRIDE + 1) * _STRIDE, TIME_MAX) if alone else None)
    if now > participant.now:
        if clock.local(now) > clock.now:
            simulator.advance_to(clock.local(now))
        participant.advance(now)
    elif not participant.ended:
        simulator.receive(participant.next(now + 1))


def _too_early(participant: Participant, due: int, *, is_first: bool) -> ModelError:
    """Return what to say of a simulator that is to send when that time has passed."""
    begins = f"it begins at {format_time(participant.clock.now)}, as `begin` is told: not at 0"
    return ModelError(
        f"its simulator is to send next at {format_time(due)}, which isn't after now",
        participant=participant.name,
        at=participant.now,
        advice=begins if is_first else "send what is due in begin and advance_to; due is the next time after that",
    )


def _check_clock(participant: Participant) -> None:
    """Refuse a clock that shows what no simulator can: a time before 0, or one that is set back."""
    clock = participant.clock
    if clock.now < 0:
        raise UsageError(
            f"its clock shows {format_time(clock.now)}, and no simulator can stand there",
            participant=participant.name,
            at=participant.now,
            advice="give its clock an offset of 0 or more",
        )
    if clock.goes_back:
        raise UsageError(
            "its clock is set back in the run, and no simulator can go back",
            participant=participant.name,
            at=participant.now,
            advice="leave out jumps whose `by` is negative",
        )


# Times of simulators that count seconds as floats, to and from whole nanoseconds.
#
# In this room a float is a number of seconds, as it is for Drake and MuJoCo. A text has its unit with it. A whole
# number is refused: it is nanoseconds everywhere else in Worldline and seconds everywhere in Drake, so one would
# be wrong.

Seconds = float | str | timedelta

_WHOLE = 1e-6  # By this much of a nanosecond, a period may be off and still count as whole.


def as_nanoseconds(seconds: Seconds, what: str) -> int:
    """Return a time that a user gives, rounded to the nearest nanosecond."""
    if isinstance(seconds, str | timedelta):
        return as_time(seconds, what)
    if isinstance(seconds, float) or hasattr(seconds, "dtype"):  # numpy's floats may not derive from Python's.
        value = float(seconds)
        if not 0 <= value <= TIME_MAX / SECOND:
            raise UsageError(f"{what} of {value} seconds isn't possible", advice="use 0 or more seconds")
        return nanoseconds(value)
    if isinstance(seconds, int):
        raise UsageError(
            f"{what} of {seconds!r} may be meant in seconds or in nanoseconds",
            advice=f'write {seconds}.0 or "{seconds}ns"',
        )
    raise UsageError(f"{what} is seconds or a text, not {type(seconds).__name__}", advice='write 0.01 or "10ms"')


def nanoseconds(seconds: float) -> int:
    """Return the nearest whole nanosecond."""
    return round(seconds * SECOND)


class Grid:
    """The times offset + k × period, as a simulator computes them, and as whole nanoseconds.

    The product of two floats often lies beside the float that is nearest to its nanosecond. A simulator that is sent to
    the latter stops before its own event, or just after it, once in eight times for a period of 10 ms. So to mean
    the event is to name the simulator's own float. `fused` says that the simulator rounds the sum alone, as where a
    processor multiplies and adds at once, and not the product before it: with an offset, that is often another float.
    """

    def __init__(self, period: float, offset: float = 0.0, *, fused: bool = False) -> None:
        self.period = period
        self.offset = offset
        self._fused = fused and offset != 0.0
        self._period_ns = period * SECOND
        # A third of a second isn't a whole number of nanoseconds: each of its times is rounded, and so is a delay.
        self.is_rounded = any(abs(each * SECOND - nanoseconds(each)) > _WHOLE for each in (period, offset))

    def float_at(self, time: int) -> float | None:
        """Return the grid's own float for a time in nanoseconds; None if that isn't on the grid."""
        number = round((time - self.offset * SECOND) / self._period_ns)
        seconds = self._seconds(number)
        return seconds if number >= 0 and nanoseconds(seconds) == time else None

    def after(self, time: int) -> int:
        """Return the first time on the grid after a time, in nanoseconds."""
        number = max(0, int((time - self.offset * SECOND) / self._period_ns))
        while (found := nanoseconds(self._seconds(number))) <= time:
            number += 1
        return found

    def _seconds(self, number: int) -> float:
        if self._fused:
            return float(Fraction(self.offset) + number * Fraction(self.period))
        return self.offset + number * self.period
