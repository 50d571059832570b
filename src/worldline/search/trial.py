"""A trial: one run with everything that it depends on, so that it can be had again; and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

from worldline.history.outcome import Outcome
from worldline.model.errors import WorldlineError
from worldline.search.day import Day

_MANY = 4  # A fourth of the faults.


class Tried(Protocol):
    """What a search tries, whichever room it is of."""

    @property
    def seed(self) -> int: ...

    def with_seed(self, seed: int) -> Self:
        """Return it with another seed, and on the day which that seed draws unless it has one."""

    def run(self) -> TrialOutcome:
        """Run it; a failure of the model is an outcome, too."""

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it; return as well how many lines tell what happens, up to the failure: what a reader has to read."""


@dataclass(frozen=True, kw_only=True)
class TrialOutcome(Outcome):
    """The outcome of a trial.

    `faults` is how many happened, `faults_in_vain` how many of them when nothing was left to do, as far as that is
    known: of nodes, inline, if they don't fail. `unseen` are properties that weren't checked. `day` is what of the
    kind of day made a difference, if that is known.
    """

    seed: int
    faults: int
    faults_in_vain: int = 0
    unseen: tuple[str, ...] = ()
    day: Day | None = field(default=None, compare=False)

    @classmethod
    def failed(cls, seed: int, failure: WorldlineError) -> TrialOutcome:
        """Return the outcome of a trial of which only the failure is known."""
        return cls(digest=b"", now=failure.at or 0, events=0, failure=failure, is_cut=True, seed=seed, faults=0)

    def remarks(self) -> list[str]:
        found = []
        if self.unseen:
            found.append(f"not checked, since that needs the inline executor: {'; '.join(self.unseen)}")
        return found + remarks_on(self.faults, self.faults_in_vain)


def remarks_on(faults: int, in_vain: int) -> list[str]:
    """Say that faults came too late to show anything, if it is a good part of them."""
    if not in_vain or _MANY * in_vain < faults:
        return []
    told = f"{in_vain:,} of {faults:,} fault{'' if faults == 1 else 's'} came when nothing was left to do"
    return [f"{told}: to try more, end the run earlier (--until)"]
