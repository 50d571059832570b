from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.nodes.trying import noticed, tried, tried_all
from worldline.model.randomness import Stream
from worldline.model.time import MS
from worldline.nodes.algorithms.bully import Answer, Bully, Coordinator, Election, Lives, leaders_of, look, model
from worldline.nodes.faults import Fault, as_fault
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.trial import Trial
from worldline.search.properties import Violation, always


def upheaval(seed: int, num_nodes: int, until_ms: int = 400) -> tuple[Fault, ...]:
    """Draw for every node when it crashes and recovers, much faster than elections are held; some stay down."""
    draws = Stream(seed, "upheaval")
    found = []
    for node in range(num_nodes):
        at = draws.randrange(until_ms // 2)
        while at < until_ms:
            found.append(Fault(at * MS, "crash", (node,)))
            at += draws.randrange(1, 80)
            if at >= until_ms and draws.random() < 0.5:
                break
            found.append(Fault(at * MS, "recover", (node,)))
            at += draws.randrange(1, 150)
    return tuple(sorted(found))


def faults(*texts: str) -> tuple[Fault, ...]:
    return tuple(as_fault(text) for text in texts)


@pytest.mark.parametrize("topology", ["clique:1", "clique:2", "clique:6"])
def test_without_faults_everybody_follows_the_highest(topology: str) -> None:
    run = tried(model, 3, topology, until=200 * MS)
    assert {node.leader for node in run.nodes} == {run.num_nodes - 1}


def test_it_stands_an_upheaval_in_which_nobody_is_up_for_long() -> None:
    survivors = set()
    for seed in range(25):
        run = tried(model, seed, faults=upheaval(seed, 5), until=800 * MS)
        survivors.add(len(run.up))
    assert len(survivors) >= 3  # Not only runs in which everybody is back, nor only such in which hardly anybody is.


def test_the_next_highest_takes_over_and_is_deposed() -> None:
    changes = faults("300ms crash 4", "310ms crash 3", "900ms recover 4")
    run = Trial(algorithm=model, faults=changes).scheduler()
    run.run("700ms")
    assert [node.leader for node in run.up] == [2, 2, 2]
    run.run("1500ms")
    assert [node.leader for node in run.up] == [4, 4, 4, 4]


@always("there is one leader at most")
def one_leader(run: Scheduler, lives: Lives) -> bool:
    look(run, lives)
    return len(leaders_of(run, lives)) < 2


def test_two_leaders_at_once_do_happen() -> None:
    too_much = replace(model, properties=(one_leader,))
    with pytest.raises(Violation, match="one leader at most"):
        tried(too_much, 0, faults=faults("100ms crash 4", "600ms recover 4"))


def test_it_needs_bounded_latencies() -> None:
    with pytest.raises(Violation, match="makes itself the leader"):
        tried_all(model, range(5), until=500 * MS, latency="uniform(1ms, 100ms)")


def test_impatience_shows() -> None:
    with pytest.raises(Violation, match="makes itself the leader"):
        tried_all(model, range(5), until=500 * MS, parameters={"patience": "8ms"})


# -- Every property can fail


class Shy(Bully):
    """Doesn't answer."""

    def _answer(self, link: int) -> None:
        self._hold_election_unless_under_way()


class Stubborn(Bully):
    """Once the leader, always the leader."""

    def _follow(self, leader: int) -> None:
        if self.leader != self.id:
            super()._follow(leader)


class Meek(Bully):
    """Follows whoever says that it leads."""

    def _take(self, message: Election | Answer | Coordinator, link: int) -> None:
        if isinstance(message, Coordinator):
            self._follow(message.sender)
        else:
            super()._take(message, link)


class Hasty(Bully):
    """Takes who has answered for the leader."""

    def _take(self, message: Election | Answer | Coordinator, link: int) -> None:
        if isinstance(message, Answer):
            self._follow(message.sender)
        else:
            super()._take(message, link)


class Trusting(Bully):
    """Doesn't notice that its leader is gone."""

    def _follow(self, leader: int) -> None:
        super()._follow(leader)
        self.cancel_timer("miss sign")


@pytest.mark.parametrize(
    ("mutant", "text", "complaint"),
    [
        (Shy, "for its patience", ". makes itself the leader, and . has been up for"),
        (Stubborn, "for one latency", "3 leads, and 4 has done it for"),
        (Meek, "follows a lower one", "4 follows ."),
        (Hasty, "never led", "follows ., which has never led"),
        (Trusting, "all nodes that are up", "follows 4, and 3 is up"),
    ],
)
def test_properties_catch_what_is_wrong(mutant: type[Bully], text: str, complaint: str) -> None:
    changes = faults("100ms crash 4") if mutant is Trusting else faults("100ms crash 4", "500ms recover 4")
    noticed(model, mutant, text, complaint, [1], faults=changes)
