"""The border between a SimPy model, whose times are any numbers, and everything else, where they are nanoseconds.

One rule: a time is multiplied by the environment's `unit` and rounded to the nearest nanosecond, a half to the even
one. What is before 0 counts as 0, and what is later than the last time as that. Inside, nothing is ever rounded.
"""

from __future__ import annotations

from typing import Any

from worldline.history.journal import run_digest
from worldline.model.errors import UsageError, shown
from worldline.model.reading import as_time
from worldline.model.time import TIME_MAX

ENVIRONMENT = "environment"
"""The member that stands for an Environment as a whole."""


def unit_of(env: Any) -> int:
    """Return how long a unit of time is, in nanoseconds."""
    found = as_time(env.unit, "the unit of an Environment's time")
    if found == 0:
        raise UsageError("the unit of an Environment's time is 0", advice="write unit='1s', or another time")
    return found


def nanoseconds(time: Any, unit: int) -> int:
    """Return a time of a model in nanoseconds."""
    at = time * unit
    if at != at:  # What is no number is never.
        return TIME_MAX
    nearest: Any = round(min(max(at, 0), TIME_MAX))
    return int(nearest)  # Of NumPy's numbers, it is one of those.


def check_tellable(time: Any, unit: int) -> None:
    """Refuse a time that no recording could tell from later ones."""
    if not time * unit <= TIME_MAX:
        raise UsageError(
            f"the time {shown(time)} is too late to be recorded, if a unit is {unit} ns",
            advice="say that it is shorter: --set unit=1us, or Environment(unit='1us')",
        )


def units(text: str, unit: int) -> Any:
    """Read a time as the model counts it: a bare number is in its units, anything else a time such as 5min."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return as_time(text, "a time for --until") / unit


def digest_of(env: Any) -> bytes:
    """Return the digest of an environment by itself."""
    return run_digest([(ENVIRONMENT, nanoseconds(env.now, unit_of(env)), chain_bytes(env))])


def chain_bytes(env: Any) -> bytes:
    return int(env.chain).to_bytes(8, "big")
