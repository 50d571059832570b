"""A participant that is run again: what it says is compared with what it said, and answered as it was.

Sans-IO. The *script* is one participant's conversation with its arbiter, as it was: what it said, in order, and after
which of it which answer came. The script's owner tells it (`said`, `answered`), and tells what the participant says
now (`hear`). Either may be ahead: of a participant that was killed and has come back the script is ahead, of a twin at
times the twin. `due` are the answers that the participant is to be given now.

Why that works
--------------
R1. What a ledger tells follows from its program and from the answers it was given. So a deterministic program that is
    given the same answers says the same, in the same order. Only `Reached` depends on the clock, and on nothing else
    does anything depend that is told: it is passed over, here as there.
R2. An answer depends on what others had said by then. So answers are given as they were, rather than computed anew:
    another horizon would let the program ask for other times.
R3. An answer is due when everything has been said again that was said before it came, never sooner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from worldline.history.replay import SENDS, Utterance, compared
from worldline.lock.events import (
    Action,
    Advance,
    Down,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Next,
    ParticipantEvent,
    Peek,
    Promise,
    Publish,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
)
from worldline.model.time import FOREVER

# What a participant says again if it is given the same answers (R1).
_VERBS: dict[type, str] = {
    Join: "joins",
    Publish: SENDS,
    Promise: "promises",
    Subscribe: "subscribes",
    Unsubscribe: "unsubscribes",
    Down: "is down",
    Invite: "invites",
    Stop: "stops the run",
    Log: "logs",
    Advance: "advances",
    Next: "waits for its next message",
    Peek: "peeks",
    Leave: "leaves",
}
_MOVES = (Join, Advance, Next)


class Rehearsal:
    """One participant's script, and how much of it has been said again.

    `open_answer` reads answers that are kept in another form, to say what differs. A participant that doesn't begin at
    the beginning has `skipped` events at the head of the script behind it, and has `sent` messages by the time `now`.
    `advice` goes with what differs.
    """

    def __init__(
        self,
        name: str,
        *,
        open_answer: Callable[[Any], Action] = lambda answer: answer,
        skipped: int = 0,
        sent: int = 0,
        now: int = 0,
        advice: str | None = None,
    ) -> None:
        self.name = name
        self.repeated = 0  # How many events were said again.
        self._open_answer = open_answer
        self._script: deque[Any] = deque()  # What is still to be said again, and each answer in between, in a tuple.
        self._early: deque[ParticipantEvent] = deque()  # What it says now, and the script doesn't have yet.
        self._skipped = skipped
        self._advice = advice
        self._sent = sent
        self._now = now  # Its time, as far as it has been told.
        self._asked: ParticipantEvent | None = None  # The last thing that it has said again to move on,
        self._answer: Any = None  # and the answer to that.
        self._moves = False  # Whether the next answer is.

    # --- The script ---

    def said(self, event: ParticipantEvent) -> None:
        """Add what the participant said before."""
        if event.__class__ in _VERBS:
            if self._skipped:
                self._skipped -= 1
                return
            self._script.append(event)
            if self._early:
                self._compare()

    def answered(self, answer: Any) -> None:
        """Add what it was answered before."""
        self._script.append((answer,))

    # --- The participant ---

    def hear(self, event: ParticipantEvent) -> None:
        """Take what it says now; raise `NonDeterminism` if it isn't what it said before."""
        if event.__class__ not in _VERBS:
            if event.__class__ is Reached:
                self._now = max(self._now, event.now)
            return
        script = self._script
        # Nearly always: the script is ahead, and there is nothing to be told twice.
        if not self._early and script and script[0] == event:
            script.popleft()
            self._repeat(event)
            return
        self._early.append(event)
        self._compare()

    def due(self) -> list[Any]:
        """Return the answers that it is to be given now, and forget them (R3)."""
        script = self._script
        answers = []
        while script and script[0].__class__ is tuple:
            answers += script.popleft()
        if answers and self._moves:
            self._answer = answers[-1]
        return answers

    def finish(self) -> None:
        """The participant has no more to say: raise if it had."""
        self.due()
        if self._script:
            self._differ(self._script[0], None)

    @property
    def is_used_up(self) -> bool:
        """Whether all of the script, as far as it is told, has been said again and answered."""
        return not self._script

    def beyond(self) -> list[ParticipantEvent]:
        """Return what it has said beyond the script, and forget it."""
        beyond = list(self._early)
        self._early.clear()
        return beyond

    @property
    def is_beyond(self) -> bool:
        """Whether it has said more than the script has, as far as it is told."""
        return bool(self._early)

    def _compare(self) -> None:
        script, early = self._script, self._early
        while script and early and script[0].__class__ is not tuple:
            then, now = script[0], early[0]
            if then != now:
                self._differ(then, now)
            script.popleft()
            early.popleft()
            self._repeat(now)

    def _repeat(self, event: ParticipantEvent) -> None:
        self.repeated += 1
        if event.__class__ is Publish:
            self._sent += 1
        elif event.__class__ in _MOVES:
            self._asked, self._answer, self._moves = event, None, True
        elif event.__class__ is Peek:
            self._moves = False

    def _differ(self, then: ParticipantEvent | None, now: ParticipantEvent | None) -> None:
        difference = compared(self.name, self.utterance(then), self.utterance(now))
        if difference is not None:
            raise difference.error(self._advice)

    # --- What is said of it ---

    def time(self) -> int:
        """Return the participant's time, as far as it follows from what it has said and was answered."""
        if self._answer is None:
            return self._now
        answer = self._open_answer(self._answer)
        if isinstance(answer, StartRun):
            return max(self._now, answer.now)
        if isinstance(answer, Grant) and self._asked is not None:
            return max(self._now, _time_after(self._now, self._asked, answer))
        return self._now

    def utterance(self, event: ParticipantEvent | None) -> Utterance | None:
        """Return an event at this place as something that can be compared field by field."""
        if event is None:
            return None
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        if isinstance(event, Publish):
            return Utterance(SENDS, event.at, self._sent, event.topic, event.payload)
        if isinstance(event, Log):
            return Utterance(_VERBS[Log], self.time(), self._sent, "", event.text.encode())
        return Utterance(_VERBS[type(event)], self.time(), self._sent, details=tuple(fields.items()))


def _time_after(now: int, asked: ParticipantEvent, grant: Grant) -> int:
    """Return where a grant takes a participant that has asked for a time."""
    if isinstance(asked, Advance):
        return min(asked.to, grant.horizon)
    if not isinstance(asked, Next):
        return now
    first = min(asked.held, min((message.arrival for message in grant.messages), default=FOREVER))
    reached = min(asked.until, grant.horizon)
    if first < reached:
        return first
    return now if reached == FOREVER else reached
