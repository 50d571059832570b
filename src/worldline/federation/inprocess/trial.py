"""A trial of a federation: one run in this process, with its seed, its faults and its draws, judged by properties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from msgspec import structs

from worldline.federation.inprocess.run import run
from worldline.federation.participant.program import Federation
from worldline.history.observer import Observer
from worldline.history.outcome import ALL_OTHERS, Status
from worldline.history.telling import SeveralObservers
from worldline.model.draws.distributions import ClockOffset, ClockRate, DrawnValue, Turn
from worldline.model.draws.names import (
    ANY,
    CLOCK_DRIFT,
    CLOCK_OFFSET,
    TURN,
    draw_in_words,
    drawn_text,
    name_text,
    names_in,
    numbered_message,
    renumbered,
)
from worldline.model.draws.table import DrawFunction, DrawInputs, read_draws
from worldline.model.errors import ConfigurationError, InternalError, Interrupted, Stuck, UsageError, WorldlineError
from worldline.model.faults import (
    ENDED_BY,
    ParticipantFault,
    are_milder,
    as_faults,
    draw_participant_faults,
    said_of_undrawn,
    spans_of,
)
from worldline.model.latency import Latency
from worldline.model.text import counted
from worldline.model.time import FOREVER, MS, SECOND, format_time
from worldline.search.day import USUAL_DAY, Day, DayDraws, draw_day
from worldline.search.properties import BrokenCheck, Happening, Property, StoryObserver
from worldline.search.schedules import Schedules, TurnDraws, delayed_turns, drawn_turns, ordinary
from worldline.search.searching import SECONDS_MAX, Expired, TrialOutcome, quietly
from worldline.search.shrinking import (
    RUNS_MAX,
    CountedRuns,
    DrawsSeen,
    Shrinking,
    Shrunk,
    WrittenDraws,
    calm,
    lessened,
    rounded,
    usual,
)


@dataclass(frozen=True, kw_only=True)
class FederationTrial:
    """All that a run of a federation depends on. `make` makes its programs anew, since they may keep state.

    `kinds` are faults drawn from the seed, with how many of each, besides those that the federation has; or `faults`
    are all there are. `table` replaces draws, and `draws` is a function that replaces those that the table leaves.
    `day` is the kind of day; without one a run has a usual day, and a search draws one for each seed. `schedules` says
    how event loops choose between callbacks; without it, they don't. No fault is drawn for those that are `spared`.
    """

    make: Callable[[], Federation]
    properties: tuple[Property, ...] = ()
    seed: int = 0
    kinds: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[ParticipantFault, ...] | None = None
    table: DrawInputs = field(default_factory=DrawInputs)
    draws: DrawFunction | None = None
    day: Day | None = None
    schedules: Schedules | None = None
    spared: frozenset[str] = frozenset()

    def with_seed(self, seed: int) -> FederationTrial:
        return replace(self, seed=seed, day=draw_day(seed, self.kinds) if self.day is None else self.day)

    def each_schedule(self) -> Iterator[FederationTrial]:
        """Yield it, or one trial for each of its schedules."""
        if self.schedules is None or self.schedules.way != "delays" or self.draws is not None:
            yield self
            return
        for draws in delayed_turns(self.schedules.depth, self._of_day):
            yield replace(self, draws=draws)

    def with_choices(self) -> FederationTrial:
        """Return it with what a choice of schedules has to know: between how many tasks, and how often, it chooses."""
        if self.schedules is None or self.schedules.way != "pct":
            return self
        seen = ordinary(self._of_day())
        replace(self, draws=seen).run()
        return replace(self, schedules=structs.replace(self.schedules, choices=seen.choices()))

    @property
    def written(self) -> dict[str, DrawnValue] | None:
        """The draws that are written down, besides which all is calm; None if the seed makes them."""
        return self.draws.written if isinstance(self.draws, WrittenDraws) else None

    def draw_function(self) -> DrawFunction | None:
        """Return what replaces the draws that the table leaves: what is written down, or the day and the schedule."""
        if self.draws is not None:
            return self.draws
        if self.schedules is not None:
            return drawn_turns(self.schedules, self.seed, self._of_day())
        return self._of_day()

    def _of_day(self) -> DrawFunction | None:
        return DayDraws(self.day, self.seed) if self.day is not None and self.day.changes_messages else None

    @property
    def _chooses_turns(self) -> bool:
        return self.schedules is not None or any(name.startswith(f"{TURN}/") for name in self.written or ())

    def federation(self) -> Federation:
        """Return what is run, with all of its faults written out."""
        made = replace(self.make(), seed=self.seed)
        if self.faults is not None:
            return replace(made, faults=self.faults)
        if self.kinds:
            return replace(made, faults=(*made.plan().faults, *self._drawn(made)))
        return made

    def _draw_inputs(self, function: DrawFunction | None) -> DrawInputs:
        # Programs are asked for their turns only if a row is about these: each costs time.
        given = {ANY: function, TURN: function} if function is not None and self._chooses_turns else function
        rows, functions = read_draws(given)
        return DrawInputs((*rows, *self.table.rows), {**functions, **self.table.functions})  # The last row counts.

    def undrawn(self) -> list[str]:
        """Say which faults of those that are asked for this seed can't have."""
        return said_of_undrawn(self.kinds, self._drawn(self.make())) if self.kinds else []

    def _drawn(self, made: Federation) -> tuple[ParticipantFault, ...]:
        plan = made.plan()
        kinds = (self.day or USUAL_DAY).faults_of(self.kinds)
        mortal = {name: each for name, each in made.programs.items() if name not in self.spared}
        return draw_participant_faults(kinds, mortal, plan.end, self.seed, given=plan.faults)

    def run(self) -> TrialOutcome:
        """Run it; what its programs raise is an outcome, too."""
        return self.told()[0]

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it, and return how much has happened as well, up to the failure."""
        outcome, happenings = self.told()
        return outcome, len(happenings)

    def told(self, *, quiet: bool = True, observer: Observer | None = None) -> tuple[TrialOutcome, list[Happening]]:
        """Run it, and return what has happened as well, up to where a property failed or a program raised.

        Unless it is `quiet`, what programs print is printed. An observer is told all of the run.
        """
        federation = self.federation()
        federation.plan()  # What can't be run is refused, and isn't a failure of the model.
        story_told = StoryObserver()
        look, draws = _Look(), self.draw_function()
        try:
            with quietly() if quiet else nullcontext():
                outcome = run(
                    federation,
                    draws=self._draw_inputs(draws),
                    watch=look.at,
                    observer=story_told if observer is None else SeveralObservers((story_told, observer)),
                )
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
            return failed, _up_to(error.at, story_told.happenings())
        try:
            with quietly():
                story, failure = story_told.judge(self.properties, outcome, federation.plan().end)
        except BrokenCheck as broken:
            raise broken.on_seed(self.seed) from broken.__cause__
        return (
            TrialOutcome(
                digest=outcome.digest,
                now=outcome.now,
                events=outcome.events,
                members=outcome.members,
                dropped=outcome.dropped,
                monitors=outcome.monitors,
                failure=failure,
                seed=self.seed,
                faults=_count_faults(as_faults(federation.faults), story_told.happenings()),
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
        self._busy = [wait.why for wait in status.waits if wait.who == ALL_OTHERS] if is_still else []
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


# Shrinking a federation's failure: from a seed to the few draws and faults that it takes.
#
# All that the seed has drawn for links and clocks is written down: how long each message took, which got lost or came
# twice, and how wrong each clock was; and so are the faults. What is written down is taken out again as far as the
# failure stays; a message of which nothing is written takes the usual time, and such a clock is as right as it can be.
# What can't be taken out happens to earlier messages if it can; clocks are off by less, faults are shortened, and
# slowness is lessened. What the programs draw themselves stays as the seed has it. Nothing gets worse on the way, as
# for nodes: no more messages get lost than did, latencies stay within their bounds, faults happen only when they did,
# the run ends when it did, and the story isn't longer.
#
# It ends when no single step helps any more, or after so many runs.

_UNITS = (SECOND // 10, SECOND // 100, MS)  # What times of faults are rounded to, the coarsest that still fails.
_CLOCKS_MAX = 5  # Of which is said how they are wrong.
_LATER_MAX = 24  # Choices between callbacks after one that passes over many.
_NAMED_MAX = 2  # Callbacks that were passed over.
_ROUND = 5  # A round time is a whole number of fifths of the usual one.

Written = tuple[str, DrawnValue]


def shrink_federation(
    trial: FederationTrial,
    *,
    runs_max: int = RUNS_MAX,
    seconds_max: float | None = SECONDS_MAX,
    progress: Callable[[int], None] | None = None,
) -> Shrunk[FederationTrial]:
    """Return the calmest trial found that fails in the same way."""
    trial = _failing_schedule(trial)
    if trial.draws is not None and not isinstance(trial.draws, WrittenDraws | TurnDraws):
        raise UsageError("draws that a function makes can't be shrunk")
    federation = trial.federation()
    trial = replace(trial, faults=as_faults(federation.faults), kinds={})
    seen = DrawsSeen(trial.draw_function())
    outcome, before = replace(trial, draws=seen).told()
    if outcome.failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    runs = CountedRuns(outcome.failure, len(before), runs_max, seconds_max, progress)

    faults_before = sum(each.verb in ENDED_BY for each in trial.faults or ())
    trial = _FederationShrinking(trial, federation.plan().end, seen, runs).finish()
    outcome, happenings = trial.told()
    assert outcome.failure is not None
    return Shrunk(
        trial=trial,
        failure=outcome.failure,
        records=happenings,
        records_before=len(before),
        drawn=len(seen.restless),
        left=len(trial.written or {}),
        faults_before=faults_before,
        lines=in_words(trial),
        runs=runs.done,
    )


def _failing_schedule(trial: FederationTrial) -> FederationTrial:
    """Return the trial with the first schedule that fails; the trial itself if it has only one."""
    for single in trial.each_schedule():
        if single is trial or single.run().failure is not None:
            return single
    return trial


def in_words(trial: FederationTrial) -> list[str]:
    """Say of a trial that was run that all is calm, and what isn't."""
    lines = []
    for name, value in (trial.written or {}).items():
        turns = trial.draws.turns if isinstance(trial.draws, WrittenDraws) else {}
        words = _turn_in_words(name, *turns[name]) if name in turns else draw_in_words(name, value)
        lines.append(f"  {name} = {drawn_text(name, value)}" + (f"  ({words})" if words else ""))
    federation = trial.federation()
    lines += [f"  {each}" for each in as_faults(federation.faults)]
    if trial.written is None:  # It fails only as the seed has it.
        return lines
    wrong_clocks = _wrong_clocks(trial, federation)
    of_clocks = [name for name in trial.written if name.startswith((f"{CLOCK_OFFSET}/", f"{CLOCK_DRIFT}/"))]
    has_clocks = of_clocks or (isinstance(trial.draws, WrittenDraws) and trial.draws.calm_clocks)
    clocks = wrong_clocks[:_CLOCKS_MAX] or (["clocks are right"] if has_clocks else [])
    more = len(wrong_clocks) - _CLOCKS_MAX
    if more > 0:
        clocks.append(f"clocks are wrong in {counted(more, 'more way')}")
    moved = sum(name.startswith(f"{TURN}/") for name in trial.written)
    if moved:
        clocks.append("one callback runs out of order, once" if moved == 1 else f"{moved} callbacks run out of order")
    elif trial.schedules is not None:
        clocks.append("callbacks run in their own order")
    *calm, last = "every message takes the usual time", "none gets lost", *clocks
    ending = ", but" if len(lines) > moved else ":" if moved else ""
    return [f"{', '.join(calm)} and {last}{ending}", *lines]


def _turn_in_words(name: str, ran: str, *passed: str) -> str:
    _, participant, _ = names_in(name) or ("", "", "")
    if len(passed) > _NAMED_MAX + 1:
        passed = (*passed[:_NAMED_MAX], f"{len(passed) - _NAMED_MAX} others")
    return f"{participant} runs {ran} before {' and '.join(passed)}" if passed else f"{participant} runs {ran}"


def _wrong_clocks(trial: FederationTrial, federation: Federation) -> list[str]:
    """Say how clocks are wrong though nothing is out of the ordinary, after a run: it is stated, or the least drawn."""
    found = []
    for name, program in federation.programs.items():
        clock = program.local_clock()
        if clock is None:
            continue
        for purpose, stated in ((CLOCK_OFFSET, clock.offset), (CLOCK_DRIFT, clock.drift)):
            draw = name_text((purpose, name, "0"))
            drawn = trial.draws.calm_clocks.get(draw, 0) if isinstance(trial.draws, WrittenDraws) else 0
            value = stated if isinstance(stated, int) else drawn
            if value:
                found.append(draw_in_words(draw, value))
        for jump in clock.jumps:
            way = "back" if jump.by < 0 else "forward"
            found.append(f"the clock of {name} jumps {way} by {format_time(abs(jump.by))} at {format_time(jump.at)}")
    return found


def written_out(faults: Sequence[ParticipantFault]) -> tuple[ParticipantFault, ...]:
    """Let each fault say itself how long it lasts, so that it can be taken out or shortened by itself."""
    found = [each for each in faults if each.after is not None]
    for name, verb in dict.fromkeys((each.participant, each.verb) for each in faults if each.verb in ENDED_BY):
        for start, over, begun in spans_of(faults, name, verb):
            is_ended = begun.lasts is None and over < FOREVER
            found.append(structs.replace(begun, lasts=over - start) if is_ended else begun)
    return as_faults(found)


class _FederationShrinking:
    """The steps by which a federation's trial gets calmer."""

    def __init__(self, trial: FederationTrial, end: int | None, seen: DrawsSeen, runs: CountedRuns) -> None:
        self._trial = trial
        self._end = end
        self._seen = seen
        self._state: Shrinking[ParticipantFault, str, DrawnValue] = Shrinking(
            runs, trial.faults or (), None, drawn=len(seen.restless), make=self._possible, is_milder=are_milder
        )

    def finish(self) -> FederationTrial:
        """Take steps until none helps any more: without some draws, a fault may turn out to be needless, too."""
        state, left = self._state, object()
        while left != (state.faults, state.draws):
            left = state.faults, state.draws
            state.attempt(faults=written_out(state.faults))
            state.leave_out_faults()
            self._leave_out_draws()
            state.make_earlier(numbered_message, self._renumbered)
            for name in tuple(state.draws or ()):
                self._round_latency(name)
                self._right_clock(name)
            for name in tuple(state.draws or ()):
                self._pass_over_fewer(name)
            for place, fault in enumerate(state.faults):
                if fault.verb in ENDED_BY:
                    self._soften(place)
        day = self._trial.day if state.draws is None else USUAL_DAY
        return replace(self._made(as_faults(state.faults), state.draws), day=day)

    def _made(self, faults: tuple[ParticipantFault, ...], draws: dict[str, DrawnValue] | None) -> FederationTrial:
        return replace(self._trial, faults=faults, draws=self._trial.draws if draws is None else WrittenDraws(draws))

    def _possible(
        self, faults: tuple[ParticipantFault, ...], draws: dict[str, DrawnValue] | None
    ) -> FederationTrial | None:
        """Return the trial, if its faults go together: without some of them, or at other times, they may not."""
        made = self._made(faults, draws)
        try:
            made.federation().plan()
        except ConfigurationError:
            return None
        return made

    def _leave_out_draws(self) -> None:
        state = self._state
        if state.draws is None:
            trial = self._made(state.faults, None)
            if trial.draws is None:  # Without a fault, there may be messages that the seed draws something for.
                self._seen = DrawsSeen(trial.draw_function())
                replace(trial, draws=self._seen).run()
                state.drawn = len(self._seen.restless)
            if not state.attempt(draws=dict(self._seen.restless)):
                return
        state.leave_out_draws()

    def _renumbered(self, name: str, number: int) -> str:
        moved = renumbered(name, number)
        self._seen.distributions.setdefault(moved, self._seen.distributions[name])
        return moved

    def _right_clock(self, name: str) -> None:
        """Let a clock be off by less, and by a round number more than it has to be."""
        distribution, value = self._seen.distributions.get(name), int((self._state.draws or {})[name])
        if isinstance(distribution, ClockOffset | ClockRate):
            least = int(calm(name, distribution, value))
            sign = -1 if value < least else 1
            lessened(abs(value - least), lambda more: self._state.attempt_draw(name, least + sign * more))

    def _pass_over_fewer(self, name: str) -> None:
        """Let a callback run ahead of fewer others; or ahead of one, a little later."""
        distribution, passed = self._seen.distributions.get(name), int((self._state.draws or {})[name])
        if not isinstance(distribution, Turn) or passed == 1:
            return
        if any(self._state.attempt_draw(name, fewer) for fewer in range(1, passed)):
            return
        rest, number = {**(self._state.draws or {})}, int(name.rpartition("/")[2])
        del rest[name]
        later = (renumbered(name, number + more) for more in range(1, _LATER_MAX))
        moved = next(
            (each for each in later if each not in rest and self._state.attempt(draws={**rest, each: 1})), None
        )
        if moved is not None:
            self._seen.distributions.setdefault(moved, distribution)

    def _round_latency(self, name: str) -> None:
        latency, time = self._seen.distributions.get(name), int((self._state.draws or {})[name])
        if not isinstance(latency, Latency):
            return
        unit = max(1, usual(latency) // _ROUND)
        near = rounded(latency, time, unit)
        if near != time:
            beyond = rounded(latency, near + unit if near >= usual(latency) else near - unit, 1)
            if not self._state.attempt_draw(name, near):
                self._state.attempt_draw(name, beyond)

    def _soften(self, place: int) -> None:
        """Let a fault slow less, be over earlier and begin later; and let it begin at a round time."""
        fault = self._state.faults[place]
        if fault.delay:
            lessened(fault.delay, lambda delay: self._state.attempt_fault(place, structs.replace(fault, delay=delay)))
        self._shorten(place)
        if fault.after is None:
            self._put_off(place)

    def _shorten(self, place: int) -> None:
        """Let a fault be over earlier. Who crashes for good stays down: if it recovered, more would happen."""
        fault = self._state.faults[place]
        lasts = fault.lasts
        if lasts is None and fault.verb != "crash" and self._end is not None:
            lasts = self._end + 1 - fault.at  # Who is back at the end still acts then.
        if lasts is not None:
            lessened(lasts, lambda shorter: self._state.attempt_fault(place, structs.replace(fault, lasts=shorter)))

    def _put_off(self, place: int) -> None:
        """Let a fault begin later, and be over when it was."""
        fault = self._state.faults[place]
        if fault.lasts is not None:
            over = fault.at + fault.lasts
            lessened(
                fault.lasts,
                lambda rest: self._state.attempt_fault(place, structs.replace(fault, at=over - rest, lasts=rest)),
            )
        elif self._end is not None:
            end = self._end
            lessened(
                end - fault.at, lambda rest: self._state.attempt_fault(place, structs.replace(fault, at=end - rest))
            )
        fault = self._state.faults[place]
        for unit in _UNITS:
            later = -(-fault.at // unit) * unit
            if later == fault.at or self._state.attempt_fault(place, structs.replace(fault, at=later)):
                break
