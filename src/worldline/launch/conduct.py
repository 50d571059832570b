"""How a process behaves that a launcher has started: what it prints, and with which exit code it ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from worldline.federation.blame import NO_TERMINAL, is_debugger_quit
from worldline.federation.bystander import is_bystander, parting_words
from worldline.federation.participant import Participant
from worldline.federation.program import Program, check_played
from worldline.launch.time_stamps import STAMPING, TimeStamps
from worldline.lock import RunEnded
from worldline.model import Interrupted, UsageError, WorldlineError
from worldline.model.blame import trace_of


def stamped_output() -> TimeStamps:
    """Have what is printed stamped, if a launcher reads it: then there is no terminal, which a debugger would need."""
    stamps = TimeStamps()
    if os.environ.get(STAMPING):
        stamps.install()
        if os.environ.get("PYTHONBREAKPOINT") in (None, "", "pdb.set_trace"):  # Others may need no terminal.
            sys.breakpointhook = _stop_for_debugger
    return stamps


def live(program: Program, participant: Participant) -> None:
    """Run the program of a participant that has joined, unless the run was over by then."""
    if not participant.ended:
        with suppress(RunEnded):
            check_played(program.run(participant))


def last_words(error: BaseException) -> int:
    """Say how a program has ended, and return the exit code that says so, too."""
    if isinstance(error, WorldlineError):
        print(parting_words(error) if is_bystander(error) else f"worldline: {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, KeyboardInterrupt) or (is_debugger_quit(error) and not os.environ.get(STAMPING)):
        return Interrupted.exit_code
    print(trace_of(error), file=sys.stderr)  # Its author sees all of it here; the others have been told in a line.
    return 1


def _stop_for_debugger(*_: object, **__: object) -> None:
    raise UsageError("breakpoint() needs a terminal, which a participant's process doesn't have", advice=NO_TERMINAL)
