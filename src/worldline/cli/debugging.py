"""Debugging a participant: Python's debugger in this process, and the terminal for one in a process of its own.

Few runs are debugged, and pdb takes long to load: this module is loaded where it is used.
"""

from __future__ import annotations

import os
import pdb
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import worldline.cli
from worldline.model import Interrupted, WorldlineError

if TYPE_CHECKING:
    from worldline.cli.screen import Screen
    from worldline.federation.participant.participant import Participant
    from worldline.history.replay import RetoldDifference

# Lends the terminal to a participant that is debugged, and takes it back.
#
# While it is lent, nothing of ours is shown: all of it waits. What a person types is the participant's, and so are
# Ctrl-C and Ctrl-Z. The system sends those to our processes, not to the participant's, which has a session of its own;
# so we pass them on. A debugger that is killed at its prompt leaves the terminal without echo: we put it back as it
# was.
#
# Where there is no terminal, the participant gets our standard input, output and error as they are.

_INPUT = 0


class LentTerminal:
    """The terminal of this process, for a group of other processes, with `files` as their standard files."""

    def __init__(self, screen: Screen, files: Sequence[int]) -> None:
        self._files = files
        self._screen = screen
        self._is_terminal = os.isatty(_INPUT)
        self._modes = termios.tcgetattr(_INPUT) if self._is_terminal else None
        self._usual: dict[int, Any] = {}
        self._group: int | None = None
        self._is_back = False

    def make_way(self) -> Sequence[int]:
        self._screen.hold()
        return self._files

    def lend(self, group: int) -> None:
        self._group = group

    def give_back(self) -> None:
        if not self._is_back:
            self._is_back, self._group = True, None
            if self._modes is not None:
                with suppress(termios.error):  # It is gone.
                    termios.tcsetattr(_INPUT, termios.TCSADRAIN, self._modes)
            self._screen.show_held()

    @contextmanager
    def passing_signals_on(self) -> Iterator[None]:
        """Pass on what the system tells us because of what a person types."""
        if self._is_terminal:
            for number in (signal.SIGINT, signal.SIGTSTP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._usual[number] = signal.signal(number, self._act)
        try:
            yield
        finally:
            for each, handler in self._usual.items():
                signal.signal(each, handler)

    def _act(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._stop()
        elif self._group is None:
            self._usual[number](number, frame)
        else:
            self._signal(number)

    def _stop(self) -> None:
        """Stop, with the participant: a shell that is back must be the only one who reads what is typed."""
        modes = termios.tcgetattr(_INPUT)
        self._signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._group is not None:
            termios.tcsetattr(_INPUT, termios.TCSADRAIN, modes)
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)


@contextmanager
def lent_terminal(screen: Screen) -> Iterator[LentTerminal]:
    """Have the terminal ready for a participant, and back in the end."""
    with ExitStack() as stack:
        terminal = LentTerminal(screen, _standard_files(stack))
        stack.callback(terminal.give_back)
        stack.enter_context(terminal.passing_signals_on())
        yield terminal


def _standard_files(stack: ExitStack) -> tuple[int, int, int]:
    """Return the terminal three times, if we have one; what we print may go elsewhere, and a debugger's prompt not."""
    try:
        found = os.open(os.ttyname(_INPUT), os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return 0, 1, 2
    stack.callback(os.close, found)
    return found, found, found


# The debugger for participants that run in this process: `breakpoint()` leads here.
#
# It talks with the user, so it needs the terminal for itself as long as it does, and standard output as it is.


class Debugger(pdb.Pdb):
    """Python's own, which has `make_way` called before it says anything, and knows whether it was quit.

    Python's own lets a call that was quit return as if nothing had happened.
    """

    was_quit = False

    def __init__(self, make_way: Callable[[], None], output: Any) -> None:
        super().__init__(nosigint=True)
        self._make_way = make_way
        self._output = output
        self.stdout = output

    def interaction(self, frame: FrameType | None, *what: Any) -> None:
        self._make_way()
        usual, sys.stdout = sys.stdout, self._output
        try:
            super().interaction(frame, *what)
        finally:
            sys.stdout = usual

    def set_quit(self) -> None:
        self.was_quit = True
        super().set_quit()

    def do_EOF(self, arg: str) -> bool | None:  # noqa: N802 - Python's name.
        self.message("there is no input to take commands from, so the debugger quits (run it in a terminal)")
        return super().do_EOF(arg)


# The debugger for a member that is run again: from its first line on, where it first differs, and where it fails.

_OURS = Path(worldline.cli.__file__).parents[1]
_RUNS = ("worldline.cli.replay", "run_again")  # What has called that isn't part of what is run.


class ReplayDebugger:
    """Python's debugger, at three places of a program."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._debugger = Debugger(lambda: None, sys.stdout)

    def call(self, run: Callable[[Participant], object], participant: Participant) -> object:
        """Call a program, and stop at its first line."""
        try:
            result = self._debugger.runcall(run, participant)
        except WorldlineError:
            raise
        except Exception as error:
            self._say(f"{participant.name} fails: {type(error).__name__}: {error}")
            self._talk(None, error.__traceback__)
            raise
        self._check()
        return result

    def stop_at(self, difference: RetoldDifference) -> None:
        """Stop at the line that has just done something else than in the recorded run."""
        for line in difference.lines():
            self._say(line)
        frame = _users_frame()
        if frame is not None:
            self._talk(frame, None)

    def _talk(self, frame: FrameType | None, trace: TracebackType | None) -> None:
        self._debugger.reset()
        self._debugger.interaction(frame, trace)
        self._check()

    def _check(self) -> None:
        if self._debugger.was_quit:
            raise Interrupted("the debugger was quit")


def _users_frame() -> FrameType | None:
    """Return the innermost frame of what is run again, if it is in the middle of something: its line that called us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) != _RUNS:
        file = Path(frame.f_code.co_filename)
        if _OURS not in file.parents and not _is_pythons_own(frame):
            return frame
        frame = frame.f_back
    return None


def _is_pythons_own(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names
