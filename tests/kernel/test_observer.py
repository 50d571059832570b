"""What an observer is told of a simulation: the same, in the same order, whoever runs it, and nothing depends on it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.history.notebook import Notebook
from tests.kernel.matrix import MPIEXEC
from tests.kernel.models import MODELS
from tests.soaking import later
from worldline.history.telling import Merging
from worldline.kernel import Entity, Interrupt, Simulation, process
from worldline.kernel.roster import TOO_LATE
from worldline.model import FOREVER, MS, NS, ModelError, Network, Rule, UsageError, link

ROOT = Path(__file__).parents[2]


def told(simulation: Simulation, until: Any = None, executor: str = "inline") -> Notebook:
    book = Notebook()
    simulation.run(until, executor=executor, observer=book)
    return book


# -- What is told


class Pinger(Entity):
    def start(self) -> None:
        self.schedule("ring", {"n": 1}, delay=5)
        self.send("echo", "ping", [1, 2], delay=10)

    def on_ring(self, _: object) -> None:
        self.record("rings", 1)

    def on_pong(self, _: object) -> None:
        self.end()


class Echo(Entity):
    def on_ping(self, payload: Any) -> None:
        self.send(self.sender, "pong", payload, delay=3)
        self.send(self.sender, "pong", delay=9)

    def on_quiet(self, _: object) -> None:
        pass


def test_messages_timers_and_values() -> None:
    simulation = Simulation()
    simulation.add("ping", Pinger())
    simulation.add("echo", Echo())
    simulation.send("echo", "ping", "hello", at=30)
    with pytest.raises(ModelError, match="no entity named ''"):
        simulation.run(observer=(book := Notebook()))
    assert book.lines == [
        ("began", "", 0),
        ("began", "echo", 0),
        ("began", "ping", 0),
        ("sent", "", 0, "ping", 30, b'"hello"', 30, None),
        ("arrives", "", 0, "echo", 30, 0, None),
        ("sent", "ping", 3, "ping", 0, b"[1,2]", 10, None),
        ("arrives", "ping", 3, "echo", 10, 0, None),
        ("noted", "ping", "worldline/timer", 5, b'{"topic":"ring","payload":{"n":1}}', None),
        ("noted", "ping", "worldline/record", 5, b'["rings",1]', None),
        ("sent", "echo", 1, "pong", 10, b"[1,2]", 13, None),
        ("arrives", "echo", 1, "ping", 13, 0, None),
        ("sent", "echo", 2, "pong", 10, b"null", 19, None),
        ("arrives", "echo", 2, "ping", 19, 0, None),
        ("arrives", "echo", 2, "ping", 19, 0, TOO_LATE),
    ]
    assert book.passes[-1] == 30


def sleeper(me: Entity) -> Iterator[Any]:
    other = me.process(nap())
    try:
        yield 10 * NS
    except Interrupt:
        other.interrupt("up!")
    yield 1 * NS


def nap() -> Iterator[Any]:
    try:
        yield 100 * NS
    except Interrupt:
        yield 5 * NS


def alarm(me: Entity, to: str) -> Iterator[Any]:
    yield 7 * NS
    me.interrupt(to, "now", delay=1)
    me.interrupt(to, "again", delay=50)


def test_processes_and_interruptions() -> None:
    simulation = Simulation()
    simulation.add("alarm", process(alarm, "sleeper"))
    simulation.add("sleeper", process(sleeper))
    lines = told(simulation).lines
    notes = [(line[1], line[3], json.loads(line[4])) for line in lines if line[0] == "noted"]
    assert notes == [
        ("sleeper", 0, {"process": "nap"}),
        ("alarm", 7, {"process": "alarm"}),
        ("sleeper", 8, {"process": "nap", "interrupt": "up!"}),
        ("sleeper", 9, {"process": "sleeper"}),
    ]
    assert ("arrives", "alarm", 4, "sleeper", 57, 0, TOO_LATE) in lines


class Caster(Entity):
    def start(self) -> None:
        for number in range(30):
            self.send("echo", "quiet", number)


def test_losses_and_copies_are_those_of_the_links() -> None:
    over = link("uniform(1ms, 2ms)", loss=0.3, duplication=0.3)
    simulation = Simulation(network=Network(default=link(MS), rules=(Rule(topic="quiet", link=over),)), seed=4)
    simulation.add("cast", Caster())
    simulation.add("echo", Echo())
    book = told(simulation)
    sent = {line[2]: line for line in book.lines if line[:2] == ("sent", "cast")}
    arrivals = [line for line in book.lines if line[:2] == ("arrives", "cast")]
    lost = [line for line in arrivals if line[-1] is not None]
    copies = [line for line in arrivals if line[5] == 1]
    assert len(sent) == 30
    assert lost
    assert copies
    assert len(lost) == sum(simulation.result().dropped.values())
    for number, line in sent.items():
        assert line[6] == max(arrival[4] for arrival in arrivals if arrival[2] == number)


class Parent(Entity):
    def start(self) -> None:
        self.create(process(child, self.name), "kid")
        self.create(Echo(), "stays")


def child(me: Entity, parent: str) -> Iterator[Any]:
    me.send(parent, "bye", delay=4)
    yield 2 * NS


class Mourner(Parent):
    def on_bye(self, _: object) -> None:
        self.end()


def test_who_is_created_begins_and_ends_and_its_chain_is_its_creator_s() -> None:
    simulation = Simulation()
    simulation.add("p", Mourner())
    book = told(simulation)
    worker = simulation._worker
    assert worker is not None
    assert [line[1:] for line in book.lines if line[0] == "began"] == [("", 0), ("p", 0), ("p/kid", 0), ("p/stays", 0)]
    ends = [line[1:] for line in book.lines if line[0] == "ended"]
    chains = worker.part().members
    assert ends[0] == ("p/kid", 2, b"")
    assert {name: (at, chain) for name, at, chain in ends[1:]} == chains
    assert chains["p"][0] == 4
    assert chains["p/stays"][0] == FOREVER


class Reserved(Echo):
    """An entity of a room above, that has words of its own for what it does."""

    _wl_tells_itself: ClassVar[bool] = True

    def start(self) -> None:
        self.schedule("ring", delay=1)
        self.record("x", 1)

    def on_ring(self, _: object) -> None:
        if self._wl_observer is not None:
            self._wl_observer.noted(self.name, "mine", self.now, b"")

    def on_ping(self, payload: Any) -> None:
        self.send(self.sender, "ring", payload, delay=3)
        self.end()


def test_who_tells_by_itself_is_left_alone() -> None:
    simulation = Simulation()
    simulation.add("echo", Reserved())
    simulation.add("ping", Pinger())
    simulation.send("echo", "quiet", at=30)
    lines = told(simulation).lines
    assert [line[0] for line in lines if line[1] == "echo"] == ["began", "noted", "ended"]
    assert ("noted", "echo", "mine", 1, b"", None) in lines
    assert not any(line[0] == "arrives" and line[-1] for line in lines)  # Its losses are its own to tell, too.


# -- Inline runs go on


def test_an_observer_sees_further_runs_and_what_is_added_meanwhile() -> None:
    simulation, book = Simulation(), Notebook()
    simulation.add("echo", Echo())
    simulation.run(5, observer=book)
    simulation.add("ping", Pinger())
    simulation.send("echo", "quiet", at=100)
    simulation.run(20, observer=book)
    simulation.step()
    assert ("began", "ping", 5) in book.lines
    assert ("sent", "ping", 3, "ping", 5, b"[1,2]", 15, None) in book.lines
    assert ("sent", "", 0, "quiet", 100, b"null", 100, None) in book.lines
    assert book.passes[-1] >= 20


def test_nobody_can_look_on_from_the_middle() -> None:
    simulation = Simulation()
    simulation.add("echo", Echo())
    simulation.run(5)
    with pytest.raises(UsageError, match="an observer has to see all of it"):
        simulation.run(6, observer=Notebook())


# -- The same everywhere


@pytest.mark.parametrize("name", [*list(MODELS)[::3], *later([name for place, name in enumerate(MODELS) if place % 3])])
def test_every_executor_tells_the_same_and_nothing_depends_on_it(name: str) -> None:
    case = MODELS[name]
    expected = case.build().run(case.until).digest
    books = []
    for executor in ("inline", "processes(3)"):
        books.append(Notebook())
        result = case.build().run(case.until, executor=executor, observer=books[-1])
        assert result.digest == expected
    assert books[0].lines == books[1].lines
    assert books[0].passes[-1] == books[1].passes[-1] == result.now


REPORTER = "import sys; from tests.kernel.test_observer import report; report(*sys.argv[1:])"


def report(executor: str, *names: str) -> None:
    """Print a digest of a run, and of what was told of it; under MPI every rank does."""
    found = {}
    for name in names:
        case, book = MODELS[name], Notebook()
        result = case.build().run(case.until, executor=executor, observer=book)
        lines = hashlib.sha256(repr(book.lines).encode()).hexdigest()
        found[name] = (result.digest.hex(), lines, book.passes[-1])
    sys.stdout.write(json.dumps(found) + "\n")


def reported(*command: str, **environment: str) -> list[Any]:
    ended = subprocess.run(
        [*command, sys.executable, "-c", REPORTER, "mpi" if command else "inline", *MODELS],
        cwd=ROOT,
        env={**os.environ, **environment, "MPIEXEC_TIMEOUT": "80"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.skipif(not MPIEXEC.exists(), reason="there is no MPI here")
@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_of_mpi_are_told_the_same(ranks: int, capsys: pytest.CaptureFixture[str]) -> None:
    report("inline", *MODELS)
    expected = json.loads(capsys.readouterr().out)
    assert reported(str(MPIEXEC), "-n", str(ranks)) == [expected] * ranks


# -- Failures


class Fuse(Entity):
    """Fails at a time, and tells others until then, and what it is about to do."""

    def __init__(self, at: int) -> None:
        self.at = at

    def start(self) -> None:
        self.schedule("tick", delay=1 * MS)

    def on_tick(self, _: object) -> None:
        for other in "abcd":
            if other != self.name:
                self.send(other, "news", self.now, delay=MS)
        if self.now >= self.at:
            raise RuntimeError("burnt")
        self.schedule("tick", delay=1 * MS)

    def on_news(self, _: int) -> None:
        pass


def fuses() -> Simulation:
    simulation = Simulation(network=Network(default=link(MS)))
    for number, name in enumerate("abcd"):
        simulation.add(name, Fuse((20 + number % 3) * MS))
    return simulation


@pytest.mark.parametrize("executor", ["processes(2)", "processes(4)"])
def test_a_run_that_fails_tells_what_happened_before(executor: str) -> None:
    books = []
    for each in ("inline", executor):
        books.append(Notebook())
        with pytest.raises(ModelError, match="burnt"):
            fuses().run(executor=each, observer=books[-1])
    assert books[0].lines == books[1].lines
    assert books[0].passes[-1] == books[1].passes[-1] == 20 * MS
    assert books[0].lines[-1][:5] == ("arrives", "a", books[0].lines[-1][2], "d", 21 * MS)


class Ticking(Entity):
    def start(self) -> None:
        self.schedule("tick", delay=MS)

    def on_tick(self, _: object) -> None:
        self.schedule("tick", delay=MS)
        self.send("a" if self.name == "b" else "b", "news", delay=MS)

    def on_news(self, _: object) -> None:
        pass


def test_what_is_final_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little lookahead, workers are never far apart; so a long run isn't kept for longer than a batch or two."""
    most, heard = [0], [0]
    hear = Merging.hear

    def watched(self: Merging, worker: int, calls: list[Any], reached: int) -> None:
        hear(self, worker, calls, reached)
        most[0] = max(most[0], len(self))
        heard[0] += len(calls)

    monkeypatch.setattr(Merging, "hear", watched)
    simulation = Simulation(network=Network(default=link(MS)))
    for name in "ab":
        simulation.add(name, Ticking())
    simulation.run(until=8_000 * MS, executor="processes(2)", observer=Notebook())
    assert heard[0] > 45_000
    assert most[0] < heard[0] // 2  # Where the machine is busy, what one worker tells may wait for the other.
