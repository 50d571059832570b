"""What shrinking offers is about the mistake: a correct program passes the very schedule that a broken one fails.

The mistakes are those by which the algorithms' own tests show that their properties notice something.
"""

from __future__ import annotations

import importlib

import pytest
from msgspec import structs

from tests.soaking import later
from worldline.nodes import (
    Algorithm,
    Event,
    Node,
    NodeRecord,
    Protocol,
    Scheduler,
    Start,
    Timer,
    Trial,
    Violation,
    at_end,
    search,
    shrink,
)
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import parse_kinds
from worldline.nodes.shapes import smaller
from worldline.nodes.trace import script_of
from worldline.search.day import USUAL_DAY

# The seeds on which they fail first, with the faults that the algorithm claims to stand.
MUTANTS: dict[str, dict[str, int]] = {
    "bellman-ford": {"TakesTheWrongLink": 0},
    "bellman-ford-ids": {"IgnoresWeights": 0, "BelievesTheFirst": 0},
    "flooding": {"TakesItAgain": 0, "KeepsItToItself": 0},
    "echo": {"Impatient": 0, "GoesRound": 0, "ThanksItsParent": 0},
    "chang-roberts": {"StopsNobody": 0, "AnnouncesTwice": 20},
    "hirschberg-sinclair": {"HasEnoughOfOnePhase": 0, "StepByStep": 0},
    "bully": {"Stubborn": 0, "Meek": 12},
    "minimum-spanning-tree": {"NeverKnowsWhenToStop": 0, "Chatty": 0},
    "lamport-mutex": {"Hasty": 0, "Proud": 0, "Forgetful": 0, "Chatty": 0, "ByAge": 0},
    "ricart-agrawala": {"Obliging": 0, "WithoutIds": 0, "Reversed": 0, "Patient": 0},
    "chandy-lamport": {"Careless": 0, "Generous": 0},
    "dijkstra-scholten": {"LooksOnlyAtItself": 0, "ForgetsToAcknowledge": 1},
    "two-phase-commit": {"WithoutLog": 3, "Independent": 16, "Taciturn": 0},
    "paxos": {"IgnoresAccepted": 29, "BreaksPromises": 0, "TriesOnce": 0},
    "raft": {"ForgetsLog": 6, "ChangesItsMind": 0},
    "gossip": {"Distorts": 0, "Secretive": 0},
    "vector-clocks": {"LearnsNothing": 0, "ForgetsItsClock": 1, "NoLamport": 0},
}
ALL = [(name, mutant) for name, mutants in MUTANTS.items() for mutant in mutants]
FIRST = [(name, next(iter(mutants))) for name, mutants in MUTANTS.items()]


@pytest.mark.parametrize("states_least", [True, *later([False])])
@pytest.mark.parametrize(("name", "mutant"), [*FIRST, *later(sorted({*ALL} - {*FIRST}))])
def test_the_correct_algorithm_passes_what_is_offered(name: str, mutant: str, states_least: bool) -> None:
    correct = find(name)
    module = importlib.import_module(f"tests.nodes.algorithms.test_{name.replace('-', '_')}")
    broken = structs.replace(correct, node=getattr(module, mutant), least=correct.least if states_least else {})
    trial = Trial(algorithm=broken, kinds=parse_kinds(correct.faults), seed=MUTANTS[name][mutant])
    shrunk = shrink(trial, runs_max=60)
    assert shrunk.trial.run().failure is not None
    assert structs.replace(shrunk.trial, algorithm=correct).run().failure is None, shrunk.text()


# --- What is too small for anybody ---


class Rounds(Node):
    """Node 0 asks everybody, in each of some rounds; answers come twice, and the next round begins when all have."""

    is_careful = True

    def __init__(self, *given: object, rounds: int = 3) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.rounds = rounds
        self.round = 0
        self.heard: list[int] = []
        self.times: list[int] = []  # When it has answered, or when a round was over.

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == 0:
                self.ask()
            case Protocol(number, link) if self.id:
                self.times.append(self.now)
                self.send(number, link)
                self.send(number, link)
            case Protocol(number, link) if number == self.round:
                self.heard.append(link)
                if len(set(self.heard) if self.is_careful else self.heard) >= self.num_neighbors:
                    self.times.append(self.now)
                    self.ask()

    def ask(self) -> None:
        self.round += 1
        self.heard = []
        if self.round <= self.rounds:
            self.broadcast(self.round)


class Careless(Rounds):
    """Counts answers, not those who have answered."""

    is_careful = False


@at_end("several rounds were over, each when all had answered")
def in_turn(run: Scheduler) -> bool:
    """Nobody can do that alone, or in a single round. It doesn't say why not."""
    first, *others = run.nodes
    ends = first.times
    return len(ends) == first.rounds > 1 and all(
        answered <= end for each in others for answered, end in zip(each.times, ends, strict=False)
    )


ROUNDS = Algorithm(name="rounds", node=Rounds, topology="clique:4", properties=(in_turn,))

CARELESS = structs.replace(ROUNDS, name="careless", node=Careless)


def test_it_does_not_slip_into_what_nobody_can_do() -> None:
    """In a clique of one node, and in one round, the correct program fails too; that isn't what was found."""
    for small in ({"topology": "clique:1"}, {"parameters": {"rounds": 1}}):
        assert Trial(algorithm=ROUNDS, **small).run().failure is not None  # type: ignore[arg-type]
    assert search(Trial(algorithm=ROUNDS), range(50)).failure is None
    failed = search(Trial(algorithm=CARELESS), range(50)).failure
    assert failed is not None
    shrunk = shrink(Trial(algorithm=CARELESS).with_seed(failed.seed))
    assert structs.replace(shrunk.trial, algorithm=ROUNDS).run().failure is None, shrunk.text()
    assert (shrunk.trial.graph().num_nodes, shrunk.trial.parameters, shrunk.unsure) == (3, {}, ("rounds",))


def test_what_always_fails_stays_as_it_is_unless_its_least_is_stated() -> None:
    class Idle(Rounds):
        """Never asks."""

        def ask(self) -> None:
            pass

    idle = structs.replace(ROUNDS, node=Idle)
    shrunk = shrink(Trial(algorithm=idle))
    assert shrunk.unsure == ("nodes", "rounds")
    assert (shrunk.trial.graph().num_nodes, shrunk.trial.parameters) == (4, {})
    assert structs.replace(shrunk.trial, algorithm=ROUNDS).run().failure is None
    stated = shrink(Trial(algorithm=structs.replace(idle, least={"nodes": 2, "rounds": 2})))
    assert stated.unsure == ()
    assert (stated.trial.graph().num_nodes, stated.trial.parameters) == (2, {"rounds": 2})
    assert structs.replace(stated.trial, algorithm=ROUNDS).run().failure is None


class Insists(Node):
    """Node 0 tells everybody, up to so many times, until all have confirmed it."""

    def __init__(self, *given: object, attempts: int = 9) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.attempts = attempts
        self.confirmed: list[int] = []
        self.knows = self.id == 0

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Timer() if self.id == 0 and self.attempts and not self.is_done():
                self.attempts -= 1
                self.broadcast("news")
                self.set_timer("3s")
            case Protocol("news", link):
                self.knows = True
                self.send("heard", link)
            case Protocol("heard", link):
                self.confirmed.append(link)

    def is_done(self) -> bool:
        return len(set(self.confirmed)) == self.num_neighbors


class Miscounts(Insists):
    """Takes who has confirmed it twice for two."""

    def is_done(self) -> bool:
        return len(self.confirmed) >= self.num_neighbors


@at_end("all know it")
def all_know(run: Scheduler) -> bool:
    return all(node.knows for node in run.nodes)


INSISTS = Algorithm(name="insists", node=Insists, topology="star:5", properties=(all_know,))


def test_what_it_takes_to_stand_faults_stays() -> None:
    """Who tries only once can't stand a loss, and would fail whether it counts well or not."""
    lossy = Trial(algorithm=INSISTS, kinds={"loss": 0.2})
    assert search(lossy, range(50)).failure is None
    miscounts = structs.replace(INSISTS, node=Miscounts)
    failed = search(structs.replace(lossy, algorithm=miscounts), range(50)).failure
    assert failed is not None
    shrunk = shrink(structs.replace(lossy, algorithm=miscounts).with_seed(failed.seed))
    assert shrunk.unsure == ("attempts",)  # Without faults, too, it may be what it takes: an answer can be slow.
    assert shrunk.trial.graph().num_nodes == 3
    assert structs.replace(shrunk.trial, algorithm=INSISTS).run().failure is None, shrunk.text()


def test_what_is_mended_may_take_as_long_as_it_takes() -> None:
    """A failure comes early, a run that goes well takes longer: the limit of events is the user's."""
    failed = search(Trial(algorithm=CARELESS), range(50)).failure
    assert failed is not None
    trial = Trial(algorithm=CARELESS, events_max=123_456).with_seed(failed.seed)
    assert shrink(trial, runs_max=50).trial.events_max == 123_456


# --- The least that algorithms state is true ---


@pytest.mark.parametrize("name", NAMES)
def test_each_algorithm_holds_with_the_least_that_it_states(name: str) -> None:
    algorithm = find(name)
    counted = {each for each, value in algorithm.parameters().items() if type(value) is int}
    assert set(algorithm.least) == {"nodes", *counted}
    topology = next(smaller(algorithm.topology, algorithm.least["nodes"]), f"clique:{algorithm.least['nodes']}")
    parameters = {each: least for each, least in algorithm.least.items() if each != "nodes"}
    for kinds in ({}, parse_kinds(algorithm.faults)):
        trial = Trial(algorithm=algorithm, topology=topology, parameters=parameters, kinds=kinds)
        assert search(trial, range(10)).failure is None


# --- What is kept ---

KEEPING = Trial(algorithm=CARELESS, kinds={"crash": 2, "link": 1, "loss": 0.05}, until=60 * 10**9, day=USUAL_DAY)


@pytest.fixture(scope="module")
def failing() -> Trial:
    found = search(KEEPING, range(100)).failure
    assert found is not None
    return KEEPING.with_seed(found.seed)


def traced(trial: Trial) -> list[NodeRecord]:
    run = trial.scheduler(trace=True)
    with pytest.raises(Violation):
        run.run(trial.end())
    return run.records


def test_nodes_and_parameters_can_be_kept(failing: Trial) -> None:
    for keep in ("nodes,rounds", ["nodes", "rounds"], "topology,parameters"):
        shrunk = shrink(failing, keep=keep, runs_max=300)
        assert shrunk.trial.graph().num_nodes == 4
        assert shrunk.trial.parameters.get("rounds", 3) == 3


def test_faults_can_be_kept(failing: Trial) -> None:
    shrunk = shrink(failing, keep="faults", runs_max=300)
    assert shrunk.trial.faults == failing.pinned().faults
    assert len(shrunk.trial.faults) == 6


def test_messages_can_be_kept(failing: Trial) -> None:
    shrunk = shrink(failing, keep="messages", runs_max=300)
    assert shrunk.trial.script is not None
    whole = script_of(traced(failing), 1).exceptions
    assert shrunk.trial.script.exceptions == whole
    assert shrunk.trial.seed == failing.seed


def test_the_seed_can_be_kept(failing: Trial) -> None:
    assert shrink(failing, keep="seed", runs_max=300).trial.seed == failing.seed


def test_a_drawn_graph_can_be_kept() -> None:
    trial = Trial(algorithm=CARELESS, topology="random:6,degree=3,connected")
    found = search(trial, range(50)).failure
    assert found is not None
    failing = trial.with_seed(found.seed)
    assert shrink(failing, keep="topology", runs_max=200).trial.graph().neighbors == failing.graph().neighbors


def test_a_network_that_is_connected_stays_so() -> None:
    trial = Trial(algorithm=CARELESS, topology="random:9,p=0.5")
    found = next(
        structs.replace(trial, seed=seed)
        for seed in range(50)
        if structs.replace(trial, seed=seed).graph().is_connected and structs.replace(trial, seed=seed).run().failure
    )
    assert shrink(found, runs_max=500).trial.graph().is_connected
