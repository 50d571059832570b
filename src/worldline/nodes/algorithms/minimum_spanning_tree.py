"""The minimum spanning tree after Gallager, Humblet and Spira.

Every node knows the weights of its links. The nodes of the network are in fragments, each of which is a part of the
tree; in the beginning each node is one by itself, at level 0. The members of a fragment find together its lightest link
that leads out of it, which belongs to the tree: any way back into the fragment has a heavier one. They then ask the
fragment at its other end to join them, by `Connect`:

- If that one has a higher level it absorbs them: they become a part of it.
- If it has the same level and wants to use the same link, the two merge: the link is the core of a new fragment, which
  is one level higher and named for the core.
- Otherwise they wait until one of these is so.

From the core `Initiate` spreads through the fragment: its name, its level, and whether members are to look for links. A
member tests its own links, the lightest first: `Test` asks the node at the other end, which answers `Accept` or, if it
is in the same fragment, `Reject`. It does that only when its own level is as high as that of the node that asks: until
then it might be a member and not know it yet. `Report` brings the lightest weights to the core; there both ends know
the lightest of all, and `ChangeRoot` goes to the node that has it, which sends `Connect`. If there is no link that
leads out, the tree is complete, and both ends of the core know it. No fragment waits for ever, since one of the lowest
level, and among these the one with the lightest link out, isn't kept waiting by any.

The algorithm needs all weights to be different. So that it can be used where they aren't, neighbors tell each other
their ids first; links of the same weight are ordered by the ids of their ends, the lower one first.

A node handles what comes over a link in the order in which it was sent: links must be FIFO, and mustn't lose anything.
(A message that a node can't act on yet waits in the node; others may be handled before it.) With n nodes and m links it
takes at most 5 n log₂ n + 2m messages, besides the 2m that introduce neighbors: a link is rejected once, by at most two
messages, and on each of at most log₂ n levels a node gets one `Initiate` and one `Accept`, and sends at most one `Test`
that is accepted, one `Report`, and one `ChangeRoot` or `Connect`. If the network isn't connected each component gets
its own tree.
"""

from __future__ import annotations

from math import inf, log2
from typing import Any, Literal

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_messages
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Edge, Topology
from worldline.search.properties import always, at_end

Weight = tuple[float, int, int]
"""A link's weight and its ends, the lower id first: no two links have the same."""

NO_LINK: Weight = (inf, -1, -1)
"""What is reported where no link leads out: heavier than all."""

Role = Literal["basic", "branch", "rejected"]
"""What a node knows of a link: nothing yet, that it is in the tree, that it isn't."""


class Hello(Struct, frozen=True):
    """A neighbor's id."""

    id: int

    def __str__(self) -> str:
        return f"Hello from {self.id}"


class Connect(Struct, frozen=True):
    """Let's join over this link; my fragment has this level."""

    level: int

    def __str__(self) -> str:
        return f"Connect at level {self.level}"


class Initiate(Struct, frozen=True):
    """You are in a fragment of this level and name, which is looking for a link, or not."""

    level: int
    fragment: Weight
    is_searching: bool

    def __str__(self) -> str:
        searching = ", search" if self.is_searching else ""
        return f"Initiate level {self.level} of {_text(self.fragment)}{searching}"


class Test(Struct, frozen=True):
    """Are you in this fragment?"""

    level: int
    fragment: Weight

    def __str__(self) -> str:
        return f"Test level {self.level} of {_text(self.fragment)}"


class Accept(Struct, frozen=True):
    """No, I'm in another one."""

    def __str__(self) -> str:
        return "Accept"


class Reject(Struct, frozen=True):
    """Yes, I'm in the same."""

    def __str__(self) -> str:
        return "Reject"


class Report(Struct, frozen=True):
    """The lightest link that leads out, of all on this side."""

    best: Weight

    def __str__(self) -> str:
        return "Report nothing" if self.best == NO_LINK else f"Report {_text(self.best)}"


class ChangeRoot(Struct, frozen=True):
    """The lightest link of all is on your side: use it."""

    def __str__(self) -> str:
        return "ChangeRoot"


class MinimumSpanningTree(Node):
    """Minimum spanning tree (Gallager, Humblet, Spira): fragments join over their lightest links until there is one."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.weights: dict[int, Weight] = {}
        self.roles: list[Role] = ["basic"] * self.num_neighbors
        self.is_awake = False
        self.is_complete = False
        # The fragment
        self.level = 0
        self.fragment: Weight = NO_LINK
        self.toward_core = -1
        # The search for its lightest link
        self.is_searching = False
        self.tested: int | None = None
        self.reports_lacking = 0
        self.best: Weight = NO_LINK
        self.best_link = -1
        self._waiting: list[tuple[Any, int]] = []

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast(Hello(self.id))
                self.is_complete = self.num_neighbors == 0
            case Protocol(message, link):
                self._waiting.append((message, link))
                self._handle_waiting()

    def _handle_waiting(self) -> None:
        """Act on all messages that can be acted on; acting on one may be what another waits for."""
        has_acted = True
        while has_acted:
            has_acted = False
            waiting, self._waiting = self._waiting, []
            for message, link in waiting:
                if self._can_act_on(message, link):
                    self._act_on(message, link)
                    has_acted = True
                else:
                    self._waiting.append((message, link))

    def _can_act_on(self, message: Any, link: int) -> bool:
        match message:
            case Hello():
                return True
            case Connect(level):  # Of the same level: only if we have chosen this link, too.
                return self.is_awake and (level < self.level or self.roles[link] != "basic")
            case Test(level):
                return self.is_awake and level <= self.level
            case Report():  # Of the core's other end: only when this end knows its own side.
                return link != self.toward_core or not self.is_searching
        return True

    def _act_on(self, message: Any, link: int) -> None:
        match message:
            case Hello(neighbor):
                self._meet(neighbor, link)
            case Connect(level):
                self._connect(level, link)
            case Initiate():
                self._initiate(message, link)
            case Test(_, fragment):
                self._answer(fragment, link)
            case Accept():
                self._accept(link)
            case Reject():
                if self.roles[link] == "basic":
                    self.roles[link] = "rejected"
                self._test()
            case Report(best):
                self._take_report(best, link)
            case ChangeRoot():
                self._change_root()

    # -- Joining

    def _meet(self, neighbor: int, link: int) -> None:
        self.weights[link] = (self.weight(link), min(self.id, neighbor), max(self.id, neighbor))
        if len(self.weights) == self.num_neighbors:
            self.is_awake = True
            lightest = min(self.weights, key=self.weights.__getitem__)
            self.roles[lightest] = "branch"
            self.send(Connect(0), lightest)

    def _connect(self, level: int, link: int) -> None:
        if level < self.level:
            self.log(f"absorbed the fragment behind link {link}")
            self.roles[link] = "branch"
            self.send(Initiate(self.level, self.fragment, self.is_searching), link)
            if self.is_searching:
                self.reports_lacking += 1
        else:
            self.send(Initiate(self.level + 1, self.weights[link], True), link)

    def _initiate(self, message: Initiate, link: int) -> None:
        self.level, self.fragment, self.is_searching = message.level, message.fragment, message.is_searching
        self.toward_core = link
        self.best, self.best_link = NO_LINK, -1
        self.log(f"level {self.level} of {_text(self.fragment)}")
        for other in self.links:
            if other != link and self.roles[other] == "branch":
                self.send(message, other)
                if self.is_searching:
                    self.reports_lacking += 1
        if self.is_searching:
            self._test()

    # -- Searching

    def _test(self) -> None:
        basic = [link for link in self.links if self.roles[link] == "basic"]
        if basic:
            self.tested = min(basic, key=self.weights.__getitem__)
            self.send(Test(self.level, self.fragment), self.tested)
        else:
            self.tested = None
            self._report_if_known()

    def _answer(self, fragment: Weight, link: int) -> None:
        if fragment != self.fragment:
            self.send(Accept(), link)
            return
        if self.roles[link] == "basic":
            self.roles[link] = "rejected"
        if self.tested == link:  # Both ends test it: each knows from the other's question.
            self._test()
        else:
            self.send(Reject(), link)

    def _accept(self, link: int) -> None:
        self.tested = None
        if self.weights[link] < self.best:
            self.best, self.best_link = self.weights[link], link
        self._report_if_known()

    def _report_if_known(self) -> None:
        if self.reports_lacking == 0 and self.tested is None:
            self.is_searching = False
            self.send(Report(self.best), self.toward_core)

    def _take_report(self, best: Weight, link: int) -> None:
        if link != self.toward_core:
            self.reports_lacking -= 1
            if best < self.best:
                self.best, self.best_link = best, link
            self._report_if_known()
        elif best > self.best:
            self._change_root()
        elif best == NO_LINK:
            self.log("the tree is complete")
            self.is_complete = True

    def _change_root(self) -> None:
        if self.roles[self.best_link] == "branch":
            self.send(ChangeRoot(), self.best_link)
        else:
            self.roles[self.best_link] = "branch"
            self.send(Connect(self.level), self.best_link)


def _text(weight: Weight) -> str:
    return f"{weight[1]}-{weight[2]} ({weight[0]})"


def kruskal(topology: Topology) -> list[Edge]:
    """Compute the minimum spanning tree, or the forest, from the topology alone; sorted."""
    group = list(range(topology.num_nodes))
    tree: list[Edge] = []
    for _, (a, b) in sorted((topology.weight(*edge), edge) for edge in topology.edges):
        if group[a] != group[b]:
            tree.append((a, b))
            old, new = group[b], group[a]
            group = [new if each == old else each for each in group]
    return sorted(tree)


def branches(run: Scheduler, node: int) -> list[Edge]:
    """Return the edges that a node takes for a part of the tree."""
    neighbors = run.topology.neighbors[node]
    ends = [neighbors[link] for link, role in enumerate(run.node(node).roles) if role == "branch"]
    return [(min(node, end), max(node, end)) for end in ends]


@always("every branch is an edge of the minimum spanning tree")
def only_tree_edges(run: Scheduler, tree: dict[Edge, None]) -> bool:
    if not tree:
        tree.update(dict.fromkeys(kruskal(run.topology)))
    for node in run.acted:
        for edge in branches(run, node.id):
            assert edge in tree, f"{node.id} takes {edge[0]}-{edge[1]} for a part of the tree"
    return True


@at_end("the branches are the minimum spanning tree, and both ends of each know it")
def exactly_the_tree(run: Scheduler) -> bool:
    tree = kruskal(run.topology)
    found = sorted(edge for node in range(run.num_nodes) for edge in branches(run, node))
    expected = sorted(tree * 2)
    assert found == expected, f"both ends should know of {tree}, and they know of {found}"
    return True


@at_end("both ends of each tree's core know that it is complete, and no other node thinks so")
def is_known_at_core(run: Scheduler) -> bool:
    for component in run.topology.components():
        knowing = [node for node in component if run.node(node).is_complete]
        assert len(knowing) == min(2, len(component)), f"{knowing} know that their tree is complete"
        if len(knowing) == 2:
            assert tuple(knowing) in branches(run, knowing[0]), f"{knowing} aren't neighbors in the tree"
    return True


@at_end("there are at most 5 n log₂ n + 2m messages, besides the 2m of introduction")
def within_bounds(run: Scheduler) -> bool:
    edges = len(run.topology.edges)
    most = sum(5 * len(part) * log2(len(part)) for part in run.topology.components()) + 2 * edges
    return demand_messages(run, 0, most, others=2 * edges)


model = Algorithm(
    name="minimum-spanning-tree",
    node=MinimumSpanningTree,
    topology="random:12,p=0.35,connected,weights=1-1000,distinct",
    properties=(only_tree_edges, exactly_the_tree, is_known_at_core, within_bounds),
    fifo=True,
    least={"nodes": 1},
)
