"""Programs with one mistake each: a search finds it, shrinks it to what it takes, and repeats it from a file.

The consensus and the robot cell are those of the examples. Without the mistake, the same seeds and faults pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from worldline.federation.inprocess.trial import FederationTrial, shrink_federation
from worldline.search.searching import Report, search_seeds
from worldline.search.shrinking import Shrunk
from worldline.targets import RunOptions
from worldline.targets.trials import TrialRequest, load_trial_request, made_trial, save_trial

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
            options=RunOptions(properties=(self.must,), drawn_faults=self.drawn, faults=self.given),
        )

    @property
    def request(self) -> TrialRequest:
        changed = tuple(f"participants.{who}.entry=consensus:{self.entry}" for who in self.who.split())
        return replace(self.sound, options=replace(self.sound.options, settings=changed))


AFTER_AN_ANSWER = ("ann sends accepted: crash ann 5ms",)

LATE = Mutant("late", "ann", 7, 2, ("ann sends accepted: crash ann 1ms",), given=AFTER_AN_ANSWER)
REPEATING = Mutant(
    *("repeating", "pat", 14, 0, ("pat sends entry: crash pat 1ms",)), "crash-after=3", must="consensus:once"
)
MUTANTS = [
    Mutant("half", "pat", 0, 2),
    Mutant("stubborn", "pat", 0, 0),
    Mutant("hasty", "pat", 5, 0),
    Mutant("careless", "ann bob cy", 5, 0),
    Mutant("forgetful", "ann bob cy", 23, 7, ("33ms crash cy 1ms",), CRASHES),
    LATE,
    REPEATING,
]


def searched(request: TrialRequest, seeds: int) -> Report:
    trial = made_trial(request)
    return search_seeds(trial, range(seeds), recipe=NotImplemented)


def found(request: TrialRequest, seeds: int) -> tuple[int, Shrunk[FederationTrial]]:
    report = searched(request, seeds)
    assert report.failure is not None
    return report.failure.seed, shrink_federation(made_trial(request).with_seed(report.failure.seed))


def repeated(request: TrialRequest, shrunk: Shrunk[FederationTrial], file: Path) -> str:
    """Save what is left of a failure, run it from the file, and return how it fails."""
    save_trial(request, shrunk.trial, file)
    return str(made_trial(load_trial_request(file, request)).run().failure)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.entry)
def test_a_mistake_is_found_and_shrunk_to_what_it_takes(mutant: Mutant, tmp_path: Path) -> None:
    seed, shrunk = found(mutant.request, mutant.seed_max + 1)
    assert seed == mutant.seed_max
    assert (len(shrunk.trial.written or {}), tuple(map(str, shrunk.trial.faults or ()))) == (mutant.draws, mutant.left)
    assert shrunk.drawn > 100
    assert repeated(mutant.request, shrunk, tmp_path / "found.json") == str(shrunk.failure)


@pytest.mark.parametrize("mutant", {mutant.sound: mutant for mutant in MUTANTS}.values(), ids=lambda each: each.entry)
def test_without_the_mistake_the_same_seeds_pass(mutant: Mutant) -> None:
    assert searched(mutant.sound, mutant.seed_max + 1).failure is None


@pytest.mark.long
@pytest.mark.parametrize("mutant", [LATE, REPEATING], ids=lambda mutant: mutant.entry)
def test_what_goes_wrong_between_two_lines_takes_a_fault_that_waits_for_an_event(mutant: Mutant) -> None:
    options = replace(mutant.request.options, faults=(), drawn_faults=CRASHES)
    report = searched(replace(mutant.request, options=options), 40)
    assert (report.failure, report.tried) == (None, 40)
    assert report.faults > 80


def test_what_is_forgotten_shows_after_a_crash_alone() -> None:
    forgetful = next(mutant for mutant in MUTANTS if mutant.entry == "forgetful")
    calm = replace(forgetful.request.options, drawn_faults=None)
    assert searched(replace(forgetful.request, options=calm), 20).failure is None


# -- The robot cell

CELL = EXAMPLES / "robot_cell"
PROPERTIES = """
from worldline import MS
from worldline.search import always, at_end
from robot_cell import part_on_belt

@always("from the second part on, the planner knows where parts are to 2.5 mm")
def known(story):
    last = story.last
    if last is None or last.kind != "sent" or last.topic != "target" or last.value["part"] == 1:
        return True
    return abs(last.value["mm"] - part_on_belt(last.value["seen"])[1]) < 2.5

@at_end("the cell stops when the arm is silent")
def guarded(story):
    heard = [pose.at for pose in story.received("pose", by="watchdog")]
    gaps = [after - before for before, after in zip(heard, [*heard[1:], story.now])]
    assert max(gaps) <= 40 * MS, f"it wasn't heard for {max(gaps) / MS:.0f} ms"
    return True
"""


class CellMutant(NamedTuple):
    """What its source says, what it should say, the property that fails, the seed, and what it takes."""

    wrong: tuple[tuple[str, str], ...]
    must: str
    seed: int
    draws: int
    left: tuple[str, ...] = ()
    drawn: str | None = None


CELL_MUTANTS = {
    "stale news for fresh": CellMutant(
        (
            ("corrected(track, image.sent, seen.mm)", "corrected(track, self.now, seen.mm)"),
            ("Target(seen.part, image.sent, seen.mm,", "Target(seen.part, self.now, seen.mm,"),
        ),
        *("cell_properties:known", 8, 2),
    ),
    "deaf to silence": CellMutant(
        (("if age is None or age > AGE_MAX:", "if age is not None and age > AGE_MAX:"),),
        *("cell_properties:guarded", 0, 0, ("200ms dropout arm 76ms",), "dropout=1"),
    ),
}


def cell_in(folder: Path, wrong: tuple[tuple[str, str], ...]) -> str:
    """Write a robot cell with some lines changed, and return its file."""
    folder.mkdir()
    program = (CELL / "robot_cell.py").read_text()
    for right, other in wrong:
        assert program.count(right) == 1
        program = program.replace(right, other)
    (folder / "robot_cell.py").write_text(program)
    (folder / "cell_properties.py").write_text(PROPERTIES)
    (folder / "robot_cell.toml").write_text((CELL / "robot_cell.toml").read_text())
    return str(folder / "robot_cell.toml")


@pytest.mark.parametrize("name", ["deaf to silence", pytest.param("stale news for fresh", marks=pytest.mark.long)])
def test_a_mistake_in_the_robot_cell_is_found_and_shrunk(name: str, tmp_path: Path) -> None:
    mutant = CELL_MUTANTS[name]
    file = cell_in(tmp_path / "mutant", mutant.wrong)
    request = TrialRequest(
        target=file, options=RunOptions(seed=0, properties=(mutant.must,), drawn_faults=mutant.drawn)
    )
    seed, shrunk = found(request, mutant.seed + 1)
    assert seed == mutant.seed
    assert (len(shrunk.trial.written or {}), tuple(map(str, shrunk.trial.faults or ()))) == (mutant.draws, mutant.left)
    assert repeated(request, shrunk, tmp_path / "found.json") == str(shrunk.failure)

    sound = replace(request, target=cell_in(tmp_path / "sound", ()))
    assert searched(sound, mutant.seed + 1).failure is None
