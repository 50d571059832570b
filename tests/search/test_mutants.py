"""Programs with one mistake each: a search finds it, shrinks it to what it takes, and repeats it from a file.

The consensus and the robot cell are those of the examples. Without the mistake, the same seeds and faults pass.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from worldline.federation.shrinking import ShrunkFederation, shrink_federation
from worldline.search.searching import Report, search_seeds
from worldline.targets.federation_trial import TrialRequest, made_trial
from worldline.targets.saved_trial import load_trial_request, save_trial

EXAMPLES = Path(__file__).parents[2] / "examples"
CRASHES = "crash=3"


class Mutant(NamedTuple):
    """A mistake of some participants, the seed at which it must be found at the latest, and what it takes."""

    entry: str
    who: str
    seed_max: int
    draws: int
    left: tuple[str, ...] = ()
    drawn: str | None = None
    given: tuple[str, ...] = ()
    must: str = "consensus:agreement"

    @property
    def sound(self) -> TrialRequest:
        return TrialRequest(
            target=str(EXAMPLES / "consensus" / "consensus.toml"),
            properties=(self.must,),
            drawn_faults=self.drawn,
            faults=self.given,
        )

    @property
    def request(self) -> TrialRequest:
        changed = tuple(f"participants.{who}.entry=consensus:{self.entry}" for who in self.who.split())
        return replace(self.sound, settings=changed)


AFTER_ANSWERS = tuple(f"ann sends accepted {count}: crash ann 5ms" for count in (1, 2, 3))

LATE = Mutant("late", "ann", 7, 2, ("ann sends accepted: crash ann 5ms",), given=AFTER_ANSWERS)
REPEATING = Mutant(
    *("repeating", "pat", 14, 0, ("pat sends entry: crash pat 7ms",)), "crash-after=3", must="consensus:once"
)
MUTANTS = [
    Mutant("half", "pat", 2, 3),
    Mutant("stubborn", "pat", 0, 0),
    Mutant("hasty", "pat", 5, 0),
    Mutant("careless", "ann bob cy", 5, 0),
    Mutant("forgetful", "ann bob cy", 13, 6, ("10ms crash cy 190ms", "180ms crash ann 20ms"), CRASHES),
    LATE,
    REPEATING,
]


def searched(request: TrialRequest, seeds: int) -> Report:
    trial = made_trial(request)
    return search_seeds(trial, range(seeds), recipe=NotImplemented)


def found(request: TrialRequest, seeds: int) -> tuple[int, ShrunkFederation]:
    report = searched(request, seeds)
    assert report.failure is not None
    return report.failure.seed, shrink_federation(made_trial(request).with_seed(report.failure.seed))


def repeated(request: TrialRequest, shrunk: ShrunkFederation, file: Path) -> str:
    """Save what is left of a failure, run it from the file, and return how it fails."""
    left = tuple(map(str, shrunk.faults))
    save_trial(
        replace(request, seed=shrunk.trial.seed, faults=(), drawn_faults=None, only_faults=left, draws=shrunk.draws),
        file,
    )
    return str(made_trial(load_trial_request(file)).run().failure)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.entry)
def test_a_mistake_is_found_and_shrunk_to_what_it_takes(mutant: Mutant, tmp_path: Path) -> None:
    seed, shrunk = found(mutant.request, mutant.seed_max + 1)
    assert seed == mutant.seed_max
    assert (len(shrunk.draws or {}), tuple(map(str, shrunk.faults))) == (mutant.draws, mutant.left)
    assert shrunk.draws_before > 100
    assert repeated(mutant.request, shrunk, tmp_path / "found.json") == str(shrunk.failure)


@pytest.mark.parametrize("mutant", {mutant.sound: mutant for mutant in MUTANTS}.values(), ids=lambda each: each.entry)
def test_without_the_mistake_the_same_seeds_pass(mutant: Mutant) -> None:
    assert searched(mutant.sound, mutant.seed_max + 1).failure is None


@pytest.mark.parametrize("mutant", [LATE, REPEATING], ids=lambda mutant: mutant.entry)
def test_what_goes_wrong_between_two_lines_takes_a_fault_that_waits_for_an_event(mutant: Mutant) -> None:
    report = searched(replace(mutant.request, faults=(), drawn_faults=CRASHES), 40)
    assert (report.failure, report.tried) == (None, 40)
    assert report.faults > 80


def test_what_is_forgotten_shows_after_a_crash_alone() -> None:
    forgetful = next(mutant for mutant in MUTANTS if mutant.entry == "forgetful")
    assert searched(replace(forgetful.request, drawn_faults=None), 20).failure is None
