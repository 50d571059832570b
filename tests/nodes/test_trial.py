"""Trials: a run with all that it depends on, which can be had again."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from msgspec import structs

from tests.nodes.chatter import Chatter, Listener, Ticker
from tests.nodes.trying import tried
from worldline.model.errors import ConfigurationError, Stuck
from worldline.model.reading import as_time
from worldline.model.time import SECOND
from worldline.nodes import Fault, Node, Violation, always, at_end, eventually
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import find
from worldline.nodes.faults import as_fault
from worldline.nodes.node import Event, LinkUp, Start, Timer
from worldline.nodes.trace import script_of
from worldline.nodes.trial import Trial, search
from worldline.search.searching import TrialOutcome, remarks_on

BELLMAN_FORD = find("bellman-ford")

CHATTER = Algorithm(name="chatter", node=Chatter, topology="random:6,p=0.4,connected", until="20s", faults="crash")


def trial(**options: Any) -> Trial:
    return Trial(**{"algorithm": CHATTER, "kinds": {"crash": 3, "partition": 1, "link": 2, "loss": 0.1}, **options})


@pytest.mark.parametrize("seed", range(5))
def test_a_trial_is_the_same_each_time_and_also_with_all_written_down(seed: int) -> None:
    one = trial(seed=seed)
    outcome = one.run()
    assert outcome.failure is None
    assert (outcome.seed, outcome.now) == (seed, 20 * SECOND)
    assert one.run() == outcome
    pinned = one.pinned()
    assert pinned.run() == outcome
    assert pinned.pinned().run() == outcome
    assert pinned.kinds == {"loss": 0.1}
    assert len(pinned.faults) == 12
    traced = one.scheduler(trace=True)
    traced.run(one.end())
    scripted = trial(seed=seed, script=script_of(traced.records, usual=5))
    assert scripted.run().digest == outcome.digest


def test_what_is_not_said_is_as_the_algorithm_has_it() -> None:
    plain = Trial(algorithm=CHATTER)
    assert plain.end() == 20 * SECOND
    assert plain.graph().num_nodes == 6
    assert plain.link().fifo is False
    assert Trial(algorithm=CHATTER, until=5).end() == 5
    assert Trial(algorithm=BELLMAN_FORD).end() is None
    assert Trial(algorithm=CHATTER, topology="ring:3", latency="5ms", fifo=True).link().fifo is True


def test_parameters_and_faults_are_passed_on() -> None:
    made = Trial(algorithm=CHATTER, parameters={"patience": 0}, faults=(Fault(SECOND, "crash", (1,)),)).scheduler()
    made.run()
    assert not made.is_up(1)
    assert {node.patience for node in made.nodes} == {0}


def test_its_plan_is_that_of_its_scheduler() -> None:
    one = Trial(algorithm=CHATTER, topology="ring:12", seed=4, latency="5ms", kinds={"loss": 0.1}, until=SECOND)
    assert one.plan() == one.scheduler().plan(SECOND)
    assert one.plan().roster[-1] == "11"


def broken(**options: Any) -> Algorithm:
    return Algorithm(**{"name": "broken", "node": Listener, "topology": "line:2", **options})


def test_a_violation_is_an_outcome() -> None:
    algorithm = broken(properties=(always("no messages")(lambda run: run.now == 0),))
    outcome = Trial(algorithm=algorithm, seed=3).run()
    assert isinstance(outcome.failure, Violation)
    assert outcome.failure.at == outcome.now > 0
    assert pickle.loads(pickle.dumps(outcome)).digest == outcome.digest


def test_a_node_that_never_ends_is_an_outcome() -> None:
    failure = Trial(algorithm=broken(node=Ticker), events_max=500).run().failure
    assert isinstance(failure, Stuck)


def test_a_run_that_was_broken_off_somewhere_has_no_outcome() -> None:
    """How far workers have got by then is luck, so nothing could be said of it."""
    with pytest.raises(Stuck):
        Trial(algorithm=broken(node=Ticker), events_max=500).run(executor="processes(2)")


@pytest.mark.parametrize(
    "options",
    [{"topology": "ring:2"}, {"latency": "soon"}, {"kinds": {"loss": 2.0}}, {"faults": (Fault(0, "crash", (9,)),)}],
)
def test_what_cannot_be_tried_is_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        trial(**options).run()


def test_trials_travel_to_other_processes() -> None:
    one = Trial(algorithm=BELLMAN_FORD, topology="random:8,p=0.4,connected", seed=5)
    assert pickle.loads(pickle.dumps(one)).run() == one.run()
    assert pickle.loads(pickle.dumps(one.pinned())).run() == one.run()


# -- What can't be one


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "raft"}, "'raft' isn't an algorithm"),
        ({"kinds": {"crsh": 2}}, "'crsh=2' can't be drawn"),
        ({"kinds": {"loss": 2}}, "'loss=2' can't be drawn"),
        ({"kinds": "crash=2"}, "aren't kinds of faults"),
    ],
)
def test_what_is_no_trial_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Trial(**{"algorithm": BELLMAN_FORD, **options})


@pytest.mark.parametrize("decorator", [always, eventually, at_end])
def test_a_property_without_a_text_is_refused(decorator: Any) -> None:
    def agreed(_: Any) -> bool:
        return True

    with pytest.raises(ConfigurationError, match=rf"@{decorator.__name__} of agreed has no text \(say what must hold"):
        decorator(agreed)


def test_an_algorithm_whose_properties_are_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="aren't properties"):
        structs.replace(BELLMAN_FORD, properties=BELLMAN_FORD.properties[0])
    with pytest.raises(ConfigurationError, match="can't be drawn"):
        structs.replace(BELLMAN_FORD, faults="crsh")


@pytest.mark.parametrize("fault", ["10ms recover 1", "10ms repair", "5s partition 1", "1s up 0 1"])
def test_faults_that_do_nothing_are_no_messages(fault: str) -> None:
    tried(find("flooding"), 0, "line:3", faults=(as_fault(fault),))


def test_faults_strike_within_the_run_however_short_it_is() -> None:
    trial = Trial(algorithm=find("two-phase-commit"), latency="uniform(1ms, 20ms)", kinds={"crash": 2})
    assert all(structs.replace(trial, seed=seed).run().faults == 2 for seed in range(20))


def test_fifo_can_be_taken_away_and_messages_doubled() -> None:
    needy = find("lamport-mutex")
    assert Trial(algorithm=needy).link().fifo
    assert not Trial(algorithm=needy, fifo=False).link().fifo
    assert any(Trial(algorithm=needy, fifo=False, seed=seed).run().failure for seed in range(30))
    assert Trial(algorithm=needy, kinds={"duplication": 0.5}).link().duplication == 0.5


# -- Faults that come too late


class Greeting(Node):
    """Says hello once, after a second, and is done."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.set_timer("1s")
        elif isinstance(event, Timer):
            self.broadcast("hello")


def greeted(*faults: str, until: str = "100s") -> TrialOutcome:
    algorithm = Algorithm(name="greeting", node=Greeting, topology="ring:3", latency="1s")
    return Trial(algorithm=algorithm, faults=tuple(map(as_fault, faults)), until=as_time(until)).run()


def test_faults_that_come_when_the_algorithm_is_done_are_counted() -> None:
    outcome = greeted("1500ms crash 1", "3s crash 0", "4s recover 0", "50s partition 0", "60s repair")
    assert (outcome.faults, outcome.faults_in_vain) == (3, 2)
    assert outcome.remarks() == [
        "2 of 3 faults came when nothing was left to do: to try more, end the run earlier (--until)"
    ]


def test_a_fault_that_stops_the_last_message_isnt_in_vain() -> None:
    outcome = greeted("1500ms crash 0", "1500ms crash 1", "1500ms crash 2")
    assert (outcome.faults, outcome.faults_in_vain) == (3, 0)
    assert outcome.remarks() == []


def test_what_is_done_again_because_of_a_fault_counts() -> None:
    class Eager(Greeting):
        def execute(self, event: Event) -> None:
            if isinstance(event, LinkUp):
                self.send("again", event.link)
            super().execute(event)

    algorithm = Algorithm(name="eager", node=Eager, topology="ring:3", latency="1s")
    faults = tuple(map(as_fault, ("10s down 0 1", "20s up 0 1", "30s crash 2")))
    outcome = Trial(algorithm=algorithm, faults=faults, until=as_time("100s")).run()
    assert (outcome.faults, outcome.faults_in_vain) == (2, 1)


def test_a_search_counts_them_over_all_seeds() -> None:
    algorithm = Algorithm(name="greeting", node=Greeting, topology="ring:3", latency="1s")
    report = search(Trial(algorithm=algorithm, kinds={"crash": 2}, until=as_time("1h")), range(5))
    assert (report.faults, report.faults_in_vain) == (10, 10)
    assert remarks_on(10, 10)
    assert not remarks_on(10, 2), "a few that come late are no waste"
    assert remarks_on(1, 1) == [
        "1 of 1 fault came when nothing was left to do: to try more, end the run earlier (--until)"
    ]
