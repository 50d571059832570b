"""Programs that answer for all they raise, in this process as in processes of their own.

Whoever runs a federation in Python catches errors of Worldline as they are. A run of a file ends with a line and an
exit code, and these mustn't depend on the executor: elsewhere, all that is left of an error is what is said of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from worldline.federation.blame import blame
from worldline.federation.participant import Participant
from worldline.federation.program import Federation, Program, check_played
from worldline.model.errors import ModelError, WorldlineError


def answerable(federation: Federation) -> Federation:
    """Return the federation with programs whose errors are their author's to act on, whatever they are."""
    return replace(
        federation,
        programs={name: replace(program, run=_answering(program)) for name, program in federation.programs.items()},
    )


def _answering(program: Program) -> Callable[[Participant], object]:
    def play(participant: Participant) -> None:
        try:
            check_played(program.run(participant))
        except WorldlineError as error:  # All others are made one already.
            raise ModelError(blame(error)) from error

    return play
