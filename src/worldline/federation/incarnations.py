"""Runs a participant's program: once, or again after each crash from which it recovers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

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
                if participant.revive():
                    check_played(program(participant))
                return
