"""Runs a participant's program: once, or again after each crash from which it recovers.

A program may catch its own crash, and end in another way. That changes nothing: the crash has ended it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from worldline.federation.blame import is_normal_end
from worldline.federation.participant import Operations, Participant
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
                if not participant.revive():
                    return
                with one_life(participant):
                    check_played(program(participant))
                if not participant.is_crashed:
                    return


@contextmanager
def one_life(participant: Operations) -> Iterator[None]:
    """Run one incarnation of a program in this: if it has crashed, an ordinary end that it makes of that is no end."""
    try:
        yield
    except (SystemExit, RunEnded, EmergencyStop) as error:
        if not participant.is_crashed or (isinstance(error, SystemExit) and not is_normal_end(error)):
            raise
