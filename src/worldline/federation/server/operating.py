"""The operator's desk: the server's end of a connection over which an operator looks at a run and drives it.

To the host, the connection is one that carries no participants: it is heard like a trunk, and gives up none when it
ends. Everything here happens in the server's thread, between two turns, so the arbiter stands still while it is looked
at. Looking changes nothing; pausing and stepping move the operator's own barrier, which changes when things happen and
never what happens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import Future
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import structs

from worldline.federation.peer_process import condition_of
from worldline.federation.server.host import Host
from worldline.federation.server.session import OtherEnd, Session
from worldline.lock.states import ASKING, WAITING, Phase, State
from worldline.lock.why.reasons import Activity, Situation, situation_of
from worldline.model import FOREVER, TIME_MAX, Interrupted, UsageError, WorldlineError, format_time
from worldline.model.errors import shortened
from worldline.wire.operator import (
    AskSituation,
    EndRun,
    OperatorAnswer,
    OperatorWord,
    OrderDone,
    OrderRefused,
    OrderTaken,
    PauseRun,
    ResumeRun,
    RunOver,
    SituationTold,
    StepRun,
    decode_operator_word,
    operator_frame,
)

if TYPE_CHECKING:
    from worldline.federation.server.server import Server

# Remembers, now and then, how far a run was: so that what the lock counts in events can be told in seconds.
#
# The lock has no clock, and to note the time of every event would cost every event something. So the server notes, as
# often as it looks at its clock anyway, how many events there have been; when one of them was is known to within such a
# look. Of what is long past, fewer looks are kept.

_KEPT = 256
_APART_S = 0.05
_LATELY_S = 2.0
_LEAST_S = 0.25  # What happens in less says nothing of a pace.


class Milestones:
    """The moments of one run that are remembered, the oldest first."""

    def __init__(self) -> None:
        # How many events there had been at each moment, when that was, and how far simulated time was.
        self._passed: list[tuple[int, float, int]] = []

    def note(self, events: int, wall_s: float, time: int) -> None:
        """Remember a moment, unless nothing has happened since the last one, or that was just now."""
        passed = self._passed
        if passed and (passed[-1][0] == events or wall_s - passed[-1][1] < _APART_S):
            return
        passed.append((events, wall_s, time))
        if len(passed) > _KEPT:
            half = len(passed) // 2
            del passed[1:half:2]

    def when(self, event: int) -> float | None:
        """Return the first look after which this event had happened; None if there was no look since."""
        place = bisect_right(self._passed, event, key=itemgetter(0))
        return self._passed[place][1] if place < len(self._passed) else None

    def pace(self, events: int, wall_s: float, time: int) -> tuple[float | None, float | None]:
        """Return how many simulated seconds have passed per second lately, and how many events; None: not known yet."""
        if not self._passed:
            return None, None
        place = bisect_right(self._passed, wall_s - _LATELY_S, key=itemgetter(1))
        # Not the look before that: since then the run may have stood still, or waited for its participants.
        events_then, wall_s_then, time_then = self._passed[min(place, len(self._passed) - 1)]
        elapsed = wall_s - wall_s_then
        if elapsed < _LEAST_S:
            return None, None
        return (time - time_then) / elapsed / 1e9, (events - events_then) / elapsed


# Finds out what each participant is doing, for an operator: for how long, in which process, and what is in the way.

_UNREAD_MUCH = 2**16


def activities_of(host: Host, milestones: Milestones, now: float) -> dict[str, Activity]:
    """Return what is known of participants that are connected, were lost and may come back, or whose process runs.

    The system is asked only about those who compute: the others wait, and that is all they do.
    """
    in_the_way = {
        **dict.fromkeys(host.flow.throttled(), "it sends too many frames, and is slowed down"),
        **dict.fromkeys(host.flow.ahead(), "it is far ahead of the others, and held back"),
        **dict.fromkeys(host.returning(), "it has come back, and does again what it had done"),
    }
    unconnected = {name: Activity(remark=remark) for name, remark in host.owner.unconnected.items()}
    lost = {name: Activity(seconds=missed_s, lost=cause) for name, (cause, missed_s) in host.lost().items()}
    return (
        unconnected
        | lost
        | {
            name: _activity(session, milestones, now, in_the_way.get(name, ""))
            for name, session in host.sessions.items()
        }
    )


def _activity(session: Session, milestones: Milestones, now: float, remark: str) -> Activity:
    member = session.member
    if member is None:
        return Activity(remark="it waits to be invited" if session.joining is not None else remark)
    if len(session.out) > _UNREAD_MUCH:
        remark = f"it hasn't read {len(session.out):,} bytes"
    if member.state in ASKING:
        began = milestones.when(member.since)
        return Activity(seconds=0.0 if began is None else max(0.0, now - began), remark=remark)
    if member.state is not State.COMPUTING:
        return Activity(remark=remark)
    found: OtherEnd = session.owner.other_end()
    return Activity(
        seconds=None if found.since is None else max(0.0, now - found.since),
        process=found.process,
        condition=condition_of(found.process),
        remark="; ".join(filter(None, (found.remark, remark))),
        behind=found.behind,
    )


OPERATORS_MAX = 16
"""How many operators a run has at a time, at the most."""

_UNREAD_MAX = 2**16


class OperatorDesk:
    """One operator's connection."""

    def __init__(self, server: Server, session: Session) -> None:
        self._server = server
        self._session = session
        self._has_told_end = False
        self._stepping: Future[None] | None = None  # The last step that was ordered, until all stand there.
        self._obeys: dict[type, Callable[..., OperatorAnswer | None]] = {
            AskSituation: self._look,
            PauseRun: self._pause,
            StepRun: self._step,
            ResumeRun: self._resume,
            EndRun: self._end,
        }

    # --- For the host: what `Trunk` does, too ---

    def turn(self) -> bool:
        """Do the next thing that the operator says; return whether there may be more (H5 of the host).

        To look at a large run takes as long as many words of participants, so each of those gets its turn in between.
        An operator that doesn't read what it is answered isn't read either.
        """
        session = self._session
        if len(session.out) > _UNREAD_MAX:
            session.paused = True
            self._server.host.dirty.append(session)
            return False
        if not session.frames.cut(session.bodies):
            return False
        body = session.bodies.pop()
        if body:
            self._obey(decode_operator_word(body))
        return True

    def fill(self) -> None:
        """Go on with an operator that has read its answers; say how the run has ended, once it has."""
        host, session = self._server.host, self._session
        if session.paused and len(session.out) <= _UNREAD_MAX:
            session.paused = False
            session.busy = True
            host.busy.append(session)
        if host.over and not self._has_told_end:
            self._has_told_end = True
            digest = None if host.digest is None else host.digest.hex()
            failure = None if host.failure is None else shortened(str(host.failure))
            session.out += operator_frame(RunOver(digest, failure))

    def keep_time(self) -> None:
        """An operator's heart isn't listened for."""

    def remark(self) -> None:
        """What an operator has done is the server's to say: it may have gone since."""

    def give_up(self) -> list[Session]:
        self._forget_step()
        return []

    # --- What an operator says ---

    def _obey(self, word: OperatorWord) -> None:
        if self._server.host.over:
            self._server.host.dirty.append(self._session)  # It is told how the run has ended.
            return
        try:
            answer = self._obeys[type(word)](word)
        except WorldlineError as error:
            answer = OrderRefused(error.problem, error.advice)
        if answer is not None:
            self._answer(answer, word)

    def _answer(self, answer: OperatorAnswer, word: OperatorWord) -> None:
        self._session.out += operator_frame(structs.replace(answer, number=word.number))
        self._server.host.dirty.append(self._session)

    def _look(self, word: AskSituation) -> OperatorAnswer:
        return SituationTold(look_at(self._server, with_links=word.links))

    def _pause(self, _: PauseRun) -> OperatorAnswer:
        here = min(self._server.paused_at, self._server.host.arbiter.floor())
        self._server.pause_at(min(here, TIME_MAX))
        return OrderTaken(self._server.paused_at)

    def _resume(self, _: ResumeRun) -> OperatorAnswer:
        self._server.pause_at(FOREVER)
        return OrderTaken()

    def _step(self, word: StepRun) -> None:
        arbiter = self._server.host.arbiter
        if arbiter.phase is not Phase.RUNNING:
            raise UsageError("the run hasn't begun", advice="`worldline why` says for whom it waits")
        here = min(self._server.paused_at, arbiter.floor())
        if word.to is not None:
            target = word.to
        elif word.by is not None:
            target = here + word.by
        else:
            target = self._next_deed(here)
        if target < here:
            raise UsageError(f"it is at {format_time(here)} already", advice="time doesn't run backwards")
        target = min(target, TIME_MAX)
        self._forget_step()
        self._server.pause_at(target)
        rested: Future[None] = Future()
        self._stepping = rested
        rested.add_done_callback(lambda _: self._answer(OrderDone(target), word))
        self._server.tell_resting(target, rested)

    def _forget_step(self) -> None:
        """Answer no more to a step that the operator no longer waits for: it goes one word at a time."""
        if self._stepping is not None:
            self._server.forget_resting(self._stepping)
            self._stepping = None

    def _next_deed(self, here: int) -> int:
        """Return the earliest time beyond the barrier for which a participant waits, which is where one acts next."""
        arbiter = self._server.host.arbiter
        goals = [arbiter.goal(member) for member in arbiter.members.values() if member.state in WAITING]
        return min((goal for goal in goals if goal > here), default=here)

    def _end(self, word: EndRun) -> OperatorAnswer:
        host = self._server.host
        if word.now:
            host.end(Interrupted("an operator ended the run"))
            return OrderTaken()
        if host.arbiter.phase is not Phase.RUNNING:
            raise UsageError("the run hasn't begun, and has nothing to end with", advice="end it with --now")
        earliest = host.arbiter.farthest()
        if earliest >= host.arbiter.end:
            raise UsageError(
                f"a participant may go on until {_end_of(host.arbiter.end)} already, since no other can reach it",
                advice="end it with --now",
            )
        at = earliest if word.at is None else word.at
        host.stop_at(at)
        self._server.pause_at(FOREVER)
        return OrderTaken(at)


def look_at(server: Server, *, with_links: bool = False) -> Situation:
    """Look at a run, in its server's thread."""
    host, arbiter, now = server.host, server.host.arbiter, server.clock()
    status = arbiter.status()
    speed, rate = server.milestones.pace(status.events, now, status.time)
    return situation_of(
        arbiter,
        host.federation,
        activities_of(host, server.milestones, now),
        events=status.events,
        time=status.time,
        paused=None if server.paused_at == FOREVER else server.paused_at,
        speed=speed,
        rate=rate,
        with_links=with_links,
    )


def _end_of(end: int) -> str:
    return "the end" if end < FOREVER else "any time"
