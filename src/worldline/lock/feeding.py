"""Stands in for the arbiter of one participant that is run alone: it is given what a recording says that it was given.

Sans-IO. What it says is compared with what it said in the recorded run. It needn't ask for the same grants as then: a
recording knows nothing of those, and what a program sees doesn't depend on them. So this answers requests by the rules
of the arbiter, and is far ahead most of the time.

Invariants
----------
F1. A grant carries everything that arrived before its horizon on topics that are subscribed, and wasn't handed over
    before. What has been taken from the recording and isn't subscribed to is kept until its time has passed.
F2. What an unsubscription takes back from the ledger is kept as well: a later subscription may ask for it again.
F3. The run ends for the participant when it did in the recording. If it left by itself and now goes on, that is a
    difference. Whether it left by itself isn't recorded, but follows where others went on for longer. It may peek
    beyond: what it then saw, and never received, isn't recorded, and it is told that nothing comes.
F4. If no other may invite or stop, every guest came by its invitation, and the run didn't end before its time unless
    it asked for that, or an operator did.
F5. Nothing is answered that isn't known: where the recording ends before its run did, the participant is stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from worldline.history.replay import RecordedParts, RetoldDifference, Utterance, compared
from worldline.lock.events import (
    Action,
    Advance,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Next,
    ParticipantEvent,
    Peek,
    Publish,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
)
from worldline.lock.ledger import Wire
from worldline.model.draws.names import concerns
from worldline.model.errors import UsageError
from worldline.model.lifecycle import MEASURE_LINE
from worldline.model.message import Message
from worldline.model.plan import Plan
from worldline.model.time import FOREVER

_GRANTED_AT_ONCE = 512
"""How many messages a grant carries: many, since asking costs more than keeping them for a while."""


_REQUESTS = frozenset((Join, Advance, Next, Peek))


class FeedingOver(BaseException):
    """The participant is stopped here. Not an `Exception`: a program that catches all of those would go on."""


class Feeding(Wire):
    """One participant's part in a recorded run, as the arbiter's end of its connection.

    `parts` is told every difference. Unless that raises something, the participant goes on. `logged` is told the lines
    of its log, and `paced`, before it goes on, its new time. `rules_alone` says that no other may invite and stop.
    """

    def __init__(
        self,
        name: str,
        parts: RecordedParts,
        plan: Plan,
        *,
        logged: Callable[[int, str], None] = lambda _at, _text: None,
        paced: Callable[[int], None] | None = None,
        reach: int = 0,
        rules_alone: bool = False,
    ) -> None:
        self.part = parts.of(name)
        stay = self.part.stay
        if stay is None:
            raise UsageError(f"{name} doesn't take part in the recorded run")
        self.now = stay.began
        self._plan = plan
        self._logged = logged
        self._paced = paced
        draws = tuple(row for row in plan.draws if concerns(row.name, name))
        self._start = StartRun(name, self.now, plan.seed, plan.network.control_latency, reach, draws)
        # Guest → the earliest time for which it was invited. None: others may invite and stop, too.
        self._invited: dict[str, int] | None = {} if rules_alone and self.part.is_known else None
        self._stops = FOREVER
        self._topics: dict[str, int] = {}  # Topic → since when.
        self._kept: deque[Message] = deque()  # Taken from the recording, and not handed over; in order.
        self._given: deque[Message] = deque()  # Handed over, and perhaps still ahead of the participant.
        self._known = 0  # Before when everything has been taken from the recording.
        self._is_given_at_end = False  # Whether it was given messages of the very moment at which it left.
        self._request: Advance | Next | Peek | Join | None = None
        self._over: FeedingOver | None = None

    @property
    def _ended(self) -> int:
        """When it left; FOREVER, if that isn't known."""
        stay = self.part.stay
        return FOREVER if stay is None or stay.ended is None else stay.ended

    @property
    def _last(self) -> int:
        """When the last of all left, as far as is known."""
        return max((stay.ended for stay in self.part.stays.values() if stay.ended is not None), default=FOREVER)

    # --- The participant's connection ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        """Hear what the participant says."""
        if self._over is not None:
            raise self._over
        for event in events:
            kind = event.__class__
            if kind is Publish:
                self.part.compare_sent(event.at, event.topic, event.payload)  # type: ignore[union-attr]
            elif kind is Reached and not self._kept and self._paced is None:
                self.now = event.now  # type: ignore[union-attr] # Nearly always there is nothing to be looked after.
            elif kind in _REQUESTS:
                self._request = event  # type: ignore[assignment]
                if kind is Join:
                    self._hear(event)
            else:
                self._hear(event)
        events.clear()

    def ask(self, events: list[ParticipantEvent]) -> Action:
        """Hear what the participant says, and answer its request; the last one, if its wait was interrupted."""
        self.tell(events)
        request = self._request
        if isinstance(request, Join):
            return self._start
        assert request is not None
        return self._granted(request)

    def is_due(self, urgent: bool) -> bool:
        """Everything is told at once: a difference is to show where it comes from."""
        return True

    # --- What it says ---

    def _hear(self, event: Any) -> None:
        kind = event.__class__
        if kind is Reached:
            self._move(event.now)
        elif kind is Join:
            for subscription in event.subscribes:
                self._topics[subscription.topic] = self.now
        elif kind is Subscribe:
            self._move(event.now)
            self._topics[event.subscription.topic] = event.since
        elif kind is Unsubscribe:
            self._move(event.now)
            self._unsubscribe(event)
        elif kind is Log:
            if event.kind != MEASURE_LINE:
                self._logged(self.now, event.text)
        elif kind is Invite:
            self._hear_invitation(event)
        elif kind is Stop:
            self._stops = min(self._stops, event.at)
            if event.at < self._last and self.part.is_known:
                self.part.differ(self._saying("goes on", until=self._last), self._saying("stops the run", at=event.at))
        elif kind is Leave:
            self._hear_leave(event)

    def _hear_invitation(self, event: Invite) -> None:
        if self._invited is not None:
            self._invited[event.newcomer] = min(event.at, self._invited.get(event.newcomer, FOREVER))
        came = self.part.stays.get(event.newcomer)
        if self.part.is_known and event.at <= self._last and (came is None or came.began > event.at):
            then = None if came is None else self._saying("invites", newcomer=event.newcomer, at=came.began)
            self.part.differ(then, self._saying("invites", newcomer=event.newcomer, at=event.at))

    def _unsubscribe(self, event: Unsubscribe) -> None:
        self._topics.pop(event.topic, None)
        back = [each for each in self._given if each.topic == event.topic and each.arrival >= event.until]
        if back:
            ahead = (each for each in self._given if each.topic != event.topic or each.arrival < event.until)
            self._given = deque(ahead)
            self._kept = deque(sorted([*self._kept, *back]))

    def _hear_leave(self, event: Leave) -> None:
        self._move(event.now, complete=event.complete)
        if self._invited is not None:
            self._check_guests(self._invited)
        self.part.compare_end("leaves", event.now, event.digest, self.now)

    def _check_guests(self, invitations: dict[str, int]) -> None:
        """See whether each guest that came was invited (F4)."""
        for name, stay in self.part.stays.items():
            invited = invitations.get(name)
            if name not in self._plan.roster and stay.began != invited:
                then = self.part.saying("invites", stay.began, newcomer=name, at=stay.began)
                now = None if invited is None else then._replace(details=(("newcomer", name), ("at", invited)))
                self.part.differ(then, now)

    def _move(self, now: int, *, complete: bool = False) -> None:
        """The participant has come this far: see whether it has passed something that it was given then (F1)."""
        if self._paced is not None and now > self.now:
            self._paced(now)
        self.now = max(self.now, now)
        before = self.now + complete
        while self._kept and self._kept[0].arrival < before:
            missed = self._kept.popleft()
            then = self.part.saying(f"receives {missed.topic} from {missed.sender}", missed.arrival)
            self.part.differ(then, self.part.saying(f"doesn't subscribe to {missed.topic}", missed.arrival))

    # --- What it is answered ---

    def _granted(self, request: Advance | Next | Peek) -> Grant:
        until = request.to if isinstance(request, Advance) else request.until
        end = self._ended
        first = FOREVER if isinstance(request, Advance) else request.held
        messages: list[Message] = []
        kept, self._kept = self._kept, deque()
        found = self._sorted_out(kept)  # What is subscribed to by now (F1).
        while True:
            messages += found
            if found and not isinstance(request, Advance):
                first = min(first, min(message.arrival for message in found))
            enough = first + 1 if first < until else min(until, end if isinstance(request, Advance) else end + 1)
            if self._known >= enough:
                break
            found = self._take(end)
        horizon = min(self._known, end + self._is_given_at_end)
        final = horizon < until and not first < horizon
        if final and not self._ends_here(request, until):
            if isinstance(request, Peek):
                horizon, final = until, False
            else:
                self.part.differ(self._saying("leaves", now=end), self._saying("goes on", until=until))
        elif final and self._invited is not None and not isinstance(request, Peek):
            self._check_end(request, until)
        if final:
            horizon = max(min(horizon, end), self.now)
        while self._given and self._given[0].arrival < self.now:
            self._given.popleft()
        self._given.extend(messages)
        if not isinstance(request, Peek):
            self._move(first if first < min(horizon, until) else min(horizon, until))
        return Grant(self.part.name, horizon, messages, final)

    def _sorted_out(self, found: Iterable[Message]) -> list[Message]:
        """Return those that are subscribed to, and keep the others."""
        topics = self._topics
        claimed: list[Message] = []
        for each in found:
            (claimed if topics.get(each.topic, FOREVER) <= each.arrival else self._kept).append(each)
        return claimed

    def _take(self, end: int) -> list[Message]:
        """Take more from the recording; return those that are subscribed to."""
        found, known = self.part.arrivals(_GRANTED_AT_ONCE)
        if not found and known <= self._known:  # More would be needed, and there is no more (F5).
            self.stop()
        self._known = known
        # A moment is given as a whole only by `next`; at the end of a run, nothing is.
        self._is_given_at_end = self._is_given_at_end or any(each.arrival == end for each in found[-1:])
        return self._sorted_out(found)

    def _ends_here(self, request: Advance | Next | Peek, until: int) -> bool:
        """Whether the run ended for the participant, as far as is known, rather than that it left by itself (F3)."""
        end = self._ended
        if end == self._plan.end:
            return True
        return (self._waits_in_vain(request, until) or end == self._last) and not self.part.says_more()

    def _check_end(self, request: Advance | Next, until: int) -> None:
        """See whether the run ended by plan, because the participant asks for it, or since nothing comes (F4)."""
        end = self._ended
        if self._waits_in_vain(request, until) or end in (self._plan.end, self._stops):
            return
        stops = self._saying("stops the run", at=self._stops)
        self.part.differ(
            self._saying("ends", at=end), stops if self._stops < FOREVER else self._saying("goes on", until=until)
        )

    def _waits_in_vain(self, request: Advance | Next | Peek, until: int) -> bool:
        return isinstance(request, Next) and until == FOREVER and self.now == self._ended

    # --- What differs ---

    def failure(self, text: str) -> RetoldDifference | None:
        """Return what differs if the participant fails; None, if nothing is known of what it did then."""
        if not self.part.is_known and not self.part.says_more():
            return None
        return compared(self.part.name, self._saying("goes on"), self._saying(f"raises {text}"))

    def stop(self) -> NoReturn:
        """Let the participant go no further: whatever it does from now on raises this again."""
        self._over = FeedingOver()
        raise self._over

    def _saying(self, verb: str, **details: Any) -> Utterance:
        return self.part.saying(verb, self.now, **details)
