"""Paxos: all agree on one value, once and for ever.

Every node is an acceptor and a learner, and some are proposers too. A proposer that wants a value to be chosen opens a
ballot, which has a number that is larger than all that it knows of, and which is unique since the proposer's id belongs
to it. First it asks all acceptors to promise that they take part in no lower ballot any more; with their promise, they
tell what they have accepted last, if anything. With the promises of a majority, the proposer asks all to accept a value
in this ballot: the one of the highest ballot that it was told of, or its own if none has accepted anything. An acceptor
does so unless it has promised a higher ballot, and tells all nodes. A value is chosen when a majority has accepted it
in the same ballot; a node that hears of that has learned it.

That's why it is correct: any two majorities have an acceptor in common. Once a value is chosen, a proposer that gets
promises for a higher ballot hears of it from that acceptor, or of a ballot in between that has the same value for the
same reason, so no other value is proposed any more. It needs that acceptors don't forget what they have promised and
accepted, so that is stable. The rest may be lost: a proposer is an acceptor too and promises its own ballots first, so
even after a crash it doesn't use one twice.

Two proposers can outbid each other for ever. So each waits for a random time before it tries again, and learns from
those that refuse how high it has to go. Nodes that have no value after such a time ask again, by a new ballot if they
are proposers, and those that know the value tell it to them. So messages may get lost and overtake each other, and
nodes may crash; if a majority reaches each other for long enough, all nodes that are up learn the value in the end. A
ballot takes up to 3 n messages and those of n acceptors that tell all: n². Every node must be a neighbor of every
other.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_clique, demand_duration
from worldline.nodes.node import Event, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

Ballot = tuple[int, int]
"""A number, and the id of the proposer; compared in this order."""

Vote = tuple[Ballot, str]
"""What an acceptor has accepted: in which ballot, and which value."""

NO_BALLOT: Ballot = (0, 0)

OWN = -1
"""Where a node's messages to itself come from: it has no link for them, and they take no time."""


class Prepare(Struct, frozen=True):
    """A proposer asks for a promise to take part in no lower ballot."""

    ballot: Ballot


class Promise(Struct, frozen=True):
    """It is given, with what was accepted before."""

    ballot: Ballot
    accepted: Vote | None


class Accept(Struct, frozen=True):
    """A proposer asks to accept a value."""

    ballot: Ballot
    value: str


class Accepted(Struct, frozen=True):
    """An acceptor has done so, and tells all nodes."""

    ballot: Ballot
    value: str


class Refused(Struct, frozen=True):
    """An acceptor has promised a higher ballot."""

    promised: Ballot


class Ask(Struct, frozen=True):
    """A node asks for the value."""


class Chosen(Struct, frozen=True):
    """One that knows it tells it."""

    value: str


Message = Prepare | Promise | Accept | Accepted | Refused | Ask | Chosen


class Paxos(Node):
    """Consensus on one value: majorities promise and accept, in ballots that may fail, till one is chosen."""

    stable = ("promised", "accepted")
    shows = ("promised", "accepted", "learned")

    def __init__(self, *given: Any, proposers: int = 3, patience: str = "2s") -> None:
        """The first `proposers` nodes propose. One waits for `patience` at least, and up to three times as long."""
        super().__init__(*given)
        self.majority = self.num_nodes // 2 + 1
        demand_clique(self)
        self.patience = demand_duration(patience, "a patience")
        if proposers < 1:
            raise ConfigurationError(f"{proposers} nodes can't propose", advice="use at least 1 proposer")
        self.proposal = f"value {self.id}" if self.id < proposers else None
        # As an acceptor:
        self.promised = NO_BALLOT
        self.accepted: Vote | None = None
        # As a proposer:
        self.highest = 0
        self.ballot = NO_BALLOT
        self.promises: dict[int, Vote | None] = {}  # By link.
        # As a learner:
        self.heard: dict[Ballot, set[int]] = {}  # The links of those that have accepted.
        self.learned: str | None = None

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                self.set_timer(self.random.randrange(self.patience), "patience")
            case Timer("patience"):
                self._try_again()
            case Protocol(message, link):
                self._receive(message, link)

    def _receive(self, message: Message, link: int) -> None:
        match message:
            case Ask() | Prepare() | Accept() if self.learned is not None:
                self._answer(Chosen(self.learned), link)
            case Prepare(ballot):
                self._promise(ballot, link)
            case Promise(ballot, accepted):
                self._note_promise(ballot, accepted, link)
            case Accept(ballot, value):
                self._accept(ballot, value, link)
            case Accepted(ballot, value):
                self._note_accepted(ballot, value, link)
            case Refused(promised):
                self.highest = max(self.highest, promised[0])
            case Chosen(value):
                self._learn(value)

    def _answer(self, message: Message, link: int) -> None:
        if link == OWN:
            self._receive(message, OWN)
        else:
            self.send(message, link)

    def _tell_all(self, message: Message) -> None:
        """Send a message to all nodes, the node itself first."""
        self._receive(message, OWN)
        self.broadcast(message)

    # -- The proposer

    def _try_again(self) -> None:
        if self.learned is not None:
            return
        self.set_timer(self.patience + self.random.randrange(2 * self.patience), "patience")
        if self.proposal is None:
            self.broadcast(Ask())
            return
        self.ballot = (max(self.highest, self.promised[0]) + 1, self.id)
        self.promises = {}
        self.log(f"opens ballot {self.ballot[0]}")
        self._tell_all(Prepare(self.ballot))

    def _note_promise(self, ballot: Ballot, accepted: Vote | None, link: int) -> None:
        if ballot != self.ballot or link in self.promises:
            return
        self.promises[link] = accepted
        if len(self.promises) == self.majority:  # Those that come later change nothing any more.
            self._tell_all(Accept(self.ballot, self._value_to_propose()))

    def _value_to_propose(self) -> str:
        votes = [accepted for accepted in self.promises.values() if accepted is not None]
        assert self.proposal is not None
        return max(votes)[1] if votes else self.proposal

    # -- The acceptor

    def _promise(self, ballot: Ballot, link: int) -> None:
        if ballot > self.promised:
            self.promised = ballot
            self._answer(Promise(ballot, self.accepted), link)
        else:
            self._answer(Refused(self.promised), link)

    def _accept(self, ballot: Ballot, value: str, link: int) -> None:
        if ballot >= self.promised:
            self.promised = ballot
            self.accepted = (ballot, value)
            self._tell_all(Accepted(ballot, value))
        else:
            self._answer(Refused(self.promised), link)

    # -- The learner

    def _note_accepted(self, ballot: Ballot, value: str, link: int) -> None:
        heard = self.heard.setdefault(ballot, set())
        heard.add(link)
        if len(heard) >= self.majority:
            self._learn(value)

    def _learn(self, value: str) -> None:
        if self.learned is None:
            self.learned = value
            self.log(f"learned {value}")


# -- What must hold. The checks remember what has been; nothing of it is lost in a crash.


@always("no two nodes learn different values")
def agreement(run: Scheduler, first: dict[str, tuple[int, str]]) -> bool:
    for node in run.acted:
        if node.learned is not None:
            learner, value = first.setdefault("learned", (node.id, node.learned))
            assert node.learned == value, f"{learner} has learned {value}, and {node.id} {node.learned}"
    return True


@always("at most one value is ever accepted by a majority")
def chosen_once(run: Scheduler, accepted: dict[Vote, set[int]]) -> bool:
    """Look from outside at what acceptors accept: so it is known what is chosen before any node knows it."""
    for node in run.acted:
        if node.accepted is not None and node.id not in accepted.setdefault(node.accepted, set()):
            accepted[node.accepted].add(node.id)
            ballot, value = node.accepted
            for other_ballot, other in accepted:
                assert other_ballot != ballot or other == value, f"{other} and {value} are accepted in ballot {ballot}"
            chosen = chosen_of(run, accepted)
            others = [other for other in chosen if other != value]
            assert not others or value not in chosen, f"{others[0]} was chosen, and now {value} in ballot {ballot}"
    return True


def chosen_of(run: Scheduler, accepted: dict[Vote, set[int]]) -> list[str]:
    """Return the values that a majority has accepted."""
    return [value for (_, value), acceptors in accepted.items() if len(acceptors) > run.num_nodes // 2]


@always("what is learned was accepted by a majority")
def learned_is_chosen(run: Scheduler, accepted: dict[Vote, set[int]]) -> bool:
    chosen_once.check(run, accepted)
    for node in run.acted:
        assert node.learned is None or node.learned in chosen_of(run, accepted), f"{node.id} has learned {node.learned}"
    return True


@always("every value was proposed")
def validity(run: Scheduler) -> bool:
    for node in run.acted:
        for value in (node.learned, node.accepted and node.accepted[1]):
            assert value is None or any(value == each.proposal for each in run.nodes), f"{node.id} has got {value}"
    return True


@at_end("all nodes that are up have learned the value")
def learned(run: Scheduler) -> bool:
    if len(run.up) > run.num_nodes // 2:
        missing = [node.id for node in run.up if node.learned is None]
        assert not missing, f"{missing[0]} hasn't"
    return True


model = Algorithm(
    name="paxos",
    node=Paxos,
    topology="clique:5",
    properties=(
        agreement,
        chosen_once,
        learned_is_chosen,
        validity,
        learned,
    ),
    until="60s",
    latency="uniform(1ms, 1s)",
    faults="crash,partition,link,loss,duplication",
    least={"nodes": 1, "proposers": 1},
)
