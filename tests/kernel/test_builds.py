"""Both builds of the engine: the same digests, and nothing that stays behind when a simulation is gone."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import worldline
from tests.kernel.actors import Actor, Steps, pending
from worldline.builds import UNCOMPILED
from worldline.kernel import (
    Entity,
    EntityMessage,
    Interrupt,
    Process,
    Resource,
    Signal,
    Simulation,
    build,
    process,
    receive,
    wait,
)
from worldline.kernel.build import compiled
from worldline.model import HOUR, MS, TIME_MAX, US, ModelError, Network, Rule, link, partition, uniform

ROOT = Path(__file__).parents[2]
HAS_COMPILED = importlib.util.find_spec("worldline.kernel._engine") is not None

# -- Small models, each of which uses another part of the kernel


class Phold(Entity):
    """Sends whatever comes to somebody else, after a while."""

    def __init__(self, peers: list[str], left: int = 40) -> None:
        self.peers = peers
        self.left = left

    def start(self) -> None:
        for _ in range(3):
            self.schedule("job", delay=self.random.exponential(1_000))

    def on_job(self, payload: Any) -> None:
        self.left -= 1
        if self.left > 0:
            self.send(self.random.choice(self.peers), "job", payload, delay=100 + self.random.exponential(1_000))


def phold() -> Simulation:
    simulation = Simulation(seed=1)
    names = [f"n{number}" for number in range(20)]
    for name in names:
        simulation.add(name, Phold(names))
    return simulation


PAYLOADS: tuple[Any, ...] = (
    *(None, True, 0, -1, -2, 2**59 - 1, 2**59, -(2**59), 2**61 - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**80),
    *(0.0, -0.0, 1e300, float("inf"), float("nan"), "", "ünï", b"\0\xff", (), (1, (2, "x")), [1], {"b": 1, "a": [2]}),
    *({1, 2, 3}, {"x", "y"}, frozenset("abc")),
)


def payloads() -> Simulation:
    """Whatever a message can carry, with times and topics from one end to the other."""

    def act(me: Actor) -> None:
        for number, payload in enumerate(PAYLOADS):
            me.send("b", f"topic {number}", payload)
            me.send("b", "same", payload, delay=TIME_MAX - number)
            me.schedule("own", payload, at=TIME_MAX)

    simulation = Simulation(seed=-(2**63))
    simulation.add("a", Actor(act))
    simulation.add("b", Actor(lambda me: me.record("x", {"k": [1.5, None]})))
    return simulation


class Hydra(Entity):
    """Creates others like itself, which talk to those who created them, and end."""

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def start(self) -> Steps:
        for name in ("kim", None, "!", None) if self.depth else ():
            yield self.random.randrange(3)
            self.create(Hydra(self.depth - 1), name)
        if "/" in self.name:
            yield self.random.randrange(9)
            self.send(self.name.rpartition("/")[0], "news", self.name, delay=self.random.randrange(1, 5))
            if self.random.random() < 0.7:
                self.end()
            yield 3

    def on_news(self, name: str) -> None:
        self.record("news", name)
        if not self.random.randrange(4):
            self.send(name, "news", self.name)


def creation() -> Simulation:
    simulation = Simulation(seed=3)
    for name in ("a", "a/k", "b", "é"):
        simulation.add(name, Hydra(3))
    return simulation


class Shop(Entity):
    """Processes that wait, are interrupted, give up, and share."""

    def __init__(self) -> None:
        self.counters = Resource(2)
        self.closing = Signal()
        self.inside: list[Process] = []

    def start(self) -> Steps:
        for number in range(30):
            self.inside.append(self.process(self.customer(number)))
            yield self.random.exponential(5 * US)
            if number % 7 == 6 and not self.inside[-2].has_ended:
                self.inside[-2].interrupt(number)
        self.closing.fire("closed")

    def customer(self, number: int) -> Steps:
        try:
            with self.counters.acquire() as turn:
                if (yield wait(turn, limit=20 * US)) is None:
                    self.record("left", number)
                    return None
                yield f"{self.random.randrange(1, 30)}us"
            message = yield receive("parcel", limit=30 * US)
            self.record("served", (number, message and message.payload))
            return (yield self.closing)
        except Interrupt as interrupt:
            self.record("called away", (number, interrupt.cause))


def shop() -> Simulation:
    simulation = Simulation(seed=4)

    def post(me: Any) -> Steps:
        for number in range(40):
            yield me.random.randrange(5 * US)
            me.send("shop", "parcel", number)
        me.interrupt("shop2")

    simulation.add("shop", Shop())
    simulation.add("shop2", process(lazy))
    simulation.add("post", process(post))
    return simulation


def lazy(me: Any) -> Steps:
    try:
        yield HOUR
    except Interrupt:
        me.record("interrupted", me.now)


def links() -> Simulation:
    rules = (
        Rule(sender="n1", link=link(uniform(1, 900), fifo=True)),
        Rule(topic="job", receiver="n2", link=link("normal(2us, 1us, minimum=10ns)", loss=0.2)),
        Rule(sender="n3", receiver="n4", link=link("exponential(5ns, 3us)", bandwidth=10_000_000)),
    )
    default = link(uniform(100, 2_000), loss_at_sender=0.1, duplication=0.2)
    network = Network(default=default, rules=rules, outages=partition(["n1"], ["n2", "n3"], 2 * US, 9 * US))
    simulation = Simulation(seed=5, network=network)
    names = [f"n{number}" for number in range(6)]

    class Sender(Phold):
        def on_job(self, payload: Any) -> None:
            self.left -= 1
            if self.left > 0:
                self.send(self.random.choice(self.peers), "job", [payload, self.left])

    for name in names:
        simulation.add(name, Sender(names, 60))
    return simulation


class Tie(Entity):
    """Everything at once, all the time."""

    def __init__(self, peers: list[str]) -> None:
        self.peers = peers
        self.left = 15

    def start(self) -> None:
        self.schedule("beat", delay=5)

    def on_beat(self, _: None) -> None:
        self.left -= 1
        for peer in self.peers:
            self.send(peer, "hit", self.left, delay=5)
        timers = [self.schedule("own", number, delay=number % 2) for number in range(4)]
        self.cancel(timers[self.left % 4])
        if self.left:
            self.schedule("beat", delay=5)

    def on_hit(self, left: int) -> None:
        self.record("hit", (self.sender, self.sent_at, left))

    def on_own(self, number: int) -> None:
        self.record("own", number)
        if number == 3:
            self.schedule("own", 1, delay=0)


def ties() -> Simulation:
    names = ["b", "a", "ab", "Z", "é", "a/x"]
    simulation = Simulation()
    for name in names:
        simulation.add(name, Tie(names))
    return simulation


def canceling() -> Simulation:
    """So many timers are canceled that the queue has to be cleared while it runs."""

    def act(me: Actor) -> Steps:
        for number in range(600):
            timers = [me.schedule("x", number, delay=me.random.randrange(1, 2 * MS)) for _ in range(10)]
            for timer in timers[1:]:
                me.cancel(timer)
            yield me.random.randrange(5)

    simulation = Simulation(seed=6)
    simulation.add("a", Actor(act))
    simulation.add("b", Actor(act))
    return simulation


MODELS: dict[str, Callable[[], Simulation]] = {
    "phold": phold,
    "payloads": payloads,
    "creation": creation,
    "shop": shop,
    "links": links,
    "ties": ties,
    "canceling": canceling,
}


def account(simulation: Simulation) -> list[Any]:
    """Run a simulation and return what came of it."""
    result = simulation.run()
    monitors = {f"{name} {what}": [list(each) for each in kept] for (name, what), kept in result.monitors.items()}
    return [result.digest.hex(), result.now, result.events, len(result.dropped), monitors]


def tell() -> None:
    """Print what comes of every model; a test calls this in processes of their own."""
    print(json.dumps([build, {name: account(make()) for name, make in MODELS.items()}], sort_keys=True))


@pytest.fixture
def told() -> dict[tuple[str, str], Any]:
    """What comes of every model, by (uncompiled, hash seed)."""
    runs: dict[tuple[str, str], Any] = {}
    for uncompiled, seed in (("", "0"), ("1", "1"), ("1", "0"), ("", "1")):
        environment = {**os.environ, UNCOMPILED: uncompiled, "PYTHONHASHSEED": seed}
        script = "from tests.kernel.test_builds import tell; tell()"
        command = [sys.executable, "-W", "error", "-c", script]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        runs[uncompiled, seed] = json.loads(done.stdout)
    return runs


def test_every_model_gives_the_same_in_both_builds_and_under_every_hash_seed(told: Any) -> None:
    # One test, since what it needs takes long to make: every process of the test runner would make it anew.
    came = told["1", "0"][1]
    assert set(came) == set(MODELS)
    for builds, run in told.values():
        assert builds in ("compiled", f"plain Python ({UNCOMPILED} is set)") or not HAS_COMPILED
        for name in MODELS:
            assert run[name] == came[name], name
    for name, make in MODELS.items():
        assert json.loads(json.dumps(account(make()))) == came[name], name
    # And they do what they are for.
    assert len({digest for digest, *_ in came.values()}) == len(MODELS)
    assert all(events > 100 or name == "payloads" for name, (_, _, events, _, _) in came.items())
    assert {what.split(" ", 1)[1] for what in came["shop"][4]} >= {"left", "served", "called away", "interrupted"}
    assert came["links"][3] > 5
    assert [told[uncompiled, "0"][0] == "compiled" for uncompiled in ("", "1")] == [HAS_COMPILED, False]


def test_the_build_says_which_it_is() -> None:
    if os.environ.get(UNCOMPILED, "0") not in ("", "0"):
        assert build == f"plain Python ({UNCOMPILED} is set)"
    elif HAS_COMPILED:
        assert build == "compiled"
    else:
        assert build.startswith("plain Python (")


# -- Nothing stays behind


class Tracked:
    """Something that can be sent, and whose life can be followed."""


@dataclass
class Node:
    """A payload that is part of a cycle with others."""

    others: list[Any]


class Cyclic(Entity):
    """Holds on to itself in every way that there is, and leaves things unfinished."""

    def __init__(self) -> None:
        self.own = [self]
        self.signal = Signal()
        self.machine = Resource(1)
        self.kept: list[Any] = [Tracked()]

    def start(self) -> Steps:
        self.kept.append(self.process(self.forever(self.signal)))
        self.kept.append(self.process(self.forever(receive("never"))))
        self.kept.append(self.process(self.forever(wait(self.signal, limit=HOUR))))
        self.kept.append(self.process(self.hold()))
        self.kept.append(self.schedule("x", self.kept, delay=HOUR))
        self.kept.append(self.stream("wind"))
        self.random.random()
        self.record("x", 1)
        self.create(Actor(lambda child: self.kept.append(child)), "kim")
        self.create(process(lazy))
        self.send(self.name, "later", self, delay=HOUR)
        yield HOUR

    def forever(self, thing: Any) -> Steps:
        me = [self]
        yield thing
        me.clear()

    def hold(self) -> Steps:
        with self.machine.acquire() as turn:
            yield turn
            yield HOUR

    def handle(self, message: EntityMessage) -> None:
        self.kept.append(message)


def test_a_simulation_that_is_gone_leaves_nothing_even_if_it_wasnt_finished() -> None:
    simulation = Simulation()
    entities: list[Any] = [Cyclic() for _ in range(3)]
    for number, entity in enumerate(entities):
        simulation.add(f"c{number}", entity)
        simulation.send(f"c{number}", "x", [1, 2], at=5)
    simulation.run(until=10)
    traces = [weakref.ref(each) for each in (simulation, *entities, *(entity.kept[0] for entity in entities))]
    traces.append(weakref.ref(simulation["c0/kim"]))
    del simulation, entities, entity
    gc.collect()
    assert [trace() for trace in traces] == [None] * len(traces)


def test_a_simulation_that_wasnt_finished_goes_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    # The usual end of a model with queues: run(until=...), and the program is over.
    class Bank(Entity):
        def start(self) -> None:
            self.counter = Resource(1)
            for _ in range(3):
                self.process(self.customer())

        def customer(self) -> Steps:
            with self.counter.acquire() as turn:
                yield turn
                yield 100

    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda complaint: complaints.append(str(complaint.exc_value)))
    simulation = Simulation()
    simulation.add("bank", Bank())
    simulation.run(until=50)
    del simulation
    gc.collect()
    assert complaints == []


def test_a_simulation_that_failed_leaves_nothing() -> None:
    class Failing(Cyclic):
        def on_fail(self, _: None) -> None:
            raise ValueError(self)

    simulation = Simulation()
    simulation.add("c", Failing())
    simulation.send("c", "fail", at=5)
    with pytest.raises(ModelError, match="it raised ValueError"):
        simulation.run()
    traces = [weakref.ref(simulation), weakref.ref(simulation["c"])]
    del simulation
    gc.collect()
    assert [trace() for trace in traces] == [None, None]


@pytest.mark.parametrize("leaves_timers", [False, True])
def test_whoever_was_created_and_has_ended_is_forgotten_while_the_simulation_goes_on(leaves_timers: bool) -> None:
    traces: list[Any] = []

    class Brief(Entity):
        def start(self) -> Steps:
            traces.append(weakref.ref(self))
            self.send("a", "x", delay=50)  # Still under way when it has ended.
            self.own = [self, self.process(self.other())]
            if leaves_timers:
                self.schedule("x", self.own, delay=HOUR)
            self.random.random()
            yield 5
            self.end()

        def other(self) -> Steps:
            yield HOUR if leaves_timers else 4

    def act(me: Actor) -> Steps:
        for _ in range(300):
            me.create(Brief())
            yield 1

    simulation = Simulation()
    simulation.add("a", Actor(act))
    simulation.run(until=MS)
    assert len(traces) == len(simulation["a"].got) == 300
    if leaves_timers:  # They keep their owners, until they are cleared away or their time has come.
        simulation.run()
    gc.collect()
    assert sum(trace() is not None for trace in traces) <= 1  # The one that the last event was about.


@pytest.mark.parametrize("kind", ["constant", "copied", "own", "canceled", "outside", "undelivered", "lost"])
def test_payloads_are_let_go_after_they_were_delivered_or_not(kind: str) -> None:
    payload: Any = ("a tuple of its own", kind) if kind not in ("copied", "lost") else ["a list", kind]
    network = Network(default=link(1, loss=1.0 if kind == "lost" else 0.0))

    class Quiet(Entity):
        def on_x(self, _: Any) -> None: ...

        def start(self) -> None:
            for _ in range(100):
                if kind in ("own", "canceled"):
                    timer = self.schedule("x", payload, delay=5)
                    if kind == "canceled":
                        self.cancel(timer)
                elif kind != "outside":
                    self.send("b" if self.name == "a" else "a", "x", payload)

    def run() -> None:
        simulation = Simulation(network=network)
        simulation.add("a", Quiet())
        simulation.add("b", Quiet())
        if kind == "outside":
            for number in range(100):
                simulation.send("a", "x", payload, at=number)
        simulation.run(until=1 if kind == "undelivered" else None)

    run()
    gc.collect()
    before = sys.getrefcount(payload)
    run()
    gc.collect()
    assert sys.getrefcount(payload) == before


def busy() -> None:
    """Build and run a model that creates, cancels, ends, interrupts and fails."""

    class Worker(Entity):
        def start(self) -> Steps:
            for number in range(8):
                timers = [self.schedule("x", [number], delay=HOUR) for _ in range(10)]
                for timer in timers:
                    self.cancel(timer)
                victim = self.process(self.sleep())
                self.send("boss", "report", {"number": number, "self": [self.name]})
                yield 3
                victim.interrupt([number])
                yield wait(victim, limit=5)
            if "/" not in self.name:
                for _ in range(5):
                    self.create(Worker())
            else:
                self.end()

        def sleep(self) -> Steps:
            cycle: list[Any] = [self]
            cycle.append(cycle)
            try:
                yield HOUR
            except Interrupt as interrupt:
                cycle.append(interrupt)
            yield 1

    class Boss(Entity):
        def on_report(self, report: Any) -> None:
            report["cycle"] = Node([report])
            self.last = report

        def on_fail(self, _: None) -> None:
            raise ValueError(self)

    simulation = Simulation()
    simulation.add("boss", Boss())
    for name in ("a", "b"):
        simulation.add(name, Worker())
    simulation.send("boss", "fail", at=10)
    try:
        simulation.run()
    except ModelError:
        simulation.run()
    for name in PAYLOADS[:5]:
        simulation.send("boss", "report", {"name": name}, at=simulation.now + 1)
    simulation.run()


def test_repeated_runs_make_no_more_objects() -> None:
    def count() -> int:
        busy()
        gc.collect()
        return len(gc.get_objects())

    for _ in range(3):
        count()
    counts = [count() for _ in range(5)]
    assert counts[-1] - counts[0] <= 5, counts


def test_repeated_runs_take_no_more_memory() -> None:
    def measure() -> int:
        busy()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    busy()
    tracemalloc.start()
    try:
        for _ in range(2):
            measure()
        sizes = [measure() for _ in range(6)]
    finally:
        tracemalloc.stop()
    more = [after - before for before, after in pairwise(sizes)]
    assert median(more) < 1_000, more  # Once, some table of Python's may well grow.


# -- The queue doesn't fill up with what won't happen


def most_pending(act: Callable[[Any], Steps], until: int = HOUR // 2) -> int:
    """Run something that yields often, and return how many events have waited at the most."""
    most = [0]

    def watched(me: Any) -> Steps:
        steps, given = act(me), None
        while True:
            most[0] = max(most[0], pending(simulation))
            try:
                given = yield steps.send(given)
            except StopIteration:
                return

    simulation = Simulation()
    simulation.add("a", process(watched))
    simulation.run(until=until)
    return most[0]


def test_timers_that_are_always_canceled_do_not_pile_up() -> None:
    def act(me: Any) -> Steps:
        for _ in range(20_000):
            timer = me.schedule("x", delay=HOUR)
            yield 1
            me.cancel(timer)

    assert most_pending(act) < 5_000


def test_limits_that_are_never_reached_do_not_pile_up() -> None:
    def act(me: Any) -> Steps:
        for _ in range(20_000):
            me.send("a", "x")
            assert (yield receive(limit=HOUR)) is not None

    assert most_pending(act) < 5_000


def test_those_who_end_with_a_timer_do_not_pile_up() -> None:
    def child(me: Any) -> Steps:
        me.schedule("x", delay=HOUR)
        yield 1

    def act(me: Any) -> Steps:
        for _ in range(10_000):
            me.create(process(child))
            yield 1

    assert most_pending(act) < 5_000


def test_those_who_end_with_many_timers_do_not_pile_up() -> None:
    def child(me: Any) -> Steps:
        for _ in range(4):
            me.schedule("x", delay=HOUR)
        yield 1

    def act(me: Any) -> Steps:
        for _ in range(5_000):
            me.create(process(child))
            yield 1

    assert most_pending(act) < 10_000


def test_sleeps_that_are_always_interrupted_do_not_pile_up() -> None:
    def sleeper() -> Steps:
        while True:
            with contextlib.suppress(Interrupt):
                yield HOUR

    def act(me: Any) -> Steps:
        victim = me.process(sleeper())
        for _ in range(20_000):
            yield 1
            victim.interrupt()

    assert most_pending(act) < 5_000


def test_clearing_the_queue_keeps_what_is_alive_in_order() -> None:
    rung: list[int] = []

    class Owner(Entity):
        def start(self) -> None:
            kept = [self.schedule("keep", number, delay=1_000 + number % 7) for number in range(500)]
            doomed = [self.schedule("keep", -1, delay=1_000 + number % 7) for number in range(6_000)]
            for timer in doomed:
                self.cancel(timer)
            self.cancel(kept[13])

        def on_keep(self, number: int) -> None:
            rung.append(number)

    simulation = Simulation()
    simulation.add("a", Owner())
    simulation.run(until=500)
    assert pending(simulation) < 1_000
    simulation.run()
    expected = [number for number in range(500) if number != 13]
    assert rung == sorted(expected, key=lambda number: (number % 7, number))


# -- Why there is no compiled one


@pytest.mark.parametrize(
    ("name", "needed", "reason"),
    [
        ("worldline.kernel._no_such", (), "it isn't compiled for this Python"),
        ("worldline.spacetime._no_such", (), "it isn't compiled for this Python"),
        ("worldline.kernel.topology", ("Nothing",), "worldline.kernel.topology was compiled for another version: "),
        ("tests.kernel.damaged", (), "tests.kernel.damaged can't be loaded: the size of Queue has changed"),
    ],
)
def test_why_nothing_compiled_is_used_is_said_in_plain_words(
    name: str, needed: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(UNCOMPILED, raising=False)
    with pytest.raises(ImportError) as raised:
        compiled(name, needed)
    assert str(raised.value).startswith(reason)


def test_without_compiled_modules_both_rooms_say_so(tmp_path: Path) -> None:
    """The whole package, as it is where there is no compiler: its sources alone."""
    source = Path(worldline.__file__).parent
    shutil.copytree(source, tmp_path / "worldline", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    code = (
        "from worldline.kernel import build; from worldline.spacetime.build import build as other; print(build, other)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), UNCOMPILED: ""}
    said = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    plain = "plain Python (it isn't compiled for this Python)"
    assert (said.stdout, said.stderr) == (f"{plain} {plain}\n", "")
