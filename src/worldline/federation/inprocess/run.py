"""Runs a federation in one process, under a scheduler that decides every step.

Each program is a strand, so that it can be written in ordinary blocking style, but never two run at a time: a program
runs until it says something to the arbiter, then the `Schedule` picks who goes on. So a run is a function of the
programs, the plan and the schedule alone. By what the lock promises, the schedule must not show in the result; the
checker tries many and compares.

There is no scheduler between two programs: one that pauses takes the scheduler's steps itself, until a program can go
on, and hands over to that one, or simply returns if that's itself.

All of this happens in a thread of the run's own. The caller's thread waits, and keeps watch: it says who computes for
long, and takes what comes from the keyboard, which must end the run, and not one program's `try`. What it looks at may
not change meanwhile, so it asks the run to stand still (`_hold`) and waits until it is away from the arbiter (`_away`):
in a program, or standing still. The run says where it is before it looks whether it is asked to stand still, and the
watch asks before it looks where the run is: so one of the two notices.

A `SteppedRun` is the same run without a thread of its own: it goes on when its caller says so, until it can't without
the programs that the caller steers, and the caller is the only one to look at it. Those needn't be at the same time:
one that has halted may hold up another that is late. It has to act first then, so the earliest always act.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import get_ident
from typing import Any

from msgspec.structs import replace as replace_fields

from worldline.federation.inprocess.strand import Strand, StrandBroken, ThreadStrand, strand_kind
from worldline.federation.outcome import FederationOutcome, outcome_of
from worldline.federation.participant.declaration import own_draws_of, with_functions
from worldline.federation.participant.participant import Participant, surroundings
from worldline.federation.participant.program import Federation, Program, blame, run_program_out
from worldline.history.guarding import GuardedObserver
from worldline.history.journal import Journal
from worldline.history.observer import Observer
from worldline.history.outcome import ALL_OTHERS, WaitReason, Watch
from worldline.lock import Action, Invite, Lost, Over, ParticipantEvent, Phase
from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.ledger import Wire
from worldline.model import InternalError, ModelError, Plan, Stuck, UsageError, WorldlineError
from worldline.model.blame import located
from worldline.model.draws.table import DrawFunction, Drawn, DrawsGiven, read_draws
from worldline.model.errors import ConfigurationError, shown
from worldline.model.lifecycle import Lifecycle, lifecycle_of
from worldline.model.plan import check_own_draws
from worldline.model.time import TimeLike, format_time

ArbiterFactory = Callable[[Plan, "Observer | None"], Arbiter]


class Schedule:
    """Decides what depends on luck elsewhere. This one: the first by name, and as few frames as possible."""

    def choose(self, names: list[str]) -> int:
        """Pick one of the participants that can go on, in the order of their names."""
        return 0

    def choose_joining(self, names: list[str]) -> int:
        """Pick the one that joins next, before the run has started."""
        return 0

    def flush_after_operation(self) -> bool:
        """Whether an operation that only tells is told at once or together with the next request."""
        return False

    def __str__(self) -> str:
        return IN_ORDER


IN_ORDER = "in-order"

_PATIENCE_S = 0.5  # For programs that have to be unwound.
_WATCH_EVERY_S = 0.1
_GLANCE_S = 0.0005  # How soon the run, or the watch, notices that the other has moved.
_BUSY_S = 1.0  # A program that runs for longer without waiting is named.

_GATHERING = Phase.GATHERING  # Looked up often.
_NO_EVENTS: list[ParticipantEvent] = []  # It stays empty.


class _Seat(Wire):
    """One program's place in a run: what it says, what it is answered, and the strand that it lives on."""

    def __init__(self, run: _Run, name: str, program: Program, life: Lifecycle, keep_journal: bool) -> None:
        self.name = name
        self.guest = program.guest
        self.invited = not program.guest
        self.controls = program.controls
        self.ledger = program.ledger(name, life, keep_journal=keep_journal)
        self.strand: Strand = strand_kind()(name, self._live)
        self.frame: list[ParticipantEvent] = []
        self.answer: Action | None = None
        self.asking = False
        self.able = False  # Whether the schedule may pick it.
        self._run = run
        self._program = program

    def waits(self) -> bool:
        return self.asking and self.answer is None

    # --- In the strand ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        self.strand.check()
        self.frame = events
        self._run.pause(self)

    def ask(self, events: list[ParticipantEvent]) -> Action:
        self.strand.check()
        self.frame = events  # The scheduler empties it when it has heard it.
        self.asking = True
        self._run.pause(self)
        answer = self.answer
        if answer is None:
            raise InternalError("resumed without an answer", participant=self.name)
        self.answer = None
        self.asking = False
        return answer

    def is_due(self, urgent: bool) -> bool:
        return self._run.is_due()

    def _live(self) -> None:
        participant = Participant(self.ledger, self)
        participant.join()
        try:
            run_program_out(self._program.run, participant)
        except (Exception, SystemExit):
            participant._take_untold()  # What it did last, as `report` tells it elsewhere.
            self.frame = participant._untold
            raise
        participant.leave()


class _Run:
    """One run under one schedule; without one, in order."""

    def __init__(
        self,
        federation: Federation,
        schedule: Schedule | None,
        arbiter: Arbiter,
        keep_journals: bool,
        steered: Iterable[str] = (),
    ) -> None:
        self._schedule = None if type(schedule) is Schedule else schedule
        self._arbiter = arbiter
        plan = arbiter.plan
        self._seats = {
            name: _Seat(self, name, program, lifecycle_of(name, plan.network, plan.faults), keep_journals)
            for name, program in sorted(federation.programs.items())
        }
        arbiter.payload_max = federation.payload_max
        self._able: list[str] = []  # Sorted by name.
        for seat in self._seats.values():
            seat.ledger.payload_max = federation.payload_max
            if seat.invited:
                self._enable(seat)
        self._running: _Seat | None = None
        self._turns = 0  # How often a program went on.
        self._digest: bytes | None = None
        self._error: BaseException | None = None
        self._broken = False
        self._unwinding = False  # Whether programs are unwound, all that are left or the one that has noticed that.
        self._away = False
        self._hold = False
        self._steered = list(steered)  # The names of the programs that halt, until they have ended.
        self._halted: list[_Seat] = []

    def name_draws(self, load: Callable[[str], DrawFunction], heard: Callable[[Drawn], None] | None) -> None:
        """Say where the functions are that the table of draws names, and what is told the draws of streams."""
        if self._arbiter.router.draws is not None:
            self._arbiter.router.draws.load = load
        for seat in self._seats.values():
            seat.ledger.draws.load = load
            seat.ledger.draws.heard = heard

    def journals(self) -> dict[str, Journal]:
        """Return the journals of all participants, to which the run adds."""
        return {name: seat.ledger.journal for name, seat in self._seats.items()}

    def outcome(self) -> FederationOutcome:
        assert self._digest is not None
        taken_part = self._arbiter.participants()
        journals = {name: self._seats[name].ledger.journal.entries or [] for name in taken_part}
        self._forget()
        return outcome_of(self._arbiter, self._digest, journals)

    def _forget(self) -> None:
        """Let go of the programs: one that is kept doesn't keep all the others."""
        self._seats.clear()
        self._halted.clear()
        self._running = None

    # --- In the caller's thread, where the run has none of its own ---

    def go_on(self, names: Iterable[str]) -> FederationOutcome | None:
        """Let these halted programs go on until the run stands still; return what came of it if it is over."""
        for name in names:
            seat = self._seats[name]
            self._halted.remove(seat)
            self._enable(seat)
        self._drive()
        if self._error is None and self._digest is None:
            self._arbiter.tell_passed()
            return None
        try:
            self._unwind()
            if self._error is not None:
                with suppress(WorldlineError):
                    self._arbiter.tell_passed()
                raise self._error
            self._arbiter.tell_passed()
            return self.outcome()
        finally:
            self._error = None
            self._forget()

    def earliest(self) -> list[str]:
        """Return the names of the halted programs at the earliest time, which no other steered one can still reach."""
        found: list[str] = []
        first = 0
        for seat in self._halted:
            if not found or seat.ledger.now < first:
                found, first = [seat.name], seat.ledger.now
            elif seat.ledger.now == first:
                found.append(seat.name)
        return found

    def steered(self) -> list[str]:
        """Return the names of the steered programs that haven't ended."""
        return self._steered

    def abandon(self) -> None:
        """Unwind all programs, wherever they are."""
        self._broken = True
        self._unwind()
        with suppress(WorldlineError):
            self._arbiter.tell_passed()
        self._forget()

    # --- In the run's thread ---

    def live(self) -> None:
        """Let the programs run to the end, and unwind those that are left."""
        self._drive()
        self._unwind()

    def _drive(self) -> None:
        """Start programs, and go on where one has finished, until the run is over or stands still."""
        try:
            chosen = self._next()
            while chosen is not None:
                chosen.strand.resume()
                chosen = self._following()
        except BaseException as error:
            self._error = error

    def _unwind(self) -> None:
        """Unwind the programs that are left."""
        self._away = self._unwinding = True
        for seat in list(self._seats.values()):
            with suppress(StrandBroken):  # The caller interrupts the program that has just come back.
                seat.strand.break_off()

    def _following(self) -> _Seat | None:
        """Return who goes on after a program has finished, if that is why all have stopped."""
        self._come_back()
        ended = self._running
        if self._broken or ended is None or not ended.strand.finished:
            return None
        if ended.strand.failure is not None:
            raise self._failed(ended, ended.strand.failure)
        self._disable(ended)
        if ended.name in self._steered:
            self._steered.remove(ended.name)
            if self._stands_still():
                return None
        return self._next()

    def is_due(self) -> bool:
        if self._broken:
            self._unwinding = True
            raise StrandBroken
        return self._schedule is not None and bool(self._schedule.flush_after_operation())

    def pause(self, seat: _Seat) -> None:
        """Let the next one go on; return when it's this one's turn again."""
        self._come_back()
        if self._broken:
            self._unwinding = True
            raise StrandBroken
        if not seat.frame and seat.waits():
            self._disable(seat)
        chosen = self._next()
        if chosen is None:
            seat.strand.pause()
        elif chosen is not seat:
            seat.strand.hand_over(chosen.strand)

    def halt(self, name: str) -> None:
        """Stand still in a steered program; return when the caller has let the run go on."""
        seat = self._seats[name]
        seat.strand.check()
        self._come_back()
        self._disable(seat)
        self._halted.append(seat)
        chosen = None if self._stands_still() else self._next()
        if chosen is None:
            seat.strand.pause()
        else:
            seat.strand.hand_over(chosen.strand)

    def _stands_still(self) -> bool:
        return len(self._halted) == len(self._steered)

    def _come_back(self) -> None:
        """Return from a program to the arbiter, unless the watch looks at that just now."""
        self._away = False
        while self._hold:
            self._away = True
            time.sleep(_GLANCE_S)
            self._away = False

    def _next(self) -> _Seat | None:
        """Take steps until a program can go on; None if the run is over, well or not, or only the halted could."""
        try:
            while self._digest is None and (self._able or not self._halted):
                chosen = self._step()
                if chosen is not None:
                    self._running = chosen
                    self._turns += 1
                    self._away = True
                    return chosen
        except BaseException as error:  # It isn't the fault of the program in whose strand this is.
            self._error = error
        return None

    def _step(self) -> _Seat | None:
        able = self._able
        if not able:
            raise self._stuck()
        gathering = self._arbiter.phase is _GATHERING
        if self._schedule is None:
            seat = self._seats[able[0]]
        elif gathering:
            seat = self._seats[able[self._schedule.choose_joining(able)]]
        else:
            seat = self._seats[able[self._schedule.choose(able)]]
        if seat.frame:
            self._hear(seat)
        if seat.waits():
            self._disable(seat)
            return None
        # Who joins last isn't the first to run on that account: the start is a choice of its own.
        return None if gathering and seat.asking else seat

    def _hear(self, seat: _Seat) -> None:
        frame: list[Any] = seat.frame
        action: Any
        for action in self._arbiter.hear(seat.name, frame):
            if type(action) is Over:
                self._digest = action.digest
            else:
                addressed = self._seats[action.to]
                addressed.answer = action
                self._enable(addressed)
        if seat.controls:
            for event in frame:
                if type(event) is Invite:
                    self._welcome(event.newcomer, seat)
        seat.frame = _NO_EVENTS
        frame.clear()  # It is the participant's, which puts what it says next into it.

    def _welcome(self, name: str, inviting: _Seat) -> None:
        """Let a guest come: before it has been invited, it isn't expected."""
        if name not in self._seats:
            guests = [other for other, seat in self._seats.items() if seat.guest]
            raise UsageError(
                f"it invites {name!r}, and there is no program of that name",
                participant=inviting.name,
                at=inviting.ledger.now,
                advice=f"guests are {', '.join(guests)}" if guests else "there are no guests",
            )
        guest = self._seats[name]
        if not guest.invited:
            guest.invited = True
            self._enable(guest)

    def _enable(self, seat: _Seat) -> None:
        if seat.able:
            return
        seat.able = True
        able = self._able
        if able:
            able.insert(bisect_left(able, seat.name), seat.name)
        else:
            able.append(seat.name)

    def _disable(self, seat: _Seat) -> None:
        if seat.able:
            seat.able = False
            able = self._able
            del able[0 if able[0] == seat.name else bisect_left(able, seat.name)]

    def _stuck(self) -> WorldlineError:
        reasons = "; ".join([str(why) for why in self._arbiter.why()])
        return Stuck(f"no participant can go on: {reasons}")

    def _failed(self, seat: _Seat, failure: BaseException) -> BaseException:
        with suppress(WorldlineError):  # Its own failure is the one to tell.
            self._hear(seat)
        self._arbiter.handle(OPERATOR, Lost(seat.name, repr(failure)))
        if isinstance(failure, KeyboardInterrupt):
            return failure
        if isinstance(failure, WorldlineError):
            return located(failure).concerning(seat.name, seat.ledger.now)
        error = ModelError(blame(failure), participant=seat.name, at=seat.ledger.now)
        error.__cause__ = failure
        return error


class _Watched:
    """A run in a thread of its own, for the caller's thread, which waits and keeps watch."""

    def __init__(self, run: _Run, watch: Watch | None) -> None:
        self._run = run
        self._watcher = watch
        self._thread = threading.Thread(target=self._live, name="worldline run", daemon=True)
        self._ended = threading.Event()  # Python in every build: signals are handled while it is waited for.
        self._seen_turn = 0
        self._seen_at = 0.0

    def _live(self) -> None:
        self._run.live()
        self._ended.set()

    def finish(self) -> FederationOutcome:
        """Run it to its end."""
        try:
            self._thread.start()
            self._watch()
            self._run._arbiter.tell_passed()
        except BaseException:
            self._break_off()
            with suppress(WorldlineError):  # The observer may be what has failed.
                self._run._arbiter.tell_passed()
            raise
        finally:
            self._run._error = None  # Its traceback leads back here.
        return self._run.outcome()

    def _watch(self) -> None:
        while not self._ends_within(_WATCH_EVERY_S) and not self._run._unwinding:
            self._look()
        self._ends_within(_PATIENCE_S)
        if self._run._error is not None:
            raise self._run._error
        if self._run._digest is None:
            raise InternalError("the run stopped before its end")

    def _look(self) -> None:
        """Tell the watch how far the run is, and who computes if that takes long."""
        self._run._hold = True
        try:
            while not self._run._away:
                time.sleep(_GLANCE_S)
            self._run._arbiter.tell_passed()
            if self._watcher is not None:
                status = self._run._arbiter.status()
                busy = self._busy()
                self._watcher(replace_fields(status, ask=lambda: (*busy, *status.waits)) if busy else status)
        finally:
            self._run._hold = False

    def _busy(self) -> tuple[WaitReason, ...]:
        """Say who computes for long: no other can meanwhile, and the arbiter knows nothing of it."""
        now = time.monotonic()
        if self._seen_turn != self._run._turns:
            self._seen_turn = self._run._turns
            self._seen_at = now
            return ()
        seat, seconds = self._run._running, now - self._seen_at
        if seat is None or seconds < _BUSY_S:
            return ()
        since = f"{seat.name} has been running for {seconds:.0f} s without waiting, at {format_time(seat.ledger.now)}"
        return (WaitReason(ALL_OTHERS, seat.name, f"{since}, and keeps all others waiting"),)

    def _ends_within(self, seconds: float) -> bool:
        """Wait for the run's thread. Not by joining it: Python 3.11 and 3.12 forget it if that is interrupted."""
        if not self._ended.wait(seconds):
            return False
        self._thread.join()  # It is on its last lines.
        return True

    def _break_off(self) -> None:
        """End the run wherever it is: whatever a program calls from now on raises.

        A program that never calls us is interrupted. One that is in a long call of something that isn't Python notices
        that afterward: it and all who wait for it are unwound then, or die with the process.
        """
        self._run._broken = True
        if self._thread.ident is None or self._ends_within(_PATIENCE_S):
            return
        if not self._run._unwinding and self._run._running is not None:
            self._run._running.strand.interrupt()
            self._ends_within(_PATIENCE_S)


def _prepared(
    federation: Federation,
    schedule: Schedule | None,
    observer: Observer | None,
    arbiter: ArbiterFactory,
    draws: DrawsGiven,
    *,
    heard: Callable[[Drawn], None] | None = None,
    keep_journals: bool = False,
    steered: Iterable[str] = (),
) -> _Run:
    """Return a run that is complete and checked, and hasn't begun."""
    rows, functions = with_functions(read_draws(draws))
    plan = replace_fields(federation.plan(), draws=rows)
    if rows:
        check_own_draws(rows, own_draws_of(federation.programs))
    made = _Run(
        federation,
        schedule,
        arbiter(plan, None if observer is None else GuardedObserver(observer)),
        keep_journals,
        steered,
    )
    if rows or heard is not None:
        made.name_draws(functions.__getitem__, heard)
    return made


def run(
    federation: Federation,
    until: TimeLike | None = None,
    *,
    executor: object = "in-process",
    observer: Observer | None = None,
    watch: Watch | None = None,
    schedule: Schedule | None = None,
    arbiter: ArbiterFactory = Arbiter,
    keep_journals: bool | dict[str, Journal] = False,
    draws: DrawsGiven = None,
    draws_heard: Callable[[Drawn], None] | None = None,
) -> FederationOutcome:
    """Run a federation in this process, and return its outcome.

    If `until` is given, the run ends there rather than where the federation says. The `executor` is always
    ``"in-process"``: participants with processes of their own are started from a FILE.toml. `observer` is told
    everything that happens, `watch` is told the status now and then. `keep_journals` adds the participants' journals to
    the outcome; a dictionary that is given for it is filled with them, to be read even if the run fails. `draws`
    replaces some of the run's random draws, by name; `draws_heard` is told those of the participants' own streams.
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
    keeps = keep_journals is not False
    made = _prepared(planned, schedule, observer, arbiter, draws, heard=draws_heard, keep_journals=keeps)
    if isinstance(keep_journals, dict):
        keep_journals.update(made.journals())
    return _Watched(made, watch).finish()


class SteppedRun:
    """A run in the caller's thread that stands still whenever nothing is left to do without the `steered` programs.

    Such a program calls `halt(name)` at its sequence points, once it has left what the caller has to know. The run
    stands still when all of them have halted or ended, or when no other can go on before one of the halted does. The
    caller then decides what the `earliest` do, and lets those `go_on`: the others are later, or still on their way. All
    calls but `halt` come from the thread that made the run.
    """

    def __init__(
        self,
        federation: Federation,
        steered: Iterable[str],
        *,
        draws: DrawsGiven = None,
        observer: Observer | None = None,
    ) -> None:
        self._run = _prepared(federation, None, observer, Arbiter, draws, steered=steered)
        self._thread = get_ident()
        self._has_threads = strand_kind() is ThreadStrand
        self._stands_still = True
        self.halt: Callable[[str], None] = self._run.halt
        self.is_over = False
        self.outcome: FederationOutcome | None = None

    def __repr__(self) -> str:
        return f"<SteppedRun of {', '.join(self.steered)}{', over' if self.is_over else ''}>"

    def earliest(self) -> list[str]:
        """Return the names of the halted programs that are at the earliest time: those have to act."""
        return self._run.earliest()

    @property
    def steered(self) -> Sequence[str]:
        """The names of the steered programs that haven't ended."""
        return self._run.steered()

    def go_on(self, names: Iterable[str] = ()) -> bool:
        """Let these go on, and all others, until the run stands still; False if it is over.

        What a program raises is raised here; the run is over then.
        """
        self._check()
        self._stands_still = False
        try:
            self.outcome = self._run.go_on(names)
        except BaseException:
            self.is_over = True
            raise
        finally:
            self._stands_still = True
            if surroundings.give_back is not None:  # A machine's, which waits.
                surroundings.give_back()
        self.is_over = self.outcome is not None
        return not self.is_over

    def close(self) -> None:
        """Break the run off, wherever it is: all programs are unwound. One that is over stays as it is.

        Where programs are threads, any thread may do that while it stands still: garbage is collected in any.
        """
        if not self.is_over:
            if not (self._stands_still and self._has_threads):
                self._check()
            self.is_over = True
            self._run.abandon()

    def _check(self) -> None:
        if get_ident() != self._thread:
            raise UsageError(
                "the run goes on in the thread that has begun it, and in no other",
                advice="give each thread a run of its own",
            )
        if self.is_over:
            raise UsageError("the run is over")
        if not self._stands_still:
            raise UsageError("the run is going on", advice="its own programs can't let it go on or break it off")
