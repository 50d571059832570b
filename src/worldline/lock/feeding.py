"""Stands in for the arbiter of one participant that is run alone: it is given what a recording says that it was given.

Sans-IO. What it says is compared with what it said in the recorded run. It needn't ask for the same grants as then: a
recording knows nothing of those, and what a program sees doesn't depend on them. So this answers requests by the rules
of the arbiter, and is far ahead most of the time.

Invariants
----------
F1. A grant carries everything that arrived before its horizon on topics that are subscribed, and wasn't handed over
    before. What has been taken from the recording and nobody subscribes to is kept until its time has passed.
F2. What an unsubscription takes back from the ledger is kept as well: a later subscription may ask for it again.
F3. The run ends for the participant when it did in the recording. If it left by itself and now goes on, that is a
    difference. Whether it left by itself isn't recorded, but follows where others went on for longer. It may peek
    beyond: what it then saw, and never received, isn't recorded, and it is told that nothing comes.
F4. If nobody else may invite or stop, every guest came by its invitation, and the run didn't end before its time unless
    it asked for that, or an operator did.
F5. Nothing is answered that isn't known: where the recording ends before its run did, the participant is stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from worldline.history.replay.following import RecordedParts
from worldline.history.replay.retelling import SENDS, Reader, RetoldDifference, Utterance, compared
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
from worldline.model.draws.names import concerns
from worldline.model.errors import UsageError
from worldline.model.message import Message
from worldline.model.plan import Plan
from worldline.model.time import FOREVER

_GRANTED_AT_ONCE = 512
"""How many messages a grant carries: many, since asking costs more than keeping them for a while."""


_REQUESTS = frozenset((Join, Advance, Next, Peek))


class FeedingOver(BaseException):
    """The participant is stopped here. Not an `Exception`: a program that catches all of those would go on."""


class Feeding:
    """One participant's part in a recorded run, as the arbiter's end of its connection.

    `differs` is called with every difference, in the middle of what the participant does. Unless it raises something,
    the participant goes on. `logged` is told the lines of its log, and `paced`, before it goes on, its new time.
    `rules_alone` says that it may invite and stop, and nobody else.
    """

    def __init__(
        self,
        name: str,
        parts: RecordedParts,
        plan: Plan,
        *,
        differs: Callable[[RetoldDifference], None],
        logged: Callable[[int, str], None] = lambda _at, _text: None,
        paced: Callable[[int], None] | None = None,
        reach: int = 0,
        rules_alone: bool = False,
        read: Reader | None = None,
    ) -> None:
        stay = parts.stay(name)
        if stay is None:
            raise UsageError(f"{name} doesn't take part in the recorded run")
        self.name = name
        self.now = stay.began
        self.sent = 0  # How many messages it has sent,
        self.compared = 0  # and how many of them could be compared.
        self._stay = stay
        self._parts = parts
        self._plan = plan
        self._differs = differs
        self._logged = logged
        self._paced = paced
        self._reach = reach
        self._rules_alone = rules_alone and parts.is_complete
        self._invited: dict[str, int] = {}  # Guest → the earliest time for which it was invited.
        self._stops = FOREVER
        self._read = read
        self._topics: dict[str, int] = {}  # Topic → since when.
        self._kept: deque[Message] = deque()  # Taken from the recording, and not handed over; in order.
        self._is_claimable = False  # Whether there may be something among those that is subscribed to by now.
        self._given: deque[Message] = deque()  # Handed over, and perhaps still ahead of the participant.
        self._known = 0  # Before when everything has been taken from the recording.
        self._is_given_at_end = False  # Whether it was given messages of the very moment at which it left.
        self._request: Advance | Next | Peek | Join | None = None
        self._over: FeedingOver | None = None
        ends = [other.ended for other in parts.stays.values() if other.ended is not None]
        self._last = max(ends, default=FOREVER)

    # --- The participant's connection ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        """Hear what the participant says."""
        if self._over is not None:
            raise self._over
        for event in events:
            kind = event.__class__
            if kind is Publish:
                self._hear_send(event)  # type: ignore[arg-type]
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
            network = self._plan.network
            draws = tuple(row for row in self._plan.draws if concerns(row.name, self.name))
            return StartRun(self.name, self.now, self._plan.seed, network.control_latency, self._reach, draws)
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
            self._is_claimable = True
        elif kind is Subscribe:
            self._move(event.now)
            self._topics[event.subscription.topic] = event.since
            self._is_claimable = True
        elif kind is Unsubscribe:
            self._move(event.now)
            self._unsubscribe(event)
        elif kind is Log:
            self._logged(self.now, event.text)
        elif kind is Invite:
            self._hear_invitation(event)
        elif kind is Stop:
            self._stops = min(self._stops, event.at)
            if event.at < self._last and self._parts.is_complete:
                self._differ(
                    self._utterance("goes on", until=self._last), self._utterance("stops the run", at=event.at)
                )
        elif kind is Leave:
            self._hear_leave(event)

    def _hear_send(self, event: Publish) -> None:
        number = self.sent
        self.sent += 1
        said = self._parts.next_said(self.name)
        if said is None and not self._parts.is_complete:  # What it sent then isn't known.
            return
        self.compared += 1
        if said is None or said[:4] != (event.at, number, event.topic, event.payload):
            now = Utterance(SENDS, event.at, number, event.topic, event.payload)
            self._differ(None if said is None else said.utterance, now)

    def _hear_invitation(self, event: Invite) -> None:
        self._invited[event.newcomer] = min(event.at, self._invited.get(event.newcomer, FOREVER))
        came = self._parts.stay(event.newcomer)
        if self._parts.is_complete and event.at <= self._last and (came is None or came.began > event.at):
            then = None if came is None else self._utterance("invites", newcomer=event.newcomer, at=came.began)
            self._differ(then, self._utterance("invites", newcomer=event.newcomer, at=event.at))

    def _unsubscribe(self, event: Unsubscribe) -> None:
        self._topics.pop(event.topic, None)
        back = [each for each in self._given if each.topic == event.topic and each.arrival >= event.until]
        if back:
            ahead = (each for each in self._given if each.topic != event.topic or each.arrival < event.until)
            self._given = deque(ahead)
            self._kept = deque(sorted([*self._kept, *back]))
            self._is_claimable = True

    def _hear_leave(self, event: Leave) -> None:
        self._move(event.now, complete=event.complete)
        stay = self._stay
        if stay.ended is None or not self._parts.is_complete:
            return
        said = self._parts.next_said(self.name)
        if self._rules_alone:
            self._check_guests()
        if said is not None:
            self._differ(said.utterance, None)
        elif event.now != stay.ended:
            self._differ(self._utterance("leaves", now=stay.ended), self._utterance("leaves", now=event.now))
        elif stay.chain is not None and event.digest.hex() != stay.chain:
            verb = "receives what it is given"
            then, now = (self._utterance(verb, digest=digest) for digest in (stay.chain, event.digest.hex()))
            self._differ(then, now)

    def _check_guests(self) -> None:
        """See whether everybody was invited who came (F4)."""
        for name, stay in self._parts.stays.items():
            invited = self._invited.get(name)
            if name not in self._plan.roster and stay.began != invited:
                then = Utterance("invites", stay.began, self.sent, details=(("newcomer", name), ("at", stay.began)))
                now = None if invited is None else then._replace(details=(("newcomer", name), ("at", invited)))
                self._differ(then, now)

    def _move(self, now: int, *, complete: bool = False) -> None:
        """The participant has come this far: see whether it has passed something that it was given then (F1)."""
        if self._paced is not None and now > self.now:
            self._paced(now)
        self.now = max(self.now, now)
        before = self.now + complete
        while self._kept and self._kept[0].arrival < before:
            missed = self._kept.popleft()
            then = Utterance(f"receives {missed.topic} from {missed.sender}", missed.arrival, self.sent)
            self._differ(then, Utterance(f"doesn't subscribe to {missed.topic}", missed.arrival, self.sent))

    # --- What it is answered ---

    def _granted(self, request: Advance | Next | Peek) -> Grant:
        until = request.to if isinstance(request, Advance) else request.until
        end = FOREVER if self._stay.ended is None else self._stay.ended
        first = FOREVER if isinstance(request, Advance) else request.held
        messages: list[Message] = []
        found = self._claimed()
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
                self._differ(self._utterance("leaves", now=end), self._utterance("goes on", until=until))
        elif final and self._rules_alone and not isinstance(request, Peek):
            self._check_end(request, until)
        if final:
            horizon = max(min(horizon, end), self.now)
        while self._given and self._given[0].arrival < self.now:
            self._given.popleft()
        self._given.extend(messages)
        if not isinstance(request, Peek):
            self._move(first if first < min(horizon, until) else min(horizon, until))
        return Grant(self.name, horizon, messages, final)

    def _claimed(self) -> list[Message]:
        """Take those that are kept and are subscribed to by now (F1)."""
        if not self._is_claimable:
            return []
        self._is_claimable = False
        kept, self._kept = self._kept, deque()
        return self._sorted_out(kept)

    def _sorted_out(self, found: Iterable[Message]) -> list[Message]:
        """Return those that are subscribed to, and keep the others."""
        topics = self._topics
        claimed: list[Message] = []
        for each in found:
            (claimed if topics.get(each.topic, FOREVER) <= each.arrival else self._kept).append(each)
        return claimed

    def _take(self, end: int) -> list[Message]:
        """Take more from the recording; return those that are subscribed to."""
        found, known = self._parts.arrivals(self.name, _GRANTED_AT_ONCE)
        if not found and known <= self._known:  # More would be needed, and there is no more (F5).
            self.stop()
        self._known = known
        # A moment is given as a whole only by `next`; at the end of a run, nothing is.
        self._is_given_at_end = self._is_given_at_end or any(each.arrival == end for each in found[-1:])
        return self._sorted_out(found)

    def _ends_here(self, request: Advance | Next | Peek, until: int) -> bool:
        """Whether the run ended for the participant, as far as is known, rather than that it left by itself (F3)."""
        end = self._stay.ended
        if end == self._plan.end:
            return True
        return (self._waits_in_vain(request, until) or end == self._last) and not self._parts.says_more(self.name)

    def _check_end(self, request: Advance | Next, until: int) -> None:
        """See whether the run ended by plan, because the participant asks for it, or since nothing comes (F4)."""
        end = self._stay.ended
        if self._waits_in_vain(request, until) or end in (self._plan.end, self._stops):
            return
        stops = self._utterance("stops the run", at=self._stops)
        self._differ(
            self._utterance("ends", at=end), stops if self._stops < FOREVER else self._utterance("goes on", until=until)
        )

    def _waits_in_vain(self, request: Advance | Next | Peek, until: int) -> bool:
        return isinstance(request, Next) and until == FOREVER and self.now == self._stay.ended

    # --- What differs ---

    def failure(self, text: str) -> RetoldDifference | None:
        """Return what differs if the participant fails; None, if nothing is known of what it did then."""
        if not self._parts.is_complete and not self._parts.says_more(self.name):
            return None
        return compared(self.name, self._utterance("goes on"), self._utterance(f"raises {text}"), self._read)

    def stop(self) -> NoReturn:
        """Let the participant go no further: whatever it does from now on raises this again."""
        self._over = FeedingOver()
        raise self._over

    def _utterance(self, verb: str, **details: Any) -> Utterance:
        return Utterance(verb, self.now, self.sent, details=tuple(details.items()))

    def _differ(self, then: Utterance | None, now: Utterance | None) -> None:
        difference = compared(self.name, then, now, self._read)
        if difference is not None:
            self._differs(difference)
