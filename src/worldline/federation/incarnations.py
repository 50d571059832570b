"""Runs a participant's program: once, or again after each crash from which it recovers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from worldline.federation.participant import Participant
from worldline.lock import Crashed, EmergencyStop, RunEnded

P = TypeVar("P", bound=Participant)


def run_program(program: Callable[[P], object], participant: P) -> object:
    """Run the program of a participant that has joined, and return what it returns.

    A run that ends, and an emergency stop that the program doesn't catch, are ordinary ends of it.
    """
    with suppress(RunEnded, EmergencyStop):
        while True:
            with suppress(Crashed):  # It may crash again before it is back.
                return program(participant) if participant.revive() else None
    return None
