"""What a participant is told when it does what it may not: worded once, for both ends of the lock.

A ledger refuses what its own program does, and nothing has happened then. What comes to the arbiter nonetheless is the
work of a ledger that doesn't check, such as another client's; it is refused in the same words. Whose they are and when
it was is added where they are raised (`concerning`).

`kind` is who has to act: the caller, or the author of the program at the other end.
"""

from __future__ import annotations

from collections.abc import Iterable

from worldline.lock.states import State
from worldline.model.errors import BrokenPromise, UsageError, WorldlineError
from worldline.model.time import format_time

Kind = type[WorldlineError]


def impossible(what: str, state: State, advice: str, kind: Kind = UsageError) -> WorldlineError:
    """Refuse what isn't in the table of states."""
    if state is State.JOINED:
        return kind(f"{what} isn't possible: the run hasn't started for it", advice=advice)
    return kind(f"{what} isn't possible while it is {state.value}", advice=advice or None)


def undeclared(topic: str, declared: Iterable[str]) -> UsageError:
    return UsageError(
        f"it didn't declare that it publishes on {topic!r}", advice=f"it declared {', '.join(declared) or 'no topics'}"
    )


def too_large(size: int, limit: int, what: str = "payload") -> UsageError:
    advice = f"the limit is {limit:,}; {'send it in parts, or ' if what == 'payload' else ''}raise limits.payload"
    return UsageError(f"a {what} of {size:,} bytes is too large", advice=advice)


def cant_go_back(target: int) -> UsageError:
    return UsageError(
        f"it can't go back to {format_time(target)}",
        advice="that is a time of the run; for a duration from now, write `within`, or `by` of an advance",
    )


def breaks_promise(attempt: int, promise: int) -> BrokenPromise:
    return BrokenPromise(
        f"a send at {format_time(attempt)} breaks its promise until {format_time(promise)}",
        advice="nothing was sent; send later, or promise less",
        promise=promise,
        attempt=attempt,
    )


def takes_back_promise(until: int, given: int, kind: Kind = UsageError) -> WorldlineError:
    return kind(
        f"a promise until {format_time(until)} takes back the one until {format_time(given)}",
        advice="promises only grow",
    )


def subscribed_already(topic: str, kind: Kind = UsageError) -> WorldlineError:
    return kind(f"it already subscribes to {topic!r}")


def not_subscribed(topic: str, kind: Kind = UsageError) -> WorldlineError:
    return kind(f"it doesn't subscribe to {topic!r}")


def no_control(verb: str) -> UsageError:
    return UsageError(f"it may not {verb}", advice="declare controls=True")


def control_too_early(verb: str, at: int, earliest: int) -> UsageError:
    return UsageError(
        f"{verb} at {format_time(at)} is too early", advice=f"the control link takes until {format_time(earliest)}"
    )


def no_estop() -> UsageError:
    return UsageError(
        "this federation has no emergency stop",
        advice='say within which time all are told: estop="20ms" of a Federation, or [estop] latency in its file',
    )
