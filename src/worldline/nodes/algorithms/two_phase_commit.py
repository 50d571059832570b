"""Two-phase commit: all do it, or none does.

Node 0 is the coordinator. In the first phase it asks all others to prepare, and each votes: yes, which is a promise to
do whatever is decided, or no. In the second phase the coordinator decides, to commit if all have voted yes and to abort
otherwise, and tells all. The coordinator has a vote as well; if that is no, it doesn't even ask.

Messages get lost and nodes crash, so votes and decisions are written into a log that survives a crash, before another
node is told of them. A node that hasn't answered is asked again, and the coordinator aborts when its patience is at an
end. It tells its decision until all have acknowledged it. If it finds after a crash that it hasn't decided, it aborts:
no node can have been told anything else, and so it needn't log that it has begun (abort is presumed). A node that has
voted no can abort at once. One that has voted yes is in doubt, and asks the coordinator again and again.

No two nodes decide differently: there is one that decides, it does so once, and what it has decided is in its log
before another can hear of it. The only others that decide by themselves have voted no, and then the coordinator can't
commit. Messages may overtake each other: late ones ask what was answered already, or tell what is known.

A node in doubt can't do anything but wait. It has promised to commit if all others are willing, and only the
coordinator knows whether they are; while the coordinator is down, all that voted yes are blocked, with whatever they
have locked. That's no shortcoming of this version but of the algorithm; consensus (Paxos, Raft) is what helps. Here
every node has decided in the end because every node recovers in the end. Let one stay down, and the run doesn't end by
itself: the others go on asking it, or telling it.

Without faults it takes 4 (n - 1) messages: prepare, vote, decision, acknowledgement.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Event, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end


class Prepare(Struct, frozen=True):
    """The coordinator wants a vote."""


class Vote(Struct, frozen=True):
    """A participant's vote; it never changes."""

    yes: bool


class Decision(Struct, frozen=True):
    """What the coordinator has decided."""

    commit: bool


class Acknowledgement(Struct, frozen=True):
    """A participant knows the decision, and has logged it."""


class Inquiry(Struct, frozen=True):
    """A participant that has voted yes wants to know what was decided."""


class TwoPhaseCommit(Node):
    """Atomic commitment: a coordinator collects votes and decides; logs survive crashes."""

    stable: ClassVar[tuple[str, ...]] = ("vote", "decision", "to_coordinator")
    shows: ClassVar[tuple[str, ...]] = ("vote", "decision")

    def __init__(self, *given: Any, yes: float = 0.9, timeout: str = "3s", patience: int = 3) -> None:
        super().__init__(*given)
        self.yes = yes
        self.timeout = timeout
        # The log
        self.vote: bool | None = None
        self.decision: bool | None = None
        self.to_coordinator: int | None = None  # A participant's link.
        # What only the coordinator has, and loses
        self.patience = patience
        # Links by which no vote has come; once it has decided, no receipt.
        self.silent = list(range(self.num_neighbors))

    def execute(self, event: Event) -> None:
        if self.id == 0:
            self._coordinate(event)
        else:
            self._participate(event)

    def cast_vote(self) -> None:
        self.vote = self.random.random() < self.yes
        self.log(f"votes {'yes' if self.vote else 'no'}")

    def decide(self, commit: bool) -> None:
        if self.decision is None:
            self.decision = commit
            self.log("commits" if commit else "aborts")

    # -- The coordinator

    def _coordinate(self, event: Event) -> None:
        match event:
            case Start():
                if self.num_neighbors != self.num_nodes - 1:
                    raise ConfigurationError(
                        "the coordinator needs a link to every node", advice=f"use star:{self.num_nodes} or a clique"
                    )
                self.cast_vote()
                if not self.vote:
                    self._conclude(commit=False)
                else:
                    self._ask_for_votes()
            case Recover():
                self._conclude(commit=bool(self.decision))
            case Timer():
                self._tell_again()
            case Protocol(Vote(yes), link):
                self.count_vote(yes, link)
            case Protocol(Acknowledgement(), link) if link in self.silent:
                self.silent.remove(link)
                if not self.silent:
                    self.cancel_timer()
            case Protocol(Inquiry(), link) if self.decision is not None:
                self.send(Decision(self.decision), link)

    def count_vote(self, yes: bool, link: int) -> None:
        if self.decision is not None:
            return  # Too late to matter: who has voted is told the decision.
        if not yes:
            self._conclude(commit=False)
        elif link in self.silent:
            self.silent.remove(link)
            self._commit_if_unanimous()

    def _commit_if_unanimous(self) -> None:
        if not self.silent:
            self._conclude(commit=True)

    def _ask_for_votes(self) -> None:
        self._send_to_silent(Prepare())
        self._commit_if_unanimous()  # There may be no other node.

    def _conclude(self, *, commit: bool) -> None:
        self.decide(commit)
        self.silent = list(range(self.num_neighbors))
        self._send_to_silent(Decision(commit))

    def _tell_again(self) -> None:
        """Do what time brings: ask again, lose patience, tell the decision again."""
        if self.decision is not None:
            self._send_to_silent(Decision(self.decision))
        elif self.patience > 1:
            self.patience -= 1
            self._send_to_silent(Prepare())
        else:
            self.on_timeout()

    def on_timeout(self) -> None:
        self.log("has waited long enough")
        self._conclude(commit=False)

    def _send_to_silent(self, message: Prepare | Decision) -> None:
        for link in self.silent:
            self.send(message, link)
        if self.silent:
            self.set_timer(self.timeout)

    # -- A participant

    def _participate(self, event: Event) -> None:
        match event:
            case Protocol(Prepare(), link):
                self.to_coordinator = link
                self.prepare()
                self.send(Vote(bool(self.vote)), link)
                self._ask_later()
            case Protocol(Decision(commit), link):
                self.decide(commit)
                self.cancel_timer()
                self.send(Acknowledgement(), link)
            case Timer() | Recover():
                self.ask()

    def prepare(self) -> None:
        """Vote, unless that's done; or the decision is known, because it has overtaken the question."""
        if self.vote is None and self.decision is None:
            self.cast_vote()
            if not self.vote:
                self.decide(commit=False)

    def ask(self) -> None:
        """Ask for the decision, as long as the node is in doubt."""
        if self.decision is None and self.to_coordinator is not None:
            self.log("is in doubt")
            self.send(Inquiry(), self.to_coordinator)
            self._ask_later()

    def _ask_later(self) -> None:
        if self.decision is None:
            self.set_timer(self.timeout)


@always("a decision never changes")
def standing(run: Scheduler, decisions: dict[int, bool]) -> bool:
    """Compare a decision with the one before, which a crash mustn't wipe out either."""
    for node in run.acted:
        before = decisions.get(node.id)
        assert before is None or node.decision is before, f"{node.id} decided {before}, and now {node.decision}"
        if node.decision is not None:
            decisions[node.id] = node.decision
    return True


@always("no node has committed while another has aborted")
def unanimous(run: Scheduler, first: dict[str, tuple[int, bool]]) -> bool:
    """Compare all decisions with the first one, whatever becomes of its node."""
    for node in run.acted:
        if node.decision is not None:
            earlier, decision = first.setdefault("decision", (node.id, node.decision))
            assert node.decision is decision, (
                f"{earlier} has {_done(decision)} and {node.id} has {_done(node.decision)}"
            )
    return True


def _done(decision: bool) -> str:
    return "committed" if decision else "aborted"


@always("no node commits unless all have voted yes")
def willing(run: Scheduler) -> bool:
    if any(node.decision for node in run.acted):
        for node in run.nodes:
            assert node.vote, f"{node.id} has voted {'no' if node.vote is False else 'neither yes nor no'}"
    return True


@at_end("all nodes have decided")
def decided(run: Scheduler) -> bool:
    for node in run.nodes:
        assert node.decision is not None, f"{node.id} hasn't"
    return True


model = Algorithm(
    name="two-phase-commit",
    node=TwoPhaseCommit,
    topology="star:5",
    properties=(unanimous, standing, willing, decided),
    faults="crash,partition,link,loss,duplication",
    least={"nodes": 1, "patience": 1},
)
