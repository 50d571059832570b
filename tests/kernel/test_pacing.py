"""Workers under every interleaving: the pacing between them never lets one go too far, nor keeps all of them waiting.

Several workers live in this process, with the real `Crew`, `Pacing` and `Worker`. The channel between them is a stand-in: it
keeps the order of frames between each two workers, as sockets and MPI do, and leaves everything else to a schedule,
which also says whose turn it is. A worker's turn ends by an exception out of the channel; `Crew.run` is then simply
called again, since all that it knows is in its objects.

What is known of all workers at a time gives exact bounds, by `lock.bounds.fixpoint`. No worker may ever think more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import NamedTuple, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.models import MODELS, Diarist, Observation, difference, observe, states
from worldline.kernel import Simulation
from worldline.kernel.crew import Crew, Failure
from worldline.kernel.model import Model
from worldline.kernel.pacing import AWAKE, Pacing, Standing
from worldline.kernel.result import Result, combined
from worldline.kernel.worker import Letter, Worker
from worldline.lock.bounds import Clock, fixpoint
from worldline.model import FOREVER, MS, US, Network, link
from worldline.model.reading import as_time

# -- Workers in one process


class TurnOver(Exception):  # noqa: N818 - It isn't an error.
    """A worker has done what it can for now."""


Letters = dict[tuple[object, ...], int]  # What is under way to a worker: keys of messages, and when they arrive.


class Frames:
    """A worker's channel: what it posts is under way until the schedule delivers it."""

    def __init__(self, me: int, under_way: dict[tuple[int, int], deque[bytes]]) -> None:
        self._me = me
        self._under_way = under_way
        self.delivered: list[tuple[int, bytes]] = []
        self.posted = 0
        self.is_waiting = False
        self.has_polled = False

    def post(self, other: int, frame: bytes) -> None:
        self._under_way[self._me, other].append(frame)
        self.posted += 1

    def poll(self) -> list[tuple[int, bytes]]:
        if self.has_polled:
            raise TurnOver
        self.has_polled = True
        return self._take()

    def wait(self) -> list[tuple[int, bytes]]:
        if not self.delivered:
            self.is_waiting = True
            raise TurnOver
        return self._take()

    def _take(self) -> list[tuple[int, bytes]]:
        taken, self.delivered = self.delivered, []
        return taken


class WatchedPacing(Pacing):
    """Remembers the furthest bound that was ever worked out, and what is next at the worker."""

    def __init__(self, me: int, lookahead: list[list[int]]) -> None:
        super().__init__(me, lookahead)
        self.reached = 0
        self.base = 0

    def bound(self, base: int) -> int:
        found = super().bound(base)
        self.base = base
        self.reached = max(self.reached, found)
        return found


class WatchedWorker(Worker):
    """Keeps what is under way to every worker, and checks what arrives."""

    def __init__(
        self, given: Model, workers: list[int], me: int, pacing: WatchedPacing, letters: list[Letters]
    ) -> None:
        super().__init__(given, workers, me)
        self._me = me
        self._pacing = pacing
        self._letters = letters

    def take_outbox(self) -> list[Letter]:
        taken = super().take_outbox()
        for letter in taken:
            self._letters[self.roster.worker_of(letter[5])][letter[:5]] = letter[0]
        return taken

    def accept(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            assert letter[0] >= self._pacing.reached, f"{letter} arrives before the bound {self._pacing.reached}"
            assert letter[0] >= self.engine.now, f"{letter} arrives at {self.engine.now}"
            del self._letters[self._me][letter[:5]]
        super().accept(letters)


class Schedule(Protocol):
    """Decides what happens next."""

    def pick(self, options: list[Hashable]) -> int: ...

    def events(self) -> int:
        """Return how many events a worker may handle before it looks up."""


class Drawn:
    """Draws from a seed. Some pairs and some workers are favoured, so that others lag far behind."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._weights: dict[Hashable, int] = {}
        self._events_max = self._random.choice((1, 3, 1_000))

    def pick(self, options: list[Hashable]) -> int:
        weights = [self._weights.setdefault(option, self._random.choice((1, 8, 64))) for option in options]
        return self._random.choices(range(len(options)), weights)[0]

    def events(self) -> int:
        return self._random.randint(1, self._events_max)


class Listed:
    """Goes through all schedules, one after the other: `advance` moves on to the next."""

    def __init__(self) -> None:
        self._choices: list[tuple[int, int]] = []  # What was picked, of how many.
        self._place = 0

    def pick(self, options: list[Hashable]) -> int:
        if self._place == len(self._choices):
            self._choices.append((0, len(options)))
        picked, count = self._choices[self._place]
        assert count == len(options), "the same choices led to another state"
        self._place += 1
        return picked

    def events(self) -> int:
        return FOREVER

    def advance(self) -> bool:
        """Begin the next schedule; return whether there is one."""
        self._place = 0
        while self._choices:
            picked, count = self._choices.pop()
            if picked + 1 < count:
                self._choices.append((picked + 1, count))
                return True
        return False


class Outcome(NamedTuple):
    """What came of a run under a schedule."""

    result: Result | None
    failures: list[Failure]
    frames: int
    simulation: Simulation


class Hall:
    """Where all workers are, and all that is under way between them."""

    def __init__(
        self, simulation: Simulation, until: str | None, workers: list[int], count: int, schedule: Schedule
    ) -> None:
        made = simulation.model()
        self._simulation = simulation
        self._end = FOREVER if until is None else as_time(until)
        self._schedule = schedule
        self._lookahead = made.topology.lookahead(made.names, workers, count)
        self._under_way = {(here, there): deque[bytes]() for here in range(count) for there in range(count)}
        self._letters: list[Letters] = [{} for _ in range(count)]
        self._pacings = [WatchedPacing(me, self._lookahead) for me in range(count)]
        self._workers = [WatchedWorker(made, workers, me, self._pacings[me], self._letters) for me in range(count)]
        self._channels = [Frames(me, self._under_way) for me in range(count)]
        self._crews = [
            Crew(self._workers[me], self._pacings[me], self._channels[me], me, count) for me in range(count)
        ]
        self._ended: dict[int, Failure | None] = {}

    def run(self) -> Outcome:
        while options := self._options():
            here, there = options[self._schedule.pick(options)]
            if here == there:
                self._give_turn(here)
                self._check_bounds()
            else:
                self._channels[there].delivered.append((here, self._under_way[here, there].popleft()))
        count = len(self._crews)
        assert len(self._ended) == count, f"only {sorted(self._ended)} of {count} have ended, and nothing is under way"
        failures = [failure for failure in self._ended.values() if failure is not None]
        until = None if self._end == FOREVER else self._end
        result = None if failures else combined([worker.part() for worker in self._workers], until)
        return Outcome(result, failures, sum(channel.posted for channel in self._channels), self._simulation)

    def _options(self) -> list[Hashable]:
        """Return what can happen next: (one, other) for a frame between two, (one, one) for a turn of one."""
        frames = [pair for pair, frames in self._under_way.items() if frames and pair[1] not in self._ended]
        turns = [
            (me, me)
            for me, channel in enumerate(self._channels)
            if me not in self._ended and (channel.delivered or not channel.is_waiting)
        ]
        return [*frames, *turns]

    def _give_turn(self, me: int) -> None:
        self._channels[me].is_waiting = self._channels[me].has_polled = False
        failed = min(standing.failed for standing in self._pacings[me].standings)
        end = min(self._end, failed + 1) if failed < FOREVER else self._end
        try:
            self._ended[me] = self._crews[me].run(end, lambda now, events: self._schedule.events())
        except TurnOver:
            return

    def _check_bounds(self) -> None:
        """Compare what each worker thinks with what follows from the states of all."""
        if any(failure is not None for failure in self._ended.values()):
            return  # One that has failed does nothing more, whatever is in its queue.
        there = [me for me in range(len(self._crews)) if me not in self._ended]
        arriving = {me: min(self._letters[me].values(), default=FOREVER) for me in there}
        clocks = {me: Clock(str(me), min(self._pacings[me].base, arriving[me])) for me in there}
        for here in there:
            clocks[here].promise = 0
            clocks[here].sleeping = True
            clocks[here].ins = [
                (clocks[other], self._lookahead[other][here])
                for other in there
                if other != here and self._lookahead[other][here] < FOREVER
            ]
        exact = fixpoint(list(clocks.values()))
        for me in there:
            most = min(exact[str(me)][0], arriving[me])
            assert self._pacings[me].reached <= most, f"worker {me} goes to {self._pacings[me].reached}, not {most}"


def interleaved(
    build: Callable[[], Simulation], until: str | None, schedule: Schedule, count: int, shuffle: int = 0
) -> Outcome:
    """Run a model with so many workers under a schedule; `shuffle` says who is where."""
    simulation = build()
    workers = [number % count for number in range(len(simulation.model().names))]
    Random(shuffle).shuffle(workers)
    return Hall(simulation, until, workers, count, schedule).run()


# -- Small models: many schedules are worth more than many events


class Caller(Diarist):
    """Calls another now and then, and answers calls a few times."""

    def __init__(self, peers: list[str], calls: list[int], answers: int) -> None:
        super().__init__()
        self.peers = peers
        self.calls = calls
        self.answers = answers

    def start(self) -> None:
        for at in self.calls:
            self.schedule("call", at, at=at)

    def on_call(self, at: int) -> None:
        self.send(self.random.choice(self.peers), "ring", at)

    def on_ring(self, at: int) -> None:
        self.write(at)
        if self.answers:
            self.answers -= 1
            self.send(self.sender, "ring", at)


def trio() -> Simulation:
    """Three, each on its own: two close together, one far away; they all call at the same moments."""
    simulation = Simulation(declared_only=True)
    for name, peers in (("a", ["b"]), ("b", ["a", "c"]), ("c", ["b"])):
        simulation.add(name, Caller(peers, [0, 2 * US, 7 * US], 2))
    simulation.connect("a", "b", "1us")
    simulation.connect("b", "c", "3us")
    return simulation


def round_trip() -> Simulation:
    """Three in a circle that goes one way only."""
    simulation = Simulation(declared_only=True)
    for number, name in enumerate("abc"):
        simulation.add(name, Courier("bca"[number], 3 if name == "a" else 0))
        simulation.connect(name, "bca"[number], "2us", both=False)
    return simulation


class Courier(Diarist):
    """Takes what it gets to the next one, a number of times around."""

    def __init__(self, following: str, rounds: int) -> None:
        super().__init__()
        self.following = following
        self.rounds = rounds

    def start(self) -> None:
        if self.rounds:
            self.send(self.following, "parcel", 3 * self.rounds)

    def on_parcel(self, left: int) -> None:
        self.write(left)
        if left:
            self.send(self.following, "parcel", left - 1)


def quartet() -> Simulation:
    """Four that all reach each other, the links as different as they can be."""
    simulation = Simulation(network=Network(default=link("uniform(1ns, 5us)", duplication=0.2)), seed=3)
    names = ["a", "b", "c", "d"]
    for number, name in enumerate(names):
        peers = [other for other in names if other != name]
        simulation.add(name, Caller(peers, [number * US, 5 * US, 40 * US], 3))
    return simulation


def distant_calls() -> Simulation:
    """Hours of silence, microseconds of lookahead."""
    simulation = Simulation(network=Network(default=link("1us")))
    hour = 3_600_000 * MS
    for number, name in enumerate("abc"):
        simulation.add(name, Caller([other for other in "abc" if other != name], [hour, (number + 1) * hour], 2))
    return simulation


def duet() -> Simulation:
    """As small as can be, so that all schedules can be tried."""
    simulation = Simulation(network=Network(default=link("1us")))
    simulation.add("a", Caller(["b"], [0], 0))
    simulation.add("b", Caller(["a"], [0], 1))
    return simulation


SMALL = (trio, round_trip, quartet, distant_calls)


def check_equal(outcome: Outcome, expected: Observation, seed: int) -> None:
    result = outcome.result
    assert result is not None, f"seed {seed}: {outcome.failures[0].error}"
    monitors = {key: list(monitor) for key, monitor in result.monitors.items()}
    found = expected._replace(
        digest=result.digest.hex(),
        now=result.now,
        events=result.events,
        dropped=result.dropped,
        monitors=monitors,
        states={name: state for name, state in states(outcome.simulation).items() if name in expected.states},
    )
    assert not difference(expected, found), f"seed {seed}: {difference(expected, found)}"


@pytest.mark.parametrize("build", SMALL)
@pytest.mark.parametrize("count", [2, 3])
def test_small_models_under_many_schedules(build: Callable[[], Simulation], count: int) -> None:
    expected = observe(build())
    for seed in range(250):
        check_equal(interleaved(build, None, Drawn(seed), count, shuffle=seed), expected, seed)


@pytest.mark.parametrize("name", MODELS)
def test_all_models_under_some_schedules(name: str) -> None:
    case = MODELS[name]
    expected = observe(case.build(), case.until)
    for seed in range(5):
        check_equal(
            interleaved(case.build, case.until, Drawn(seed), 2 + seed % 3, shuffle=seed), expected, seed
        )


def test_the_smallest_model_under_every_schedule() -> None:
    expected = observe(duet())
    schedule = Listed()
    tried = 1
    check_equal(interleaved(duet, None, schedule, 2), expected, 0)
    while schedule.advance():
        check_equal(interleaved(duet, None, schedule, 2), expected, tried)
        tried += 1
    print(tried)


# -- Long silence costs nothing


@pytest.mark.parametrize("name", ["gaps", "distant_calls"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_frames_are_few_however_long_the_silence(name: str, count: int) -> None:
    """With promises alone, each hour would take 3.6 thousand million frames."""
    build, until = MODELS.get(name, (distant_calls, None))
    events = observe(build(), until).events
    for seed in range(20):
        outcome = interleaved(build, until, Drawn(seed), count)
        print(outcome.frames, events)
