"""Everything that Worldline raises and a program may have to catch, in one place.

`WorldlineError` is the root of all errors; they are named by who has to act on them (see `worldline.model.errors`).
What single rooms add are subclasses of those that are here. `RunEnded`, `Crashed` and `EmergencyStop` are no errors,
and no `Exception`s either: they end a program that doesn't expect them.
"""

from __future__ import annotations

from worldline.lock import Crashed, EmergencyStop, RunEnded
from worldline.model.errors import (
    BrokenOff,
    BrokenPromise,
    ConfigurationError,
    InternalError,
    Interrupted,
    LossError,
    ModelError,
    NonDeterminism,
    ObserverFailure,
    PeerError,
    Stuck,
    Unread,
    UsageError,
    WorldlineError,
)

__all__ = [
    "BrokenOff",
    "BrokenPromise",
    "ConfigurationError",
    "Crashed",
    "EmergencyStop",
    "InternalError",
    "Interrupted",
    "LossError",
    "ModelError",
    "NonDeterminism",
    "ObserverFailure",
    "PeerError",
    "RunEnded",
    "Stuck",
    "Unread",
    "UsageError",
    "WorldlineError",
]
