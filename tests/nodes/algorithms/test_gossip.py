"""Gossip: what is certain of it, what is only probable, and what it stands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nodes.chatter import ran
from tests.nodes.trying import tried, violated
from worldline.model import SECOND
from worldline.nodes import Event, Node, Property, Protocol, Scheduler, Start, fault
from worldline.nodes.algorithms.gossip import Gossip, NoNews, model

HEARSAY, IN_VAIN, EVERYBODY = model.properties


def knowing(run: Scheduler) -> list[int]:
    return [node.id for node in run.nodes if node.rumour == "hello"]


# -- Everybody knows in the end


@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("kinds", [{}, {"loss": 0.3}])
def test_everybody_knows_soon(kinds: dict[str, float], pull: bool) -> None:
    run = tried(model, 1, kinds=kinds, parameters={"pull": pull}, until=25 * SECOND)
    assert knowing(run) == list(range(16))


def test_an_initiator_that_is_down_in_the_beginning_knows_it_when_it_is_back() -> None:
    faults = (fault("0s", "crash", 0), fault("5s", "recover", 0))
    run = tried(model, 0, "clique:4", faults=faults, until=20 * SECOND)
    assert knowing(run) == [0, 1, 2, 3]


def time_until_all_know(seed: int, **parameters: Any) -> int:
    run = Scheduler.over("star:10", Gossip, seed=seed, parameters=parameters)
    run.start_all_nodes()
    while len(knowing(run)) < 10:
        assert run.schedule()
    return run.now


def test_asking_is_faster_than_being_found() -> None:
    told = sum(time_until_all_know(seed) for seed in range(4))
    asked = sum(time_until_all_know(seed, pull=True) for seed in range(4))
    assert asked < told / 2


def test_the_period_is_how_often_a_node_tells() -> None:
    run = ran("line:2", Gossip, parameters={"period": "2s"}, trace=True, until="9s")
    told = [record.at for record in run.records if (record.kind, record.node, record.what) == ("sent", 0, "Rumour")]
    assert told == [2 * SECOND, 4 * SECOND, 6 * SECOND, 8 * SECOND]


# -- Losing interest


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("patience", [1, 3])
def test_with_patience_it_ends_by_itself(patience: int, seed: int) -> None:
    run = tried(model, seed, parameters={"patience": patience}, until=10_000 * SECOND)
    assert not run.schedule()
    assert all(node.has_lost_interest for node in run.nodes if node.rumour)
    assert all(node.in_vain >= patience for node in run.nodes if node.rumour)


def test_that_everybody_knows_is_only_probable_if_interest_is_lost() -> None:
    runs = [tried(model, seed, "ring:12", parameters={"patience": 1}) for seed in range(12)]
    assert {len(knowing(run)) == 12 for run in runs} == {True, False}


def test_who_asks_is_not_left_out_even_so() -> None:
    for seed in range(6):
        run = tried(model, seed, parameters={"patience": 1, "pull": True}, until=10_000 * SECOND)
        assert not run.schedule()
        assert knowing(run) == list(range(16))


def test_interest_that_is_lost_stays_lost_through_a_crash() -> None:
    faults = (fault("50s", "crash", 0), fault("51s", "recover", 0))
    run = tried(model, 0, "clique:3", parameters={"patience": 1}, faults=faults)
    assert not run.schedule()
    assert run.node(0).has_lost_interest


# -- Its properties can fail


class Forgetful(Gossip):
    """Keeps nothing through a crash."""

    stable = ()


class Clairvoyant(Gossip):
    """Node 2 needn't be told."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Start) and self.id == 2:
            self._learn(self.text)
        super().execute(event)


class Distorts(Gossip):
    """Understands something else."""

    def _learn(self, text: str) -> None:
        super()._learn(text if self.id == self.initiator else text.upper())


class Easygoing(Gossip):
    """Takes every telling for one in vain."""

    def _call_neighbor(self) -> None:
        super()._call_neighbor()
        self.execute(Protocol(NoNews(), 0))


class Secretive(Gossip):
    """Tells nobody."""

    def _call_neighbor(self) -> None:
        pass


@pytest.mark.parametrize(
    ("node", "only", "options", "reason"),
    [
        (Forgetful, HEARSAY, {"faults": (fault("20s", "crash", 1), fault("21s", "recover", 1))}, "1 has forgotten it"),
        (Clairvoyant, HEARSAY, {}, "2 knows it, and none of its neighbors does"),
        (Distorts, HEARSAY, {}, "knows 'HELLO', which no node told"),
        (Easygoing, IN_VAIN, {"parameters": {"patience": 1}}, "0 has lost interest, and none of its neighbors knows"),
        (Secretive, EVERYBODY, {}, "1 doesn't know"),
    ],
)
def test_what_is_wrong_is_noticed(node: type[Node], only: Property, options: dict[str, Any], reason: str) -> None:
    assert reason in violated(model, node, only, topology="line:4", until=30 * SECOND, **options)
