"""Runs a participant's program: once, or again after each crash from which it recovers.

A program may catch its own crash, and end in another way. That changes nothing: the crash has ended it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from worldline.federation.blame import is_normal_end
from worldline.federation.participant import Participant
from worldline.federation.program import check_played
from worldline.lock import Crashed, EmergencyStop, RunEnded

P = TypeVar("P", bound=Participant)


def run_program(program: Callable[[P], object], participant: P) -> None:
    """Run the program of a participant that has joined.

    A run that ends, and an emergency stop that the program doesn't catch, are ordinary ends of it.
    """
    with suppress(RunEnded, EmergencyStop):
        while True:
            with suppress(Crashed):  # It may crash again before it is back.
                if not participant.revive() or _lives_out(program, participant):
                    return


def _lives_out(program: Callable[[P], object], participant: P) -> bool:
    """Run one incarnation of a program; return whether it has come to an end of its own."""
    try:
        check_played(program(participant))
    except SystemExit as error:
        if not (participant.is_crashed and is_normal_end(error)):
            raise
    except (RunEnded, EmergencyStop):
        if not participant.is_crashed:
            raise
    return not participant.is_crashed
