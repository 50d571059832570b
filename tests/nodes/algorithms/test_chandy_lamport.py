"""Chandy and Lamport's snapshot, and that its properties notice when it is wrong."""

from __future__ import annotations

import pytest

from tests.nodes.trying import noticed, tried
from worldline.nodes import Event, Protocol, Scheduler, Timer
from worldline.nodes.algorithms.chandy_lamport import ChandyLamport, Marker, Payment, model
from worldline.nodes.trial import Trial


@pytest.mark.parametrize(
    ("topology", "seeds"), [("line:1", 1), ("line:2", 5), ("ring:5", 10), ("grid:2x3", 25), ("clique:5,shuffled", 5)]
)
def test_the_picture_is_one_that_could_have_been(topology: str, seeds: int) -> None:
    for seed in range(seeds):
        tried(model, seed, topology)


def test_anybody_can_begin_at_any_time() -> None:
    under_way = 0
    for initiator in range(4):
        for at in ("0ns", "700ms", "2s", "1h"):
            run = tried(model, 3, "ring:4", parameters={"initiator": initiator, "at": at, "money": 20})
            assert sum(node.recorded for node in run.nodes) + money_under_way(run) == 80
            under_way += money_under_way(run)
            if at == "1h":  # All is quiet by then.
                assert [node.recorded for node in run.nodes] == [node.balance for node in run.nodes]
    assert under_way > 0


def money_under_way(run: Scheduler) -> int:
    return sum(sum(map(sum, node.on_links)) for node in run.nodes)


def test_each_link_carries_two_markers() -> None:
    run = Trial(algorithm=model, seed=1).scheduler(trace=True)
    run.run()
    markers = [
        (record.node, record.peer) for record in run.records if record.kind == "sent" and record.what == "Marker"
    ]
    assert len(markers) == len(set(markers)) == 2 * len(run.topology.edges)


def test_who_is_out_of_reach_has_no_part_in_it() -> None:
    run = tried(model, 0, [[1], [0], [3], [2]], parameters={"initiator": 2})
    assert [node.recorded is None for node in run.nodes] == [True, True, False, False]


# -- Properties can fail


class Slow(ChandyLamport):
    """Goes on with its business for a while before it sends the markers."""

    def execute(self, event: Event) -> None:
        if event == Timer("mark"):
            super().broadcast(Marker())
        else:
            super().execute(event)

    def broadcast(self, message: object, *, but: int | None = None) -> None:
        self.set_timer("300ms", "mark")


class Blind(ChandyLamport):
    """Doesn't record what is under way."""

    def record(self) -> None:
        super().record()
        self.on_links = [[] for _ in self.links]
        self.open = []

    def mark(self, link: int) -> None:
        if self.recorded is None:
            self.record()


class Careless(ChandyLamport):
    """Records what is under way for all links together."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if isinstance(event, Protocol) and isinstance(event.message, Payment) and event.link in self.open:
            self.on_links[self.open[0]].append(self.on_links[event.link].pop())


class Silent(ChandyLamport):
    """Tells nobody."""

    def broadcast(self, message: object, *, but: int | None = None) -> None:
        self.log("says nothing")


class Generous(ChandyLamport):
    """Takes what it has recorded for money that it has."""

    def mark(self, link: int) -> None:
        super().mark(link)
        self.balance += sum(self.on_links[link])


class Locked(ChandyLamport):
    """Pays nothing any more as soon as it has recorded."""

    def record(self) -> None:
        super().record()
        self.cancel_timer("pay")


@pytest.mark.parametrize(
    ("node", "text", "reason"),
    [
        (Slow, "no payment is received before the cut and sent after it", "payments of"),
        (Careless, "what is recorded for a link is what crosses the cut on it", "were under way, not"),
        (Blind, "what is recorded for a link is what crosses the cut on it", "which hasn't begun"),
        (Silent, "every node within reach has recorded itself and all of its links", "goes on recording"),
        (Blind, "no money is missing in the picture, nor too much", "there are 600, and"),
        (Locked, "the bank isn't disturbed: every payment is made, and arrives once", "of its payments"),
        (Generous, "the bank isn't disturbed: every payment is made, and arrives once", "by its books"),
    ],
)
def test_properties_notice(node: type[ChandyLamport], text: str, reason: str) -> None:
    noticed(model, node, text, f"property failed: {text}: .*{reason}")
