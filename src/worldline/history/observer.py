# cython: auto_pickle=True
"""What a recorder, or another observer, is told of a run.

An observer is told things as a run learns of them, and between different members in an order that luck decides. What
it makes of them must not show that order. Three rules hold whichever room tells:

H1. Whatever one member does is told in the order in which it does it, and a message before what becomes of it.
H2. A message's arrivals are foretold when it is sent. Until its `until` has passed that may change: it is lost instead,
    or its receiver stops listening; after that nothing is added or taken back. It arrives later than it is sent; only
    one that no member has sent (`OUTSIDE`) may arrive at once.
H3. After `passed(time)`, nothing is told that happens before that time.

So what is before the last `passed` is final, and can be put into one order by its times and names alone.

Times are whole nanoseconds. Payloads are bytes; what a room has as objects it encodes as JSON (`plain.encoded`).
"""

from __future__ import annotations

from typing import Any

LOG, META, MEASURE = "worldline/log", "worldline/meta", "worldline/measure"
"""The topics of notes that all rooms have: lines that members write, what the simulator does to them, and numbers that
they measure, as an object with one field: the number, by its name. Lines, and what the simulator does, have a `kind`
if they tell of a fault (`FAULT_KINDS` in `model.lifecycle`)."""

STATE = "worldline/state"
"""The topic of notes that say what a member holds from then on: an object of values by their names."""

OUTSIDE = ""
"""The name of no member: the sender of what comes from outside. No member can have it."""

UNDER_WAY = "still under way at the end"
"""Why a message isn't received that the end of the run overtook."""

DOWN = "lost while its receiver was down"
"""Why a message isn't received that reaches a participant of a federation which has crashed, or hasn't booted."""

DEAD = "its target was dead"
"""Why a message isn't received for which no receiver was there."""

TOLD = ("began", "sent", "arrives", "lasts", "closed", "noted", "ended", "passed")
"""The methods of an observer: all that it is told."""


class Observer:
    """Sees who takes part from when to when, every message and where it goes, and what members note.

    Derive from it, and write the methods for what you want to know; the others do nothing.

    `detail` is the room's own account of the same thing, for an observer of that room that keeps it; others ignore it.
    It can be pickled, since it may come from a worker.
    """

    def began(self, who: str, at: int) -> None:
        """A member takes part from then on."""

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        """A member has sent its message of that number; what becomes of it is settled once `until` has passed."""

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        """The message reaches a receiver then; or would, but is lost for a reason. What was said last holds."""

    def lasts(self, sender: str, number: int, until: int) -> None:
        """The message may be under way for longer than was said: a receiver has come to whom it has to queue.

        It lasts FOREVER while it isn't known how long it is held; that ends when another time is said.
        """

    def closed(self, receiver: str, topic: str, at: int) -> None:
        """Nothing on this topic reaches the receiver then or later, whatever was said, unless said anew."""

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        """Something happened to a member that is no message of its own: a timer, a line in its log.

        Without a payload it only says in the room's own words (`detail`) what was told already.
        """

    def ended(self, who: str, at: int, chain: bytes) -> None:
        """A member takes part no longer; its chain is the hash of all that it received and sent.

        It may be told later than H3 would have it, since a chain may go on with what others do who came from the
        member. The chain of such another is empty, once it is part of the member's.
        """

    def passed(self, time: int) -> None:
        """Nothing that happens before this time will be told any more."""
