"""A strand: one program's flow of control, which goes on when it is resumed, and pauses where it has to wait.

Programs in blocking style share a process that way, never two at a time. The caller that resumes a strand gets control
back when it pauses or finishes. A strand that pauses may also hand over to another in its stead: that is one change of
control rather than two, and the caller that resumed the first gets control back from the other.

There are two kinds, with the same behavior. Greenlets change control in a fraction of a microsecond; all of them live
in the thread that resumes them. Threads are everywhere, and take ten times as long or more.

A strand knows nothing of what it waits for, and nothing of who is next: that's for its caller.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from sys import gettrace, settrace
from threading import get_ident
from typing import Any

from worldline.model import UsageError

try:
    from greenlet import getcurrent, greenlet
except ImportError:  # It's an extra.
    _GREENLETS = False
else:
    _GREENLETS = True

THREADS = "WORLDLINE_THREADS"
"""The environment variable that asks for threads where there are greenlets, too."""

_PATIENCE_S = 0.5  # For a thread that computes when it is broken off.


class StrandBroken(BaseException):
    """Unwinds a program that is broken off; not an Exception, so that a program can't catch it by accident."""


class Strand:
    """What both kinds have in common. `body` is what it does; what that raises is its `failure`.

    All of `resume` and `break_off` come from one flow of control, the one outside; `pause`, `hand_over` and `check`
    come from inside.
    """

    def __init__(self, name: str, body: Callable[[], object]) -> None:
        self.name = name
        self.finished = False
        self.failure: BaseException | None = None
        self._body: Callable[[], object] | None = body
        self._broken = False

    def resume(self) -> None:
        """Start it or go on with it, until it, or one that it hands over to, pauses or finishes."""
        raise NotImplementedError

    def pause(self) -> None:
        """Go on outside; return when this strand is resumed."""
        raise NotImplementedError

    def hand_over(self, other: Any) -> None:
        """Let another strand of this kind, which is paused or hasn't started, go on; return when this is resumed.

        The caller has called `check` before.
        """
        raise NotImplementedError

    def break_off(self) -> None:
        """Unwind it, wherever it is: what it waits in raises `StrandBroken`, and so does every `check` from then on."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Raise `StrandBroken` in a body that runs and doesn't pause, at its next line of Python. From any thread."""
        from ctypes import c_ulong, py_object, pythonapi  # Here, since it takes long to load.

        if (thread := self._thread_id()) is not None:
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), py_object(StrandBroken))

    def check(self) -> None:
        """Raise if it has been broken off, or can't pause here. Before anything is said that it has to wait for."""
        raise NotImplementedError

    def _thread_id(self) -> int | None:
        raise NotImplementedError

    def _live(self) -> None:
        body, self._body = self._body, None
        try:
            if body is not None and not self._broken:
                body()
        except StrandBroken:
            pass
        except BaseException as failure:  # The caller that resumes it looks at it, whatever it is.
            self.failure = failure
        self.finished = True


class GreenletStrand(Strand):
    """A strand that is a greenlet of the thread that resumes it.

    A program may have greenlets of its own: whichever of them pauses goes on. Trace functions belong to threads; here
    each strand has its own, so that a debugger that steps through one doesn't end up in another.
    """

    def __init__(self, name: str, body: Callable[[], object]) -> None:
        super().__init__(name, body)
        self._here: greenlet | None = None  # Where to go on; None before it has started and after it has finished.
        self._root: greenlet | None = None  # Its own greenlet, from which those of the program descend.
        self._outside: greenlet | None = None
        self._thread: int | None = None

    def resume(self) -> None:
        if self._here is None:
            self._begin(getcurrent(), get_ident())
        _switch_to(self._here)

    def pause(self) -> None:
        self.check()
        self._leave_for(self._outside)

    def hand_over(self, other: Any) -> None:
        successor: GreenletStrand = other
        if successor._here is None:
            successor._begin(self._outside, self._thread)
        self._leave_for(successor._here)

    def break_off(self) -> None:
        self._broken = True
        if self._here is not None and self._root is not None:
            # Garbage is collected anywhere, also in a strand of another run: control comes back to there.
            self._root.parent = getcurrent()
            _switch_to(self._here)

    def check(self) -> None:
        if self._broken:
            raise StrandBroken
        if get_ident() != self._thread:
            raise UsageError(
                "it waits in a thread that isn't its program's",
                participant=self.name,
                advice=f"let the thread that runs the program do that, or set {THREADS}=1",
            )

    def _thread_id(self) -> int | None:
        return self._thread

    def _begin(self, outside: greenlet | None, thread: int | None) -> None:
        self._outside = outside
        self._thread = thread
        self._here = self._root = greenlet(self._trace_and_live, outside)

    def _leave_for(self, target: greenlet | None) -> None:
        self._here = getcurrent()
        _switch_to(target)
        if self._broken:
            raise StrandBroken

    def _trace_and_live(self) -> None:
        if (trace := threading.gettrace()) is not None:  # What every new thread begins with.
            settrace(trace)
        self._live()
        self._here = self._root = self._outside = None
        if gettrace() is not None:
            settrace(None)


def _switch_to(target: Any) -> None:
    """Change to another greenlet, and leave the trace function behind until control comes back."""
    trace = gettrace()
    if trace is None:
        target.switch()
        return
    settrace(None)
    target.switch()
    settrace(trace)


class ThreadStrand(Strand):
    """A strand that is a thread, and a baton that goes from one to the next."""

    def __init__(self, name: str, body: Callable[[], object]) -> None:
        super().__init__(name, body)
        # Two locks, both held: who waits for one is let go by the other side's release. Much faster than semaphores.
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread: threading.Thread | None = None

    def resume(self) -> None:
        self._begin()
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        self.check()
        self._back.release()
        self._await_turn()

    def hand_over(self, other: Any) -> None:
        successor: ThreadStrand = other
        successor._back = self._back
        successor._begin()
        successor._go.release()
        self._await_turn()

    def break_off(self) -> None:
        """Unwind it. One that never calls us can't be: it dies with the process.

        Its caller may have been interrupted from the keyboard anywhere, with the baton in either hand. So it isn't
        passed any more: the program is let go for good.
        """
        self._broken = True
        if self._thread is None:
            return
        if self._go.locked():
            self._go.release()
        self._thread.join(_PATIENCE_S)

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait_and_live, name=f"worldline {self.name}", daemon=True)
            self._thread.start()

    def check(self) -> None:
        if self._broken:
            raise StrandBroken

    def _thread_id(self) -> int | None:
        return None if self._thread is None else self._thread.ident

    def _await_turn(self) -> None:
        self._go.acquire()
        self.check()

    def _wait_and_live(self) -> None:
        self._go.acquire()
        self._live()
        if not self._broken:  # Otherwise no caller waits for it.
            self._back.release()


def strand_kind() -> type[GreenletStrand] | type[ThreadStrand]:
    """Return the kind to use: greenlets where they are installed, unless WORLDLINE_THREADS asks for threads."""
    return GreenletStrand if _GREENLETS and os.environ.get(THREADS, "0") in ("", "0") else ThreadStrand
