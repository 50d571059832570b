"""Termination detection for a diffusing computation, after Dijkstra and Scholten.

A computation begins at one node, the root. A node that has work does it, which takes some time, and then may send work
to some of its neighbors, at random; so it spreads, and no node can see for itself when all of it is done. The root
finds out.

Each piece of work that is sent gets one acknowledgement. A node that wasn't engaged and gets work is engaged by it: the
sender is its parent. It acknowledges at once whatever else it gets while it is engaged, but the work that has engaged
it only when it has nothing to do itself and everything that it has sent is acknowledged; then it isn't engaged any
more, and may be engaged again later, perhaps by another parent. When the root has nothing to do and all that it has
sent is acknowledged, everything is done, and it says so.

Why: the engaged nodes are a tree with the root at its top, since a node's parent lacks an acknowledgement and stays
engaged. Work under way is lacking at its sender, and a node that has work is engaged; so as long as there is any, the
root lacks an acknowledgement, or has work itself. And everything is done at some time, then the leaves of the tree
leave it one after the other. Messages may overtake each other; none may get lost. There are as many acknowledgements as
pieces of work, and no algorithm can do with fewer in the worst case.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.time import SECOND
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_node
from worldline.nodes.node import Event, Node, Protocol, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

WORK_TIME_MAX = SECOND


class Work(Struct, frozen=True):
    """A piece of work. Its name is for people and oracles; the algorithm doesn't look at it."""

    name: str
    spreads: int  # How many times more work may come of it.

    def __str__(self) -> str:
        return f"Work {self.name}"


class Ack(Struct, frozen=True):
    """A piece of work is acknowledged."""

    name: str

    def __str__(self) -> str:
        return f"Ack {self.name}"


class DijkstraScholten(Node):
    """Termination detection: who has engaged others waits for their acknowledgements, up to the root."""

    shows = ("is_engaged", "deficit", "parent")

    def __init__(self, *given: Any, root: int = 0, spreads: int = 5, pieces_max: int = 3) -> None:
        super().__init__(*given)
        self.is_root = self.id == demand_node(self, root, "be the root")
        self.spreads = spreads
        self.pieces_max = pieces_max
        # The computation: what is to be done, and the names of all that was ever sent, received and acknowledged.
        self.to_do: list[Work] = []
        self.sent: list[str] = []
        self.received: list[str] = []
        self.acknowledged: list[str] = []
        # The detection
        self.deficit = 0
        self.is_engaged = False
        self.parent: int | None = None
        self.engaged_by = ""
        self.declared = False

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.is_root:
                self.is_engaged = True
                self._take_on(Work("everything", self.spreads))
            case Protocol(Work() as work, link):
                self._receive(work, link)
            case Protocol(Ack(name), _):
                self.acknowledged.append(name)
                self.deficit -= 1
            case Timer():
                self._spread(self.to_do.pop(0))
        self._leave_if_done()

    # -- The computation

    def _take_on(self, work: Work) -> None:
        self.to_do.append(work)
        if len(self.to_do) == 1:
            self._begin_next()

    def _begin_next(self) -> None:
        self.set_timer(self.random.randrange(1, WORK_TIME_MAX), "work")

    def _spread(self, done: Work) -> None:
        """Send what comes of a piece of work that is done, and begin the next one."""
        if done.spreads > 0 and self.num_neighbors > 0:
            for _ in range(self.random.randrange(1 if self.is_root else 0, self.pieces_max + 1)):
                link = self.random.randrange(self.num_neighbors)
                work = Work(f"{self.id}.{len(self.sent)}", done.spreads - 1)
                self.sent.append(work.name)
                self.deficit += 1
                self.send(work, link)
        if self.to_do:
            self._begin_next()

    # -- The detection

    def _receive(self, work: Work, link: int) -> None:
        self.received.append(work.name)
        self._take_on(work)
        if self.is_engaged:
            self.send(Ack(work.name), link)
        else:
            self.is_engaged = True
            self.parent = link
            self.engaged_by = work.name

    def _is_done(self) -> bool:
        return not self.to_do and self.deficit == 0

    def _leave_if_done(self) -> None:
        if not self.is_engaged or not self._is_done():
            return
        self.is_engaged = False
        if self.parent is None:
            self.log("everything is done")
            self.declared = True
        else:
            self.send(Ack(self.engaged_by), self.parent)
            self.parent = None


class NotTooEarly:
    """When the root has said that everything is done, no node has work, and none is under way, then and later.

    Remembers every piece of work that was sent and hasn't arrived, and who has some to do. Looks only at the node that
    has acted, and at what is new in its lists.
    """

    def __init__(self) -> None:
        self.under_way: dict[str, None] = {}
        self.at_work: dict[int, None] = {}
        self.seen: dict[int, tuple[int, int]] = {}
        self.declared = False

    def __call__(self, run: Scheduler) -> bool:
        for node in run.acted:
            self._look(node)
        if self.declared:
            assert not self.at_work, f"{next(iter(self.at_work))} has work"
            assert not self.under_way, f"{next(iter(self.under_way))} is under way"
        return True

    def _look(self, node: DijkstraScholten) -> None:
        sent, received = self.seen.get(node.id, (0, 0))
        self.under_way.update(dict.fromkeys(node.sent[sent:]))
        for name in node.received[received:]:
            assert name in self.under_way, f"{node.id} has got {name}, which isn't under way"
            del self.under_way[name]
        self.seen[node.id] = (len(node.sent), len(node.received))
        if node.to_do:
            self.at_work[node.id] = None
        else:
            self.at_work.pop(node.id, None)
        self.declared = self.declared or node.declared


@always("the engaged nodes are a tree below the root")
def is_tree(run: Scheduler) -> bool:
    """Look at the node that has acted: if it is engaged, at the way to the root; if not, whether it has children."""
    for node in run.acted:
        if node.is_engaged:
            _check_way_to_root(run, node)
        else:
            for neighbor in run.topology.neighbors[node.id]:
                is_child = _parent_of(run, run.node(neighbor)) is node
                assert not is_child, f"{node.id} isn't engaged, and has the child {neighbor}"
    return True


def _check_way_to_root(run: Scheduler, node: DijkstraScholten) -> None:
    above: DijkstraScholten | None = node
    for _ in range(run.num_nodes):
        if above is None or above.is_root:
            break
        above = _parent_of(run, above)
    assert above is not None, f"{node.id} is engaged, and not below the root"
    assert above.is_root, f"{node.id} is below itself"


def _parent_of(run: Scheduler, node: DijkstraScholten) -> DijkstraScholten | None:
    if not node.is_engaged or node.parent is None:
        return None
    parent: DijkstraScholten = run.node(run.topology.neighbors[node.id][node.parent])
    return parent


@at_end("the root says that everything is done")
def is_declared(run: Scheduler) -> bool:
    return any(node.declared for node in run.nodes)


@at_end("every piece of work is acknowledged once")
def all_acknowledged(run: Scheduler) -> bool:
    for node in run.nodes:
        assert sorted(node.acknowledged) == sorted(node.sent), f"{node.id} lacks some, or has some twice"
    return True


model = Algorithm(
    name="dijkstra-scholten",
    node=DijkstraScholten,
    topology="random:10,p=0.3,connected",
    properties=(
        always("when the root says so, everything is done")(NotTooEarly),
        is_tree,
        is_declared,
        all_acknowledged,
    ),
    least={"nodes": 1, "root": 0, "spreads": 1, "pieces_max": 1},
)
