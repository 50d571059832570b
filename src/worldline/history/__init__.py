"""History: what happened in a run, whichever room made it.

Every room tells an `Observer` the same few things, returns an `Outcome`, and says how far it is by a `Status`. So
recording, comparing and showing are written once, for all of them.
"""

from worldline.history.journal import Journal, Received, Sent, run_digest
from worldline.history.observer import Observer
from worldline.history.outcome import End, Outcome, Status, WaitReason

__all__ = [
    "End",
    "Journal",
    "Observer",
    "Outcome",
    "Received",
    "Sent",
    "Status",
    "WaitReason",
    "run_digest",
]
