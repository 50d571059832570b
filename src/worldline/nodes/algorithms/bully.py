"""Garcia-Molina's bully algorithm: the highest node that is up becomes the leader, and makes the others follow it.

Every node has a link to every other. Nodes crash, lose all they know, and come back. What the algorithm lives on is
that latencies are bounded, here by 10 ms: a node that doesn't answer in time is down.

A node that knows no leader holds an election: it asks every node that might be higher. At first it doesn't know which
links lead to higher nodes; every message tells its sender's id, so it learns that. A node that is asked by a lower one
answers, and holds an election of its own; a leader says that it is the leader. A node that gets no answer from a higher
node within its patience, which is more than a round trip, makes itself the leader and tells all others, again and
again. The highest of all needn't ask. One that has got an answer waits for the new leader, and asks again if none
comes. A node that hears of a leader that is higher than itself follows it; if it doesn't hear from it for some time it
holds an election. One that hears of a leader that is lower than itself holds one too: that is the bully.

This is the form in which it is usually taught. In the original a winner first halts all lower nodes, and then tells
them in another round that it leads.

What can be promised: in a quiet time every node that is up follows the highest one that is up, after about as long as
it takes to miss a leader and to hold an election. No node makes itself the leader while a higher node has been up for
as long as its patience: that node would have answered. None follows a lower node, nor one that hasn't made itself
leader.

What can't: that there is one leader at any time. A higher node that comes back deposes a leader, which doesn't know it
before the message arrives: so there can be two of them, for one latency from when the higher one takes over. Until they
hear of it others follow the old leader, and until they miss it, one that has crashed. And if latencies aren't bounded
by what patience expects, if messages get lost or the network is cut apart, nothing is promised.

Messages may overtake each other. An election takes O(n²) messages at worst, when the lowest node begins it.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from worldline.model.time import TimeLike, format_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_clique, demand_duration
from worldline.nodes.node import Event, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

# What timers are for: an answer to come, a leader to be told, the next sign of life to give, or to get.
ANSWER = "answer"
RESULT = "result"
GIVE_SIGN = "give sign"
MISS_SIGN = "miss sign"


class Election(Struct, frozen=True):
    """Is there a node that is higher than I?"""

    sender: int

    def __str__(self) -> str:
        return f"Election of {self.sender}"


class Answer(Struct, frozen=True):
    """I am there, and I am higher than you."""

    sender: int

    def __str__(self) -> str:
        return f"Answer of {self.sender}"


class Coordinator(Struct, frozen=True):
    """I am the leader: when it begins, and as a sign of life."""

    sender: int

    def __str__(self) -> str:
        return f"Coordinator is {self.sender}"


class Bully(Node):
    """Leader election in spite of crashes: the highest that is up wins, if latencies are bounded."""

    shows = ("leader", "election")

    def __init__(self, *given: Any, patience: TimeLike = "25ms", heartbeat: TimeLike = "50ms") -> None:
        super().__init__(*given)
        demand_clique(self)
        self.patience = demand_duration(patience, "a patience")
        self.heartbeat = demand_duration(heartbeat, "a heartbeat")
        self.leader: int | None = None
        self.election: Literal["none", "asking", "answered"] = "none"
        self.ids: dict[int, int] = {}

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                self._hold_election()
            case Protocol(message, link):
                self.ids[link] = message.sender
                self._take(message, link)
            case Timer(name):
                self._run_out(name)

    def _take(self, message: Election | Answer | Coordinator, link: int) -> None:
        match message:
            case Election(sender) if sender < self.id:
                self._answer(link)
            case Answer(sender) if sender > self.id and self.election == "asking":
                self.election = "answered"
                self.cancel_timer(ANSWER)
                # The one that has answered asks for as long as its patience; question and result are under way, too.
                self.set_timer(2 * self.patience, RESULT)
            case Coordinator(sender) if sender > self.id:
                self._follow(sender)
            case Coordinator() if self.leader != self.id:
                self._hold_election_unless_under_way()

    def _run_out(self, name: str) -> None:
        if name == ANSWER:
            self._lead()
        elif name == GIVE_SIGN:
            self._give_sign()
        else:
            self.log("there is no leader" if name == RESULT else f"{self.leader} is gone")
            self._hold_election()

    def _hold_election(self) -> None:
        self.leader = None
        self.cancel_timer(MISS_SIGN)
        if self.id == self.num_nodes - 1:
            self._lead()
            return
        self.log("holding an election")
        self.election = "asking"
        for link in self.links:
            if self.ids.get(link, self.num_nodes) > self.id:
                self.send(Election(self.id), link)
        self.set_timer(self.patience, ANSWER)

    def _hold_election_unless_under_way(self) -> None:
        if self.election == "none":
            self._hold_election()

    def _answer(self, link: int) -> None:
        self.send(Answer(self.id), link)
        if self.leader == self.id:
            self.send(Coordinator(self.id), link)
        else:
            self._hold_election_unless_under_way()

    def _lead(self) -> None:
        self.log("I am the leader")
        self.election = "none"
        self.leader = self.id
        self._give_sign()

    def _give_sign(self) -> None:
        self.broadcast(Coordinator(self.id))
        self.set_timer(self.heartbeat, GIVE_SIGN)

    def _follow(self, leader: int) -> None:
        if self.leader != leader:
            self.log(f"following {leader}")
        self.leader = leader
        self.election = "none"
        for timer in (ANSWER, RESULT, GIVE_SIGN):
            self.cancel_timer(timer)
        # Signs come as far apart as they are sent, plus what latencies differ by, which is less than the patience.
        self.set_timer(self.heartbeat + self.patience, MISS_SIGN)


class Life(Struct):
    """Since when a node has been up, and its own leader, and whether it has ever been that."""

    node: Bully
    up_since: int
    leads_since: int | None = None
    has_led: bool = False


Lives = dict[int, Life]


def look(run: Scheduler, lives: Lives) -> int | None:
    """Look at the node that has acted; return it if it has made itself the leader by that."""
    if run.last is None:
        return None
    node: Bully = run.node(run.last)
    life = lives.get(node.id)
    if life is None or life.node is not node:  # A crash leaves nothing: a node that is back is another object.
        life = lives[node.id] = Life(node, run.now, has_led=life is not None and life.has_led)
    if node.leader != node.id:
        life.leads_since = None
    elif life.leads_since is None:
        life.leads_since, life.has_led = run.now, True
        return node.id
    return None


@always("no node makes itself the leader if a higher one has been up for its patience")
def none_higher_for_long(run: Scheduler, lives: Lives) -> bool:
    leader = look(run, lives)
    if leader is not None:
        for higher in range(leader + 1, run.num_nodes):
            up_for = run.now - lives[higher].up_since if higher in lives and run.is_up(higher) else 0
            assert up_for < run.node(leader).patience, (
                f"{leader} makes itself the leader, and {higher} has been up for {format_time(up_for)}"
            )
    return True


@always("there are two leaders only for one latency from when the higher one began")
def two_only_for_one_latency(run: Scheduler, lives: Lives) -> bool:
    """Look whether there are two only for as long as the higher one's first message is under way."""
    look(run, lives)
    leaders = leaders_of(run, lives)
    for higher, began in leaders[1:]:
        since = run.now - began
        assert since <= run.link.latency.maximum, (
            f"{leaders[0][0]} leads, and {higher} has done it for {format_time(since)}"
        )
    return True


def leaders_of(run: Scheduler, lives: Lives) -> list[tuple[int, int]]:
    """Return the nodes that are up and their own leaders, and since when, sorted."""
    since = {node: life.leads_since for node, life in lives.items() if run.is_up(node)}
    return sorted((node, began) for node, began in since.items() if began is not None)


@always("no node follows a lower one, or one that has never led")
def follows_rightly(run: Scheduler, lives: Lives) -> bool:
    look(run, lives)
    for node in run.up if run.last is None else run.acted:
        if node.leader is not None:
            assert node.leader >= node.id, f"{node.id} follows {node.leader}"
            has_led = node.leader in lives and lives[node.leader].has_led
            assert has_led, f"{node.id} follows {node.leader}, which has never led"
    return True


@at_end("all nodes that are up follow the highest of them")
def all_agree(run: Scheduler) -> bool:
    highest = max((node.id for node in run.up), default=None)
    for node in run.up:
        assert node.leader == highest, f"{node.id} follows {node.leader}, and {highest} is up"
    return True


model = Algorithm(
    name="bully",
    node=Bully,
    topology="clique:5",
    properties=(none_higher_for_long, two_only_for_one_latency, follows_rightly, all_agree),
    until="3s",
    latency="uniform(1ms, 10ms)",
    faults="crash,duplication",
    least={"nodes": 1},
)
