"""A computer in a run: it lets one program go on, in simulated time, with the network that its participant gives it.

The program runs in its participant's flow of control. Whatever would make it wait on a real machine comes to `wait`,
which lets time pass by the lock: everything that was written goes out, and the computer asks for its next message, or
for the time at which one of its own timers runs out. Computing takes no time.

K1. Between two waits, time stands still and nothing is sent. So nothing depends on how long a program computes.
K2. When it is all over (the run has ended, or the machine's power has failed), every later call raises that again, and
    nothing is sent any more: asyncio catches such errors in callbacks and goes on, and a program may do so, too. What
    is raised is never an Exception: a program that catches these around its waits would never come to an end.
K3. A program that looks at the clock again and again without waiting is charged for it, so that time passes.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from ctypes import PYFUNCTYPE, c_ulong, py_object, pythonapi
from dis import opmap
from functools import partial
from itertools import count
from random import Random
from threading import get_ident
from types import FrameType
from typing import Any, NoReturn, TypeVar

from worldline.federation.participant.participant import Participant
from worldline.federation.participant.sometimes import CHANCE
from worldline.lock import RunEnded
from worldline.model.errors import Stuck, UsageError
from worldline.model.faults import ParticipantFault
from worldline.model.message import Message
from worldline.model.time import FOREVER
from worldline.programs.deadlocks import Inside, is_deadlock, waits_in_words
from worldline.programs.ports import Directory
from worldline.programs.reals import EPOCH_NS, here
from worldline.programs.stack import Stack
from worldline.programs.workspace import LineLog

_US, _MS = 1_000, 1_000_000
_NEVER = FOREVER
_LOOKS_FREE = 10_000  # How often a program may look at the clock at one moment,
_LOOKS_LEAST = 1_000  # and how often when it has been charged for it, and goes on without waiting.
_TURNS_FREE = 100  # How often it may look whether anything is ready.
_CHARGES_MAX = 10  # Each charge is twice the one before, up to a millisecond.
_PID = 1_000
_DELIVERED = "_worldline_delivered"
_RAISE = opmap["RAISE_VARARGS"]
_ENDS_MAX = 200  # How often a program may catch that all is over.

T = TypeVar("T")

Choose = Callable[[Sequence[asyncio.Handle]], int]
"""Given the steps of tasks that are ready, in asyncio's own order, returns the place of the one that runs next."""


class ProgramKilled(BaseException):
    """The program was ended at once, by a signal or itself; not an Exception, so that it can't catch that by accident.

    `until` is when it is started again.
    """

    def __init__(self, by: str, until: int = _NEVER) -> None:
        super().__init__(f"it was ended by {by}")
        self.until = until


class Unwinding(BaseException):
    """Ends a program whose participant fails with `failure`; not an Exception, since programs catch those and go on."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.__traceback__ = failure.__traceback__


class ProgramEnd:
    """What has ended it all, which is raised again and again (K2)."""

    def __init__(self, error: BaseException) -> None:
        self.error = Unwinding(error) if isinstance(error, Exception) else error
        self._raised_at: Any = None  # Where it was raised first, as a traceback.
        self._count = 0

    def as_raised_first(self) -> BaseException:
        """Return it without the frames of all the times since."""
        self._raised_at = self._raised_at or self.error.__traceback__
        return self.error.with_traceback(self._raised_at)

    def raise_again(self) -> NoReturn:
        """A program may go on for ever after whatever is raised, as Twisted does: then it goes on no more."""
        self._count += 1
        if self._count > _ENDS_MAX:
            end_thread()
        raise self.as_raised_first()


class ProgramThread:
    """A thread of a program besides its main one: the strand that it lives on, and what it waits for."""

    def __init__(self, strand: Any, thread: Any, number: int) -> None:
        self.strand = strand
        self.thread = thread  # Python's own object, if it has one.
        self.number = number
        self.ready: Callable[[], Any] | None = None  # None: it can go on.
        self.found: Any = None
        self.deadline: int | None = None
        self.inside: Inside | None = None

    @property
    def name(self) -> str:
        return str(getattr(self.thread, "name", "a thread"))

    def wait(self, ready: Callable[[], T | None], deadline: int | None, inside: Inside | None = None) -> T | None:
        """Let the others go on until `ready` returns something, or until the deadline; in the thread itself."""
        self.ready, self.deadline, self.inside = ready, deadline, inside
        self.strand.pause()
        self.ready = None
        found: T | None = self.found
        return found

    def can_go_on(self, now: int) -> bool:
        if self.ready is None:
            return True
        self.found = self.ready()
        return self.found is not None or (self.deadline is not None and now >= self.deadline)


class ProgramDraws:
    """What a program is given by number, or at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.importing: list[str] = []  # The libraries that are being loaded.
        self._objects = 0
        self._tasks = 0
        self.names = count(1)  # Of threads without a name of their own,
        self.pools = count()  # of pools of threads,
        self.threads = count(1)  # and all threads besides the main one.
        self.hashes = count(1)  # Of threads: sets of them are in the order in which they were first hashed.

    def entropy(self) -> Random:
        """Return what draws for the program; while a library is loaded, it draws by the library's name."""
        return Random(self.importing[-1]) if self.importing else self.random

    def count(self) -> int:
        """Return a number for an object that is hashed by it."""
        self._objects += 1
        return self._objects

    def count_task(self) -> int:
        """Return the number of a task."""
        self._tasks += 1
        return self._tasks


class Spinning:
    """Counts how often a program has looked at something without waiting, and says what that costs (K3)."""

    def __init__(self) -> None:
        self._looks = 0  # Since time has passed.
        self._charges = 0  # Since the program has waited.
        self.charged = 0  # What it has cost in all.

    def look(self, weight: int = 1) -> int:
        """Count a look; return how much time passes for it."""
        self._looks += weight
        if self._looks <= max(_LOOKS_FREE >> self._charges, _LOOKS_LEAST):
            return 0
        self._charges = min(self._charges + 1, _CHARGES_MAX)
        self.charged += _US << self._charges
        return _US << self._charges

    def time_has_passed(self) -> None:
        self._looks = 0

    def has_waited(self) -> None:
        self._charges = 0


class Computer:
    """The computer of one participant, for one incarnation."""

    def __init__(self, participant: Participant, names: tuple[str, ...], choose_next: Choose | None = None) -> None:
        self.participant = participant
        self.stack = Stack(participant.name, Directory(names), participant.incarnation, participant.payload_max)
        self.stack.now = participant.now
        self.over: ProgramEnd | None = None
        self.signals = Signals()
        self.draws = ProgramDraws(participant.stream("program").getrandbits(128))
        self.workspace: Any = None
        self.output = LineLog()
        self.restarts_at: int | None = None  # While no program runs: when one does again.
        self.loops: list[Any] = []
        self.threads: list[ProgramThread] = []
        self.held: set[Any] = set()  # The locks of libraries that the program holds.
        self.choose_next = choose_next
        self._spinning = Spinning()
        self._idle = ""  # What was said of its program's waits, none of which ends.

    def __repr__(self) -> str:
        return f"<computer of {self.name}>"

    @property
    def name(self) -> str:
        return self.participant.name

    @property
    def pid(self) -> int:
        """The number of its program's process."""
        return _PID + self.participant.incarnation

    @property
    def ident(self) -> int:
        """The number of its program's main thread: in no other computer's program has a thread the same."""
        return int.from_bytes(bytes(map(int, self.stack.address.split(".")))) << 20

    # --- Time ---

    def monotonic_ns(self) -> int:
        """Return the time since the start of the run, for a program that asks."""
        if cost := self._spinning.look():
            self._charge(cost)
        return self.stack.now

    def time_ns(self) -> int:
        """Return what the computer's own clock shows."""
        self.monotonic_ns()
        return EPOCH_NS + self.participant.clock.now

    def sleep(self, seconds: float) -> None:
        deadline = self.stack.now + max(round(seconds * 1e9), 0)
        if deadline == self.stack.now:
            self.glance()
        self.wait(lambda: None, deadline)

    def glance(self) -> None:
        """The program looks whether anything is ready, and doesn't wait: if it goes on for long, that takes time."""
        if cost := self._spinning.look(_LOOKS_FREE // _TURNS_FREE):
            self._charge(cost)

    def processor_ns(self) -> int:
        """Return how long the program has computed: only looking at something without waiting takes time."""
        self.monotonic_ns()
        return self._spinning.charged

    def _charge(self, cost: int) -> None:
        until = self.stack.now + cost
        if here.thread is not None:
            here.thread.wait(lambda: None, until)
        while self.stack.now < until:
            self._go_on(until)
        while here.thread is None and self.signals.pending:
            self.deliver_signal()

    # --- Waiting ---

    def wait(
        self, ready: Callable[[], T | None], deadline: int | None = None, inside: Inside | None = None
    ) -> T | None:
        """Wait until `ready` returns something, and return that; or None when the deadline has come.

        What only the program itself can end is a wait `inside`.
        """
        if (thread := here.thread) is not None:
            if self.over is not None:
                self.over.raise_again()
            found: T | None = ready()
            return thread.wait(ready, deadline, inside) if found is None else found
        while True:
            if self.over is not None:
                self.over.raise_again()
            if (found := ready()) is not None:
                return found
            if self.threads and self._run_threads():
                continue
            if self.signals.pending:
                self.deliver_signal()
                continue
            if deadline is not None and self.stack.now >= deadline:
                return None
            self._spinning.has_waited()
            if inside is not None and deadline is None:
                self._check_progress(inside)
            self._go_on(deadline)

    def _check_progress(self, inside: Inside) -> None:
        """End the run if all threads wait for each other, and no signal or fault is to come that could change that.

        A program that is idle goes on to the run's end; it says once for what it waits in vain.
        """
        if (what := inside()) is None or any(each.deadline is not None for each in self.threads):
            return
        if self.signals.can_come or self.participant.process_fault_due < _NEVER:
            return
        said = [None if each.inside is None else each.inside() for each in self.threads]
        if None in said:
            return
        frames = sys._current_frames()
        others = [
            (each.name, frames.get(each.strand._thread_id() or 0), text or "")
            for each, text in zip(self.threads, said, strict=True)
        ]
        main = sys._getframe(), what
        loops = [each for each in self.loops if not each.is_closed()]
        is_stuck = is_deadlock([main, *(each[1:] for each in others)], loops)
        said_of_all = f"nothing can wake it any more: {waits_in_words(others, main, loops, is_whole=not is_stuck)}"
        if is_stuck:
            self.end(Stuck(said_of_all, participant=self.name, at=self.stack.now))
        if said_of_all != self._idle:
            self._idle = said_of_all
            self.output.write(f"{said_of_all}\n", getattr(sys.stderr, "real", sys.stderr))

    def _run_threads(self) -> bool:
        """Let the program's other threads go on that can; return whether any could."""
        has_run = False
        for thread in list(self.threads):
            if thread.can_go_on(self.stack.now):
                has_run = True
                here.computer = None  # In this thread: how others are started and waited for is real.
                thread.strand.resume()
                here.computer = self
                self.output.show()
                if thread.strand.finished:
                    self.threads.remove(thread)
                    if thread.strand.failure is not None and self.over is None:
                        raise thread.strand.failure
        return has_run

    def _go_on(self, deadline: int | None) -> None:
        """Let time pass until something arrives, a timer runs out or the deadline comes."""
        if self.over is not None:
            self.over.raise_again()
        self._spinning.time_has_passed()
        limit = min(_NEVER if deadline is None else deadline, self.signals.alarm_at)
        for thread in self.threads:
            if thread.deadline is not None and thread.deadline < limit:
                limit = thread.deadline
        self.leave()
        try:
            messages, faults = self._exchange(limit)
        except BaseException as error:
            self.end(error)
        finally:
            self.enter()
        stack = self.stack
        stack.now = self.participant.now
        for message in messages:
            stack.hear(message.topic[:3], message.sender, message.payload)
        stack.pass_time()
        if stack.now >= self.signals.alarm_at:
            self.signals.ring(stack.now)
        for over_at, fault in faults:
            self._suffer(fault, over_at)

    def _exchange(self, limit: int) -> tuple[list[Message], list[tuple[int, ParticipantFault]]]:
        """Send what is to be sent, and return what arrives next, and what happens to the program then."""
        stack, participant = self.stack, self.participant
        if self.output.lines:
            self._log_output()
        for protocol, receiver, payload in stack.take_outgoing():
            participant.publish(f"{protocol}/{receiver}", payload, at_once=False)
        # What is sent sets timers, and may be what a fault waits for.
        until = min(limit, stack.due, participant.process_fault_due)
        messages: list[Message] = []
        if until > stack.now:
            messages = participant.next(None if until >= _NEVER else until)
            if not messages and until >= _NEVER:
                raise RunEnded
        due = participant.process_fault_due <= participant.now
        return messages, participant.take_process_faults() if due else []

    def _log_output(self) -> None:
        for line in self.output.lines:
            self.participant.log(line)
        self.output.lines.clear()

    def _suffer(self, fault: ParticipantFault, over_at: int) -> None:
        """Let a fault happen to the program; while there is none, it changes when there is one again."""
        if fault.verb == "signal":
            self.signals.come(signal.Signals[fault.signal])
        elif self.restarts_at is not None:
            self.restarts_at = max(self.restarts_at, over_at)
        else:
            self.end(ProgramKilled("SIGKILL", over_at))

    def deliver_signal(self) -> None:
        """Let the program have the first signal that has come."""
        try:
            self.signals.deliver()
        except ProgramKilled as killed:
            self.end(killed)

    def outlive(self, killed: ProgramKilled) -> None:
        """Go on after the program was killed: the kernel closes what it had; return when it is to be started again."""
        self._let_go()
        self.restarts_at = killed.until
        self.output.write(f"{killed}\n", getattr(sys.stderr, "real", sys.stderr))
        while self.stack.now < self.restarts_at:
            self._go_on(None if self.restarts_at >= _NEVER else self.restarts_at)
        self.restarts_at = None

    def serve_on(self) -> NoReturn:
        """Go on without a program: connections are refused, and what is still to be said is said."""
        self._let_go()
        self.restarts_at = _NEVER
        while True:
            self._go_on(None)

    def _let_go(self) -> None:
        """Let what its last program has left end with it: a line, threads that don't keep it alive, loops, sockets."""
        self.output.finish()
        self.abandon()
        self.over = None
        self.loops, self.threads, self.signals, self._idle = [], [], Signals(), ""
        self.stack.close_all()

    # --- Rare branches ---

    def sometimes(self, branch: str, chance: float = CHANCE) -> bool:
        """Return whether to take a rare branch."""
        happens = self.over is None and self.participant.draws_branch(branch, chance)
        if happens:
            self.output.lines.append(f"sometimes: {branch}")
        return happens

    # --- What a program can't do ---

    def refuse(self, what: str, advice: str) -> NoReturn:
        """End the run, since the program does what isn't simulated; at the line that does it."""
        if self.over is not None:
            self.over.raise_again()
        self.end(UsageError(what, participant=self.name, at=self.stack.now, advice=advice))

    # --- The end ---

    def end(self, error: BaseException) -> NoReturn:
        """End it all with this error."""
        self.over = ProgramEnd(error)
        raise self.over.error

    def wait_for_threads(self, awaited: Callable[[ProgramThread], bool]) -> None:
        """Wait for the threads that a program doesn't end without."""
        self.wait(lambda: None if any(map(awaited, self.threads)) else True, inside=lambda: "its other threads to end")

    def finish_output(self) -> None:
        """Show and log what was printed last."""
        self.output.finish()
        if self.over is None:
            self._log_output()

    def abandon(self) -> None:
        """Let go of everything, now that all is over."""
        if self.over is None:
            self.over = ProgramEnd(RunEnded())
        was, here.computer = here.computer, None
        for thread in self.threads:
            thread.strand.break_off()
        here.computer = self
        try:
            for each in self.loops:
                each.abandon()
        finally:
            here.computer = was

    # --- Whose program runs in this thread ---

    def enter(self) -> None:
        """Let what the program's thread has be this program's."""
        self.workspace.belongings.enter()
        here.computer = self

    def leave(self) -> None:
        """Let another program have the thread."""
        here.computer = None
        self.workspace.belongings.leave()


class Signals:
    """What a program has said about signals, and those that have come and weren't delivered."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGPIPE: signal.SIG_IGN}
        self.pending: list[int] = []
        self.blocked: dict[int, None] = {}  # Those that the program's main thread doesn't want now,
        self.held: list[int] = []  # and those of them that have come.
        self._blocked_by: dict[ProgramThread, dict[int, None]] = {}  # What others don't want: it comes to the main one.
        self.delivered = 0
        self._was_interrupted = False  # Whether Ctrl-C was pressed at its computer.
        self.alarm_at = _NEVER
        self._alarm_every = 0
        self.wake: Callable[[int], None] | None = None  # What writes to the descriptor that asyncio has named.
        self.descriptor = -1

    @property
    def can_come(self) -> bool:
        """Whether the program expects one: it has set an alarm or a handler, asyncio's for Ctrl-C aside."""
        return self.alarm_at < _NEVER or not self.handlers.keys() <= {signal.SIGINT, signal.SIGPIPE}

    def come(self, number: int) -> None:
        """Have a signal come: it is delivered when the program can have it."""
        if number not in self.blocked:
            self.pending.append(int(number))
        elif number not in self.held:
            self.held.append(int(number))

    def take(self, wanted: Container[int]) -> int | None:
        """Return the first of these that has come and is blocked: it is the program's now, without a handler."""
        for number in self.held:
            if number in wanted:
                self.held.remove(number)
                return number
        return None

    def blocked_by(self, thread: ProgramThread | None) -> dict[int, None]:
        """Return what a thread doesn't want now; None: the main one."""
        return self.blocked if thread is None else self._blocked_by.get(thread, self.blocked)

    def block(self, thread: ProgramThread | None, numbers: Iterable[int]) -> None:
        """Let these come to a thread later, and all others now."""
        blocked = dict.fromkeys(map(int, numbers))
        if thread is not None:
            self._blocked_by[thread] = blocked
            return
        self.blocked = blocked
        held, self.held = self.held, []
        for number in held:
            self.come(number)

    def alarm(self, now: int) -> tuple[int, int]:
        """Return in how much time the alarm rings, and then again how often; 0: never."""
        return (0 if self.alarm_at >= _NEVER else self.alarm_at - now), self._alarm_every

    def set_alarm(self, now: int, after: int, every: int) -> None:
        self.alarm_at, self._alarm_every = (now + after if after else _NEVER), every

    def ring(self, now: int) -> None:
        """Have the alarm's signal come, whose time it is."""
        self.come(signal.SIGALRM)
        self.set_alarm(now, self._alarm_every, self._alarm_every)

    def deliver(self) -> None:
        """Do what the program has said, or what is done if it hasn't said anything."""
        number = self.pending.pop(0)
        handler = self.handlers.get(number, signal.SIG_DFL)
        if handler is signal.SIG_IGN:
            return
        if handler is signal.SIG_DFL:
            if number in (signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT):
                return
            raise ProgramKilled(signal.Signals(number).name)
        self.delivered += 1
        self._was_interrupted = self._was_interrupted or number == signal.SIGINT
        if self.wake is not None:
            self.wake(number)
        try:
            handler(number, None)
        except KeyboardInterrupt as error:
            vars(error)[_DELIVERED] = True  # Kept there, so that what its frames have isn't kept alive.
            raise

    def has_raised(self, error: KeyboardInterrupt) -> bool:
        """Whether Ctrl-C at its computer has led to this; at the run's it is another matter.

        A program with a handler, as asyncio's, may raise another later, by a statement; no statement raises a person's.
        """
        if _DELIVERED in vars(error):
            return True
        origin = error.__traceback__
        while origin is not None and origin.tb_next is not None:
            origin = origin.tb_next
        if origin is None or not self._was_interrupted:
            return False
        return origin.tb_frame.f_code.co_code[origin.tb_lasti] == _RAISE


# --- A program that goes on though all is over ---

# It catches whatever is raised, in one of its threads. Where it goes on, at whatever line of Python, `ThreadEnding` is
# raised: also where one was caught. So none of what the program's functions do comes to anything, until all of them
# have ended.


class ThreadEnding(BaseException):
    """Ends the functions of a program, one after the other.

    `sys.settrace` puts an end to it, and may raise the last one.
    """


# It is called at each line, as a debugger is. What that raises would be the last that it raises; and in a function of
# Python's, an error that is to be raised soon would be raised there. So it is the one of C, which ignores what it is
# told besides: frame, event and argument.
_raise_soon = PYFUNCTYPE(None, c_ulong, py_object, *(py_object,) * 3)(("PyThreadState_SetAsyncExc", pythonapi))


_OUTERMOST = ("_run", "live")  # Our own functions, in `machine` and `threads`, that let programs run.


def end_thread() -> None:
    """Let the program's functions that are being called in this thread end, and any that they call on their way."""
    stop = partial(_raise_soon, get_ident(), ThreadEnding)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not str(frame.f_globals.get("__name__")).startswith("worldline."):
            frame.f_trace = stop
        elif frame.f_code.co_name in _OUTERMOST:
            break
        frame = frame.f_back
    sys.settrace(stop)
