"""Debugging a participant in this process, in a run or after it, with Python's debugger.

Few runs are debugged, and pdb takes long to load: this module is loaded where it is used.
"""

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import worldline.cli
from worldline.model import Interrupted, WorldlineError

if TYPE_CHECKING:
    from worldline.federation.participant.participant import Participant
    from worldline.history.replay import RetoldDifference

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
