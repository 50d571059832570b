"""Runs a federation in one process, under a scheduler that decides every step.

Each program runs in a thread of its own, so that it can be written in ordinary blocking style, but never two at a
time: a program runs until it says something to the arbiter, then the `Schedule` picks who goes on. So a run is a
function of the programs, the plan and the schedule alone. By what the lock promises, the schedule must not show in
the result; the checker tries many and compares.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from inspect import iscoroutine, isgenerator
from typing import Protocol

from msgspec.structs import replace as replace_fields

from worldline.federation.blame import blame, is_normal_end
from worldline.federation.outcome import FederationOutcome, outcome_of
from worldline.federation.participant import Participant
from worldline.federation.program import Federation, Program
from worldline.history.guarding import GuardedObserver
from worldline.history.observer import Observer
from worldline.history.status import EVERYBODY_ELSE, WaitReason, Watch
from worldline.lock import (
    OPERATOR,
    Action,
    Arbiter,
    Invite,
    Lost,
    Over,
    ParticipantEvent,
    Phase,
    RunEnded,
)
from worldline.model import InternalError, ModelError, Plan, Stuck, UsageError, WorldlineError
from worldline.model.blame import located
from worldline.model.errors import ConfigurationError, shown
from worldline.model.time import TimeLike, format_time

ArbiterFactory = Callable[[Plan, Observer | None], Arbiter]


class Schedule(Protocol):
    """Decides what depends on luck elsewhere."""

    def choose(self, names: list[str]) -> int:
        """Pick one of the participants that can go on, in the order of their names."""

    def choose_joining(self, names: list[str]) -> int:
        """Pick the one that joins next, before the run has started."""

    def flush_after_operation(self) -> bool:
        """Whether an operation that only tells is told at once or together with the next request."""


class InOrder:
    """The plain schedule: the first by name, and as few frames as possible."""

    def choose(self, names: list[str]) -> int:
        return 0

    choose_joining = choose

    def flush_after_operation(self) -> bool:
        return False

    def __str__(self) -> str:
        return "in-order"


_PATIENCE_S = 0.5  # For a program that computes when the run is broken off.
_WATCH_EVERY_S = 0.1
_BUSY_S = 1.0  # Whoever runs for longer without waiting is named.


class _Broken(BaseException):
    """Unwinds a program whose run is broken off; not an Exception, so that a program can't catch it by accident."""


class _ProgramThread:
    """One program in its thread, and the baton that goes back and forth between it and the scheduler."""

    def __init__(self, name: str, program: Program, schedule: Schedule, keep_journal: bool) -> None:
        self.name = name
        self.ledger = program.ledger(name, keep_journal=keep_journal)
        self.guest = program.guest
        self.frame: list[ParticipantEvent] = []
        self.answer: Action | None = None
        self.asking = False
        self.finished = False
        self.failure: BaseException | None = None
        self._schedule = schedule
        self._program = program
        self._broken = False
        # Two locks, both held: who waits for one is let go by the other side's release. Much faster than semaphores.
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._live, name=f"worldline {name}", daemon=True)

    def resume(self, watch: Callable[[_ProgramThread, float], None]) -> None:
        """Let the program run until it has something to say, or has finished; `watch` now and then if that takes long.

        Who watches is told for how many seconds it has been running. What is watched doesn't change meanwhile: only the
        scheduler's own thread tells the arbiter anything.
        """
        if self._thread.ident is None:
            self._thread.start()
        self._go.release()
        since = None
        while not self._back.acquire(timeout=_WATCH_EVERY_S):
            now = time.monotonic()
            since = now - _WATCH_EVERY_S if since is None else since
            watch(self, now - since)

    def break_off(self) -> None:
        """Unwind the program, wherever it is. One that never calls us can't be: it dies with the process.

        The scheduler may have been interrupted from the keyboard anywhere, with the baton in either hand. So it isn't
        passed any more: the program is let go for good, and whatever it calls from now on raises.
        """
        self._broken = True
        if self._thread.ident is None:
            return
        if self._go.locked():
            self._go.release()
        self._thread.join(_PATIENCE_S)

    def ready(self) -> bool:
        return bool(self.frame) or not self.asking or self.answer is not None

    # --- In the program's thread ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        self.frame = events
        self._pause()

    def ask(self, events: list[ParticipantEvent]) -> Action:
        self.frame = events[:]
        events.clear()
        self.asking = True
        self._pause()
        if self.answer is None:
            raise InternalError("resumed without an answer", participant=self.name)
        answer, self.answer, self.asking = self.answer, None, False
        return answer

    def is_due(self, *, urgent: bool) -> bool:
        if self._broken:
            raise _Broken
        return self._schedule.flush_after_operation()

    def _pause(self) -> None:
        if self._broken:
            raise _Broken
        self._back.release()
        self._go.acquire()
        if self._broken:
            raise _Broken

    def _live(self) -> None:
        self._go.acquire()
        participant = Participant(self.ledger, self)
        try:
            if not self._broken:
                participant.join()
                self._run(participant)
                participant.leave()
        except _Broken:
            self.frame = []
        except BaseException as failure:  # Reported by the scheduler with the participant's name, whatever it is.
            self.failure = failure
            self.frame = []
        self.finished = True
        if not self._broken:  # Otherwise nobody waits for it.
            self._back.release()

    def _run(self, participant: Participant) -> None:
        try:
            if not participant.ended:
                result = self._program.run(participant)
                if isgenerator(result) or iscoroutine(result):
                    raise UsageError(
                        "its program is a generator or a coroutine, which never ran", participant=self.name
                    )
        except RunEnded:
            return
        except SystemExit as error:
            if not is_normal_end(error):
                raise


class _Run:
    """One run under one schedule."""

    def __init__(
        self,
        federation: Federation,
        schedule: Schedule,
        arbiter: Arbiter,
        watch: Watch | None,
        *,
        keep_journals: bool,
    ) -> None:
        self._schedule = schedule
        self._watcher = watch
        self._watched = time.monotonic()
        self._arbiter = arbiter
        self._threads = {
            name: _ProgramThread(name, program, schedule, keep_journals)
            for name, program in sorted(federation.programs.items())
        }
        self._able = [name for name, thread in self._threads.items() if not thread.guest]  # Sorted by name.
        self._uninvited = [name for name, thread in self._threads.items() if thread.guest]
        self._digest: bytes | None = None

    def finish(self) -> FederationOutcome:
        try:
            while self._digest is None:
                self._step()
                if time.monotonic() - self._watched >= _WATCH_EVERY_S:
                    self._watch()
            self._arbiter.tell_passed()
        except BaseException:
            with suppress(WorldlineError):  # Whoever looks on may be what has failed.
                self._arbiter.tell_passed()
            raise
        finally:
            for thread in self._threads.values():
                thread.break_off()
        taken_part = self._arbiter.participants()
        journals = {name: self._threads[name].ledger.journal.entries or [] for name in taken_part}
        return outcome_of(self._arbiter, self._digest, journals)

    def _watch(self, *busy: WaitReason) -> None:
        self._arbiter.tell_passed()
        if self._watcher is not None:
            status = self._arbiter.status()
            self._watcher(replace_fields(status, ask=lambda: (*busy, *status.waits)) if busy else status)
        self._watched = time.monotonic()

    def _watch_busy(self, thread: _ProgramThread, seconds: float) -> None:
        """Say who computes, once that takes long: nobody else can meanwhile, and the arbiter knows nothing of it."""
        if seconds < _BUSY_S:
            self._watch()
            return
        name, now = thread.name, format_time(thread.ledger.now)
        why = f"{name} has been running for {seconds:.0f} s without waiting, at {now}, and keeps everybody else waiting"
        self._watch(WaitReason(EVERYBODY_ELSE, name, why))

    def _step(self) -> None:
        if not self._able:
            raise self._stuck()
        gathering = self._arbiter.phase is Phase.GATHERING
        choose = self._schedule.choose_joining if gathering else self._schedule.choose
        thread = self._threads[self._able[choose(self._able)]]
        frame, thread.frame = thread.frame, []
        for action in self._arbiter.handle(thread.name, *frame):
            self._carry_out(action)
        for event in frame:
            if isinstance(event, Invite):
                self._welcome(event.newcomer, thread)
        # Who joins last isn't the first to run on that account: the start is a choice of its own.
        if thread.ready() and not thread.finished and not (gathering and thread.asking):
            thread.resume(self._watch_busy)
        if thread.failure is not None:
            raise self._failed(thread, thread.failure)
        if not thread.frame and (thread.finished or not thread.ready()):
            del self._able[bisect_left(self._able, thread.name)]

    def _welcome(self, name: str, inviting: _ProgramThread) -> None:
        """A guest comes when it has been invited: before that, nobody expects it."""
        if name not in self._threads:
            guests = [other for other, thread in self._threads.items() if thread.guest]
            raise UsageError(
                f"it invites {name!r}, and there is no program of that name",
                participant=inviting.name,
                at=inviting.ledger.now,
                advice=f"guests are {', '.join(guests)}" if guests else "there are no guests",
            )
        if name in self._uninvited:
            self._uninvited.remove(name)
            self._enable(name)

    def _enable(self, name: str) -> None:
        place = bisect_left(self._able, name)
        if self._able[place : place + 1] != [name]:
            self._able.insert(place, name)

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Over):
            self._digest = action.digest
        else:
            self._threads[action.to].answer = action
            self._enable(action.to)

    def _stuck(self) -> WorldlineError:
        reasons = "; ".join(str(why) for why in self._arbiter.why())
        return Stuck(f"nobody can go on: {reasons}")

    def _failed(self, thread: _ProgramThread, failure: BaseException) -> BaseException:
        self._arbiter.handle(OPERATOR, Lost(thread.name, repr(failure)))
        if isinstance(failure, KeyboardInterrupt):
            return failure
        if isinstance(failure, WorldlineError):
            return located(failure).concerning(thread.name, thread.ledger.now)
        error = ModelError(blame(failure), participant=thread.name, at=thread.ledger.now)
        error.__cause__ = failure
        return error


def run(
    federation: Federation,
    until: TimeLike | None = None,
    *,
    executor: object = "in-process",
    observer: Observer | None = None,
    watch: Watch | None = None,
    schedule: Schedule | None = None,
    arbiter: ArbiterFactory = Arbiter,
    keep_journals: bool = False,
) -> FederationOutcome:
    """Run a federation in this process, and return its outcome.

    If `until` is given, the run ends there rather than where the federation says. The `executor` is always
    ``"in-process"``: participants with processes of their own are started from a FILE.toml. `observer` is told
    everything that happens, `watch` is told the status now and then.
    """
    if not isinstance(federation, Federation):
        raise UsageError(
            f"{shown(federation)} isn't a Federation",
            advice="call the function that makes it: run(model())"
            if callable(federation)
            else "run() is for federations; other models have a run() of their own",
        )
    if str(executor) != "in-process":
        raise ConfigurationError(
            f"a Federation runs in-process, and not on {shown(str(executor))}",
            advice="leave executor out; `worldline run FILE.toml` starts a process for each participant",
        )
    planned = federation if until is None else replace(federation, until=until)
    made = arbiter(planned.plan(), None if observer is None else GuardedObserver(observer))
    return _Run(planned, schedule or InOrder(), made, watch, keep_journals=keep_journals).finish()
