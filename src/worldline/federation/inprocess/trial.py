"""A trial of a federation: one run in this process, with its seed, its faults and its draws, judged by properties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from worldline.federation.inprocess.run import run
from worldline.federation.participant.program import Federation
from worldline.history.journal import Journal
from worldline.history.outcome import EVERYBODY_ELSE, Status
from worldline.model.draws.table import DrawFunction, DrawInputs, read_draws
from worldline.model.errors import ConfigurationError, InternalError, Interrupted, Stuck, WorldlineError
from worldline.model.faults.drawn import draw_participant_faults, said_of_undrawn
from worldline.model.faults.faults import ENDED_BY, ParticipantFault, as_faults
from worldline.search.day import USUAL_DAY, Day, DayDraws, draw_day
from worldline.search.properties import BrokenCheck, Happening, Property, Story, told_by
from worldline.search.searching import Expired, TrialOutcome, quietly


@dataclass(frozen=True, kw_only=True)
class FederationTrial:
    """All that a run of a federation depends on. `make` makes its programs anew, since they may keep state.

    `kinds` are faults drawn from the seed, with how many of each, besides those that the federation has; or `faults`
    are all there are. `table` replaces draws, and `draws` is a function that replaces those that the table leaves.
    `day` is the kind of day; without one a run has a usual day, and a search draws one for each seed.
    """

    make: Callable[[], Federation]
    properties: tuple[Property, ...] = ()
    seed: int = 0
    kinds: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[ParticipantFault, ...] | None = None
    table: DrawInputs = field(default_factory=DrawInputs)
    draws: DrawFunction | None = None
    day: Day | None = None

    def with_seed(self, seed: int) -> FederationTrial:
        return replace(self, seed=seed, day=draw_day(seed, self.kinds) if self.day is None else self.day)

    def draw_function(self) -> DrawFunction | None:
        """Return what replaces the draws that the table leaves: what is written down, or the day."""
        if self.draws is None and self.day is not None and self.day.changes_messages:
            return DayDraws(self.day, self.seed)
        return self.draws

    def federation(self) -> Federation:
        """Return what is run, with all of its faults written out."""
        made = replace(self.make(), seed=self.seed)
        if self.faults is not None:
            return replace(made, faults=self.faults)
        if self.kinds:
            return replace(made, faults=(*made.plan().faults, *self._drawn(made)))
        return made

    def _draw_inputs(self, function: DrawFunction | None) -> DrawInputs:
        rows, functions = read_draws(function)
        return DrawInputs((*rows, *self.table.rows), {**functions, **self.table.functions})  # The last row counts.

    def undrawn(self) -> list[str]:
        """Say which faults of those that are asked for this seed can't have."""
        return said_of_undrawn(self.kinds, self._drawn(self.make())) if self.kinds else []

    def _drawn(self, made: Federation) -> tuple[ParticipantFault, ...]:
        plan = made.plan()
        kinds = (self.day or USUAL_DAY).faults_of(self.kinds)
        return draw_participant_faults(kinds, made.programs, plan.end, self.seed, given=plan.faults)

    def run(self) -> TrialOutcome:
        """Run it; what its programs raise is an outcome, too."""
        return self.told()[0]

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it, and return how much has happened as well, up to the failure."""
        outcome, happenings = self.told()
        return outcome, len(happenings)

    def told(self) -> tuple[TrialOutcome, list[Happening]]:
        """Run it, and return what has happened as well, up to where a property failed or a program raised."""
        federation = self.federation()
        federation.plan()  # What can't be run is refused, and isn't a failure of the model.
        journals: dict[str, Journal] = {}
        look, draws = _Look(), self.draw_function()
        try:
            with quietly():
                outcome = run(federation, keep_journals=journals, draws=self._draw_inputs(draws), watch=look.at)
        except Expired as expired:
            raise look.named(expired.stuck()) from None
        except (InternalError, Interrupted):
            raise
        except WorldlineError as error:
            if isinstance(error, ConfigurationError) and error.participant is None:
                raise
            failed = replace(
                TrialOutcome.failed(self.seed, error), day=(self.day or USUAL_DAY).felt_by(draws, self.kinds)
            )
            return failed, _up_to(error.at, told_by(journals))
        story, failure = Story(), None
        happenings = told_by(journals)
        try:
            with quietly():
                story.judge(happenings, self.properties, outcome.times)
        except BrokenCheck as broken:
            raise broken.on_seed(self.seed) from broken.__cause__
        except WorldlineError as error:
            failure = error
        return (
            TrialOutcome(
                digest=outcome.digest,
                now=outcome.now,
                events=outcome.events,
                members=outcome.members,
                dropped=outcome.dropped,
                failure=failure,
                seed=self.seed,
                faults=_count_faults(as_faults(federation.faults), happenings),
                day=(self.day or USUAL_DAY).felt_by(draws, self.kinds),
            ),
            story.happenings,
        )


class _Look:
    """Knows who computed for long when a run was last looked at, in case that its time is up."""

    def __init__(self) -> None:
        self._time: int | None = None
        self._busy: list[str] = []

    def at(self, status: Status) -> None:
        is_still = status.time == self._time  # Only then a participant may: to ask who waits takes long.
        self._busy = [wait.why for wait in status.waits if wait.who == EVERYBODY_ELSE] if is_still else []
        self._time = status.time

    def named(self, stuck: Stuck) -> Stuck:
        """Return the error with the participants that computed."""
        return Stuck(": ".join([stuck.problem, *self._busy]), advice=stuck.advice, **stuck.facts)


def _up_to(time: int | None, happenings: Iterable[Happening]) -> list[Happening]:
    """Leave out what others did who were ahead."""
    return [each for each in happenings if time is None or each.at <= time]


def _count_faults(faults: Iterable[ParticipantFault], happenings: Iterable[Happening]) -> int:
    """Return how many faults there were; one that waits for an event in vain is none."""
    befell = {(each.who, each.text) for each in happenings if each.kind == "befell"}
    return sum(
        each.verb in ENDED_BY and (each.after is None or (each.participant, str(each)) in befell) for each in faults
    )
