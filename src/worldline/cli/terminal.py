"""Lends the terminal to a participant that is debugged, and takes it back.

While it is lent, nothing of ours is shown: all of it waits. What a person types is the participant's, and so are Ctrl-C
and Ctrl-Z. The system sends those to our processes, not to the participant's, which has a session of its own; so we
pass them on. A debugger that is killed at its prompt leaves the terminal without echo: we put it back as it was.

Where there is no terminal, the participant gets our standard input, output and error as they are.
"""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

from worldline.cli.screen import Screen

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
    """Have the terminal ready for somebody, and back in the end."""
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
