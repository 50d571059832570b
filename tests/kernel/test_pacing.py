"""Workers under every interleaving: the pacing between them never lets one go too far, nor keeps all of them waiting.

Several workers live in this process, with the real `DistributedWorker`, `Pacing` and `Worker`. The channel between them
isn't real: it keeps the order of frames between each two workers, as sockets and MPI do, and leaves all else to a
schedule, which also says whose turn it is. A worker's turn ends by an exception out of the channel;
`DistributedWorker.run` is then simply called again, since all that it knows is in its objects.

What is known of all workers at a time gives exact bounds, by `lock.bounds.fixpoint`. No worker may ever think more.
"""

from __future__ import annotations

import pickle
import re
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import NamedTuple, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel.models import MODELS, Diarist, Observation, difference, observe, riot, states
from tests.soaking import later
from worldline.kernel import Simulation
from worldline.kernel.engine import LETTER
from worldline.kernel.model import KernelOutcome, Model, combined
from worldline.kernel.worker import DistributedWorker, Pacing, Worker, WorkerProgress
from worldline.lock.bounds import Clock, fixpoint
from worldline.model import FOREVER, HOUR, MS, US, ModelError, Network, link
from worldline.model.reading import as_time
from worldline.processes.failures import Failure

# -- Workers in one process


_STEPS_MAX = 100_000  # Far more than any of these models needs.


class TurnOver(Exception):  # noqa: N818 - It isn't an error.
    """A worker has done what it can for now."""


Letter = tuple[int, int, int, str, int]
Letters = dict[Letter, int]  # What is under way to a worker: keys of messages, and when they arrive.


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
        self._names = given.names
        self._taken: dict[int, int] = {}

    def take_letters(self, other: int) -> bytes:
        taken = super().take_letters(other)
        for letter in self._read(taken, self.posted(other) - self._taken.get(other, 0), self._me):
            self._letters[other][letter] = letter[0]
        self._taken[other] = self.posted(other)
        return taken

    def accept(self, other: int, frame: bytes, start: int, count: int) -> None:
        for letter in self._read(frame[start:], count, other):
            assert letter[0] >= self._pacing.reached, f"{letter} arrives before the bound {self._pacing.reached}"
            assert letter[0] >= self.engine.now, f"{letter} arrives at {self.engine.now}"
            del self._letters[self._me][letter]
        super().accept(other, frame, start, count)

    def _read(self, letters: bytes, count: int, sender: int) -> list[Letter]:
        """Return the keys of letters from a worker: arrival, time sent, order, and sender, by name."""
        end = count * LETTER.size
        names = pickle.loads(letters[end:])[1] if len(letters) > end else []
        read = LETTER.iter_unpack(letters[:end])
        return [
            (arrival, sent, order, self._names[source] if source >= 0 else names[-1 - source], sender)
            for arrival, sent, order, source, *_ in read
        ]


def exact_bounds(lookahead: list[list[int]], bases: Sequence[int]) -> list[int]:
    """Return the bounds of workers that all wait, by the lock's own calculus."""
    clocks = [Clock(str(number), base) for number, base in enumerate(bases)]
    for here, clock in enumerate(clocks):
        clock.promise = 0
        clock.sleeping = True
        clock.ins = [(clocks[other], row[here]) for other, row in enumerate(lookahead) if row[here] < FOREVER]
    found = fixpoint(clocks)
    return [found[clock.name][0] for clock in clocks]


class Schedule(Protocol):
    """Decides what happens next."""

    def pick(self, options: list[Hashable]) -> int: ...

    def events(self) -> int:
        """Return how many events a worker may handle before it looks up."""


class Drawn:
    """Draws from a seed. Some pairs and some workers are favored, so that others lag far behind."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._weights: dict[Hashable, int] = {}
        self._events_max = self._random.choice((1, 3, 1_000))

    def pick(self, options: list[Hashable]) -> int:
        for option in options:
            if option not in self._weights:
                self._weights[option] = self._random.choice((1, 8, 64))
        return self._random.choices(range(len(options)), [self._weights[option] for option in options])[0]

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

    result: KernelOutcome | None
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
            DistributedWorker(self._workers[me], self._pacings[me], self._channels[me]) for me in range(count)
        ]
        self._ended: dict[int, Failure | None] = {}

    def run(self) -> Outcome:
        steps = 0
        while options := self._options():
            steps += 1
            assert steps < _STEPS_MAX, "they talk for ever"
            here, there = options[self._schedule.pick(options)]
            if here == there:
                self._give_turn(here)
                if steps % 3 == 0:  # It takes longer than all else, and what is too far now is likely so afterwards.
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
        failed = min(told.failed for told in self._pacings[me].progress)
        end = min(self._end, failed + 1) if failed < FOREVER else self._end
        try:
            self._ended[me] = self._crews[me].run(end, lambda now, events: self._schedule.events())
        except TurnOver:
            return

    def _check_bounds(self) -> None:
        """Compare what each worker thinks with what follows from the states of all."""
        if any(failure is not None for failure in self._ended.values()):
            return  # One that has failed does nothing more, whatever is in its queue.
        count = len(self._crews)
        arriving = [min(letters.values(), default=FOREVER) for letters in self._letters]
        # One that has ended sends nothing, so it has no links.
        links = [[FOREVER] * count if me in self._ended else self._lookahead[me] for me in range(count)]
        exact = exact_bounds(links, [min(self._pacings[me].base, arriving[me]) for me in range(count)])
        for me in range(count):
            most = min(exact[me], arriving[me])
            assert self._pacings[me].reached <= most or me in self._ended, f"worker {me} goes further than {most}"


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


def distant_calls(silence: int = HOUR) -> Simulation:
    """Hours of silence, microseconds of lookahead."""
    simulation = Simulation(network=Network(default=link("1us")))
    for number, name in enumerate("abc"):
        simulation.add(name, Caller([other for other in "abc" if other != name], [silence, (number + 1) * silence], 2))
    return simulation


class Stumbler(Caller):
    """Fails when its time has come."""

    def __init__(self, peers: list[str], calls: list[int], fails_at: int) -> None:
        super().__init__(peers, calls, 1)
        self.fails_at = fails_at

    def on_call(self, at: int) -> None:
        super().on_call(at)
        if at >= self.fails_at:
            raise ValueError(f"{self.name} has had enough")


class Ticker(Diarist):
    """Never comes to an end, and talks to nobody."""

    def start(self) -> None:
        self.on_tick(None)

    def on_tick(self, _: None) -> None:
        self.schedule("tick", delay=3 * US)


def stumblers() -> Simulation:
    """Two fail at the same moment, a third one later; some hear of nothing, and one would go on for ever."""
    simulation = Simulation(declared_only=True)
    simulation.add("a", Stumbler(["b"], list(range(0, 20 * US, US)), 15 * US))
    simulation.add("b", Stumbler(["a"], [0, 9 * US], 9 * US))
    simulation.add("c", Stumbler(["d"], list(range(0, 20 * US, US)), 9 * US))
    simulation.add("d", Stumbler(["c"], [1 * US, 8 * US], 20 * US))
    simulation.connect("a", "b", "2us")
    simulation.connect("c", "d", "5us")
    simulation.add("ticker", Ticker())
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
    monitors = {key: (monitor.end, list(monitor)) for key, monitor in result.monitors.items()}
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
@pytest.mark.parametrize("first", [0, *later([25, 50, 75])])
def test_small_models_under_many_schedules(build: Callable[[], Simulation], count: int, first: int) -> None:
    expected = observe(build())
    for seed in range(first, first + 25):
        check_equal(interleaved(build, None, Drawn(seed), count, shuffle=seed), expected, seed)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_all_models_under_some_schedules(name: str, seed: int) -> None:
    case = MODELS[name]
    expected = observe(case.build(), case.until)
    check_equal(interleaved(case.build, case.until, Drawn(seed), 3 - seed, shuffle=seed), expected, seed)


def check_riot(seed: int, clumsiness: float) -> None:
    """Run a mixture of everything inline and under a schedule: the same history, or the same error, comes of both."""
    outcome = interleaved(lambda: riot(seed, clumsiness), None, Drawn(seed), 2 + seed % 3, shuffle=seed)
    if outcome.failures:
        earliest = min(outcome.failures, key=lambda failure: failure.key)
        with pytest.raises(ModelError, match=f"^{re.escape(str(earliest.error))}$"):
            riot(seed, clumsiness).run()
    else:
        check_equal(outcome, observe(riot(seed, clumsiness)), seed)


@pytest.mark.parametrize("clumsiness", [0.0, 0.02])
def test_riots_under_some_schedules(clumsiness: float) -> None:
    for seed in range(100, 120):
        check_riot(seed, clumsiness)


@pytest.mark.soak
@pytest.mark.parametrize("clumsiness", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("thousand", range(8))
def test_riots_under_many_schedules(
    clumsiness: float, thousand: int, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(1_000 * thousand, 1_000 * (thousand + 1)):
        check_riot(seed, clumsiness)
    record_property("summary", {f"riots with a clumsiness of {clumsiness}, the same under a schedule": 1_000})


def test_the_smallest_model_under_every_schedule() -> None:
    expected = observe(duet())
    schedule = Listed()
    tried = 0
    while tried == 0 or schedule.advance():
        check_equal(interleaved(duet, None, schedule, 2), expected, tried)
        tried += 1
    assert tried > 500, "that can't have been all"


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_earliest_failure_is_known_under_every_schedule(count: int) -> None:
    with pytest.raises(ModelError) as expected:
        stumblers().run()
    seen = set[int]()
    for seed in range(50):
        outcome = interleaved(stumblers, None, Drawn(seed), count, shuffle=seed)
        assert str(min(outcome.failures, key=lambda failure: failure.key).error) == str(expected.value), f"seed {seed}"
        seen.add(len(outcome.failures))
    assert max(seen) > 1, "in no schedule did a second one fail before it heard of the first"


@pytest.mark.parametrize("count", [2, 3])
def test_silence_costs_nothing_however_long_it_is(count: int) -> None:
    """With promises alone, an hour would take thousands of millions of frames."""
    for seed in range(20):
        short, long = (
            interleaved(lambda silence=silence: distant_calls(silence), None, Drawn(seed), count).frames
            for silence in (MS, 1_000 * HOUR)
        )
        assert short == long < 300, f"seed {seed}"


# -- Pacing alone, beside the lock's calculus

TIMES = st.one_of(st.integers(0, 60), st.just(FOREVER))


@st.composite
def crews(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int]:
    """Draw lookaheads, the time of each worker's next event, and a seed for the order in which they talk."""
    count = draw(st.integers(2, 5))
    latencies = st.one_of(st.integers(1, 20), st.just(FOREVER))
    lookahead = [[FOREVER if here == there else draw(latencies) for there in range(count)] for here in range(count)]
    return lookahead, [draw(TIMES) for _ in range(count)], draw(st.integers(0, 2**32))


@settings(max_examples=150)
@given(crews())
def test_bounds_are_those_of_the_lock(crew: tuple[list[list[int]], list[int], int]) -> None:
    """Nobody ever thinks more than follows from the states of all; once all have heard all, they think just that."""
    lookahead, bases, seed = crew
    exact = exact_bounds(lookahead, bases)
    pacings = [Pacing(me, lookahead) for me in range(len(bases))]
    pairs = [(here, there) for here in range(len(bases)) for there in range(len(bases)) if here != there]
    told: dict[tuple[int, int], WorkerProgress] = {}
    order = Random(seed)
    has_news = True
    while has_news:
        has_news = False
        for here, there in order.sample(pairs, len(pairs)):
            bound = pacings[here].bound(bases[here])
            assert bound <= exact[here]
            standing = pacings[here].progress_at(bases[here], bound)
            if told.get((here, there)) != standing:
                told[here, there] = standing
                pacings[there].hear(here, standing, 0)
                has_news = True
    assert [pacing.bound(base) for pacing, base in zip(pacings, bases, strict=True)] == exact
    first = bases.index(min(bases))
    assert exact[first] > bases[first] or bases[first] == FOREVER, "nobody could go on"


@pytest.mark.soak
@settings(max_examples=5_000)
@given(crews())
def test_soak_bounds_are_those_of_the_lock(crew: tuple[list[list[int]], list[int], int]) -> None:
    test_bounds_are_those_of_the_lock.hypothesis.inner_test(crew)
