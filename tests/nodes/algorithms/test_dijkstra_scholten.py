from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.nodes.trying import noticed, tried
from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithms.dijkstra_scholten import Ack, DijkstraScholten, Work, model
from worldline.nodes.node import Event, Protocol


@pytest.mark.parametrize("topology", [None, "ring:6", "clique:5", "line:2"])
def test_the_root_says_when_everything_is_done(topology: str | None) -> None:
    for seed in range(12):
        run = tried(model, seed, topology)
        assert [node.id for node in run.nodes if node.declared] == [0]
        assert not any(node.is_engaged or node.deficit for node in run.nodes)


class Counting(DijkstraScholten):
    """Counts how many times it is engaged."""

    engagements = 0

    def _receive(self, work: Work, link: int) -> None:
        self.engagements += not self.is_engaged
        super()._receive(work, link)


def test_work_does_spread_and_nodes_are_engaged_anew() -> None:
    engagements = 0
    for seed in range(4):
        run = tried(replace(model, node=Counting), seed, "ring:6", parameters={"spreads": 8})
        assert all(node.received for node in run.nodes)
        engagements = max(engagements, *(node.engagements for node in run.nodes))
        arrived = sum(len(node.received) for node in run.nodes)
        # Besides the starts: every piece of work arrives, is done, and is acknowledged; the first one is only done.
        assert run.result().events == run.num_nodes + 3 * arrived + 1
    assert engagements > 1


def test_any_node_can_be_the_root() -> None:
    run = tried(model, 1, "grid:3x3", parameters={"root": 4})
    assert [node.id for node in run.nodes if node.declared] == [4]
    with pytest.raises(ConfigurationError, match="no node 9 to be the root"):
        tried(model, 1, "grid:3x3", parameters={"root": 9})


def test_a_root_without_neighbors_has_done_everything_itself() -> None:
    run = tried(model, 0, "line:1")
    assert run.node(0).declared
    assert run.node(0).sent == []


# -- Every property can fail


class LooksOnlyAtItself(DijkstraScholten):
    """Takes everything for done when it has nothing to do itself."""

    def _is_done(self) -> bool:
        return not self.to_do


class HasEnoughOfOne(DijkstraScholten):
    """Waits for one acknowledgement only, however much it has sent."""

    def _is_done(self) -> bool:
        return not self.to_do and (not self.sent or bool(self.acknowledged))


class AcknowledgesAtOnce(DijkstraScholten):
    """Acknowledges the work that engages it as well; then nobody waits for what comes of it."""

    def _receive(self, work: Work, link: int) -> None:
        self.is_engaged = True
        super()._receive(work, link)
        self.is_engaged = False


class AdoptsALaterParent(DijkstraScholten):
    """Takes whoever has sent work last for its parent."""

    def _receive(self, work: Work, link: int) -> None:
        super()._receive(work, link)
        if not self.is_root:
            self.parent = link


class ForgetsToAcknowledge(DijkstraScholten):
    """Acknowledges nothing that arrives while it is engaged."""

    def _receive(self, work: Work, link: int) -> None:
        if self.is_engaged:
            self.received.append(work.name)
            self._take_on(work)
        else:
            super()._receive(work, link)


class AcknowledgesTwice(DijkstraScholten):
    """What arrives while it is engaged it acknowledges twice; who gets that isn't confused by it."""

    def execute(self, event: Event) -> None:
        match event:
            case Protocol(Ack(name)) if name in self.acknowledged:
                self.acknowledged.append(name)
            case _:
                super().execute(event)

    def _receive(self, work: Work, link: int) -> None:
        if self.is_engaged:
            self.send(Ack(work.name), link)
        super()._receive(work, link)


@pytest.mark.parametrize(
    ("mutant", "text", "complaint"),
    [
        (LooksOnlyAtItself, "when the root says so", "is under way"),
        (AcknowledgesAtOnce, "when the root says so", "has work"),
        (LooksOnlyAtItself, "a tree below the root", "is engaged, and not below the root"),
        (HasEnoughOfOne, "a tree below the root", "isn't engaged, and has the child"),
        (AdoptsALaterParent, "a tree below the root", "is below itself"),
        (ForgetsToAcknowledge, "the root says that", "property failed"),
        (ForgetsToAcknowledge, "acknowledged once", "lacks some"),
        (AcknowledgesTwice, "acknowledged once", "has some twice"),
    ],
)
def test_properties_catch_what_is_wrong(mutant: type[DijkstraScholten], text: str, complaint: str) -> None:
    noticed(model, mutant, text, complaint, range(10), topology="clique:4")
