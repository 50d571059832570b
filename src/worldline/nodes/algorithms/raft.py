"""Raft: a replicated log, led by one node at a time.

Time is cut into terms, which are numbered. In each term there is at most one leader, and all that happens to the log
comes from leaders. Every other node is a follower, and becomes a candidate if it hasn't heard of a leader for a while,
which is drawn anew each time: it begins the next term, votes for itself and asks the others for their votes. A node
votes once per term, and only for candidates whose log is at least as good as its own: a later term in its last entry,
or the same one and at least as many entries. The candidate with the votes of a majority leads.

A leader appends commands to its log and sends the others, with every heartbeat, the entries that they may not have,
along with index and term of the entry before them. A follower that hasn't got that very entry refuses, and says how far
the leader should go back; otherwise it replaces what contradicts the new entries. An entry that has reached a majority
is committed, and every node applies it as soon as it is told. A leader counts only entries of its own term: older ones
could still be replaced, even if a majority has them, and are committed along with a later entry.

That's why it is correct: any two majorities have a node in common. So no term has two leaders, and every leader has
been voted for by a node that has all the committed entries, whose log wasn't better than the leader's own.

Term, vote and log are stable; the rest is lost in a crash and told by the next leader. Messages may get lost, overtake
each other and come twice. Nothing happens without a majority that reaches each other, and the timeouts should be much
longer than messages take, otherwise leaders don't last; what they have done stays all the same. A heartbeat takes a
message and an answer per follower. Every node must be a neighbor of every other. Nodes are known by the links that lead
to them; only the candidate a node has voted for must be known beyond a crash, so candidates give their ids.

What clients would ask for, leaders invent: a command with every heartbeat, until the log has `commands` entries. Then
it is done, but for one entry that each new leader needs to commit those of its predecessors.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from worldline.model.time import SECOND
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_clique, demand_duration
from worldline.nodes.node import Event, NeighborAdded, NeighborRemoved, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end, eventually

Entry = tuple[int, str]
"""The term of the leader that made it, and a command."""

Log = tuple[Entry, ...]
"""Entry number i stands at place i: there is one in front of the first that all logs have in common."""

EMPTY: Log = ((0, ""),)


class RequestVote(Struct, frozen=True, gc=False):
    """A candidate asks for a vote; it says what its last entry is."""

    term: int
    candidate: int
    last_index: int
    last_term: int


class Vote(Struct, frozen=True, gc=False):
    """The answer of a node that is in this term."""

    term: int
    granted: bool


class AppendEntries(Struct, frozen=True, gc=False):
    """A leader's heartbeat: the entries after a certain one, and how much is committed."""

    term: int
    previous_index: int
    previous_term: int
    entries: Log
    committed: int


class Appended(Struct, frozen=True, gc=False):
    """The answer: up to where the log is the leader's now; or, if it can't tell, up to where it might be."""

    term: int
    success: bool
    index: int


class Raft(Node):
    """Consensus on a log: an elected leader replicates its entries, and what is committed stays."""

    stable = ("current_term", "voted_for", "entries")
    shows = ("role", "current_term", "voted_for", "commit_index")

    def __init__(self, *given: Any, commands: int = 100, heartbeat: str = "75ms", timeout: str = "150ms") -> None:
        """`timeout` is how long followers wait for a heartbeat at least; it is up to twice that."""
        super().__init__(*given)
        self.commands = commands
        demand_clique(self)
        self.heartbeat = demand_duration(heartbeat, "a heartbeat")
        self.timeout = demand_duration(timeout, "a timeout")
        self.majority = self.num_nodes // 2 + 1
        self.current_term = 0
        self.voted_for: int | None = None
        self.entries = EMPTY
        self.role: Literal["follower", "candidate", "leader"] = "follower"
        self.commit_index = 0
        self.applied: list[str] = []
        self.applied_at: list[int] = []  # Times, for those who look at the run.
        self.votes: set[int] = set()  # A candidate's, by the link that they came in by.
        self.next_index: dict[int, int] = {}  # A leader's, by link: from where on entries are sent,
        self.match_index: dict[int, int] = {}  # and up to where they are known to be there.

    def execute(self, event: Event) -> None:
        match event:
            case Protocol(message, link):
                self._receive(message, link)
            case Start() | Recover():
                self._wait_for_leader()
            case Timer("election"):
                self._stand_for_election()
            case Timer("heartbeat"):
                if self.role == "leader":
                    self._make_command()
                    self._replicate()
            case NeighborAdded(link):
                self.next_index[link] = len(self.entries)
                self.match_index[link] = 0
            case NeighborRemoved(link):  # Its node may come back over another link, and must not count twice.
                self.match_index.pop(link, None)

    def _receive(self, message: AppendEntries | Appended | RequestVote | Vote, link: int) -> None:
        if message.term > self.current_term:
            self._enter(message.term)
        match message:
            case AppendEntries():
                self.send(self._answer_to_entries(message), link)
            case Appended():
                if self.role == "leader" and message.term == self.current_term:
                    self._note_progress(message, link)
            case RequestVote():
                self.send(Vote(self.current_term, self._grants(message)), link)
            case Vote(term, granted):
                if self.role == "candidate" and term == self.current_term and granted:
                    self.votes.add(link)
                    self._lead_if_elected()

    # -- Terms and elections

    def _enter(self, term: int) -> None:
        """Follow the leader of a later term."""
        if self.role == "leader":
            self.log(f"leads no more, in term {term}")
            self.cancel_timer("heartbeat")
            self._wait_for_leader()
        self.current_term = term
        self.voted_for = None
        self.role = "follower"

    def _wait_for_leader(self) -> None:
        self.set_timer(self.timeout + self.random.randrange(self.timeout), "election")

    def _stand_for_election(self) -> None:
        self._enter(self.current_term + 1)
        self.role = "candidate"
        self.voted_for = self.id
        self.votes.clear()
        self._wait_for_leader()
        self.broadcast(RequestVote(self.current_term, self.id, len(self.entries) - 1, self.entries[-1][0]))
        self._lead_if_elected()

    def _grants(self, request: RequestVote) -> bool:
        """Decide on a vote; the candidate that gets it also gets the time to win the election."""
        if request.term < self.current_term or self.voted_for not in (None, request.candidate):
            return False
        if not self._is_as_good(request):
            return False
        self.voted_for = request.candidate
        self._wait_for_leader()
        return True

    def _is_as_good(self, request: RequestVote) -> bool:
        """Whether a candidate's log has all the entries that can be committed as far as this node knows."""
        return (request.last_term, request.last_index) >= (self.entries[-1][0], len(self.entries) - 1)

    def _lead_if_elected(self) -> None:
        if len(self.votes) + 1 < self.majority:
            return
        self.role = "leader"
        self.log(f"leads in term {self.current_term}")
        self.cancel_timer("election")
        self.next_index = dict.fromkeys(range(self.num_neighbors), len(self.entries))
        self.match_index = dict.fromkeys(range(self.num_neighbors), 0)
        self._replicate()

    # -- What a leader does

    def _make_command(self) -> None:
        """Append an entry; one of its own term is needed in any case to commit those before it."""
        if len(self.entries) <= self.commands or self.entries[-1][0] < self.current_term:
            command = f"{self.current_term}.{self.id}.{len(self.entries)}"
            self.entries = (*self.entries, (self.current_term, command))
            self._commit_what_majority_has()

    def _replicate(self) -> None:
        self.set_timer(self.heartbeat, "heartbeat")
        made: dict[int, AppendEntries] = {}
        for link in self.links:
            start = self.next_index[link]
            if start not in made:
                made[start] = self._entries_from(start)
            self.send(made[start], link)

    def _entries_from(self, start: int) -> AppendEntries:
        entries = self.entries
        return AppendEntries(self.current_term, start - 1, entries[start - 1][0], entries[start:], self.commit_index)

    def _note_progress(self, answer: Appended, link: int) -> None:
        """Learn what a follower has; answers come late and in any order, so what is known is never taken back."""
        known = self.match_index[link]
        if not answer.success:
            start = max(known, answer.index) + 1
            if start < self.next_index[link]:
                self.next_index[link] = start
                self.send(self._entries_from(start), link)
        elif answer.index > known:
            self.match_index[link] = answer.index
            self.next_index[link] = answer.index + 1
            if answer.index > self.commit_index:
                self._commit_what_majority_has()

    def _commit_what_majority_has(self) -> None:
        everywhere = sorted((*self.match_index.values(), len(self.entries) - 1), reverse=True)
        reached = everywhere[self.majority - 1] if len(everywhere) >= self.majority else 0
        if self._may_be_counted(reached):
            self._commit(reached)

    def _may_be_counted(self, index: int) -> bool:
        return self.entries[index][0] == self.current_term

    # -- What a follower does

    def _answer_to_entries(self, message: AppendEntries) -> Appended:
        if message.term < self.current_term:
            return Appended(self.current_term, False, 0)
        self.role = "follower"
        self._wait_for_leader()
        if not self._has(message.previous_index, message.previous_term):
            return Appended(self.current_term, False, self._index_before_conflict(message.previous_index))
        self._store(message.previous_index, message.entries)
        last = message.previous_index + len(message.entries)
        self._commit(min(message.committed, last))
        return Appended(self.current_term, True, last)

    def _has(self, index: int, term: int) -> bool:
        return index < len(self.entries) and self.entries[index][0] == term

    def _index_before_conflict(self, index: int) -> int:
        """Return where the leader may have the same entry: before the term whose entry isn't the leader's."""
        if index >= len(self.entries):
            return len(self.entries) - 1
        term = self.entries[index][0]
        while self.entries[index][0] == term:
            index -= 1
        return index

    def _store(self, previous: int, entries: Log) -> None:
        """Take over entries from the first on that isn't there; an old message must not take away newer ones."""
        log = self.entries
        for place, (term, _) in enumerate(entries):
            index = previous + 1 + place
            if index >= len(log) or log[index][0] != term:
                self.entries = log[:index] + entries[place:]
                return

    def _commit(self, index: int) -> None:
        if index > self.commit_index:
            newly = [command for _, command in self.entries[self.commit_index + 1 : index + 1]]
            self.applied += newly
            self.applied_at += [self.now] * len(newly)
            self.commit_index = index


# -- What must hold. The checks remember what has been; nothing of it is lost in a crash.


@always("at most one node leads in a term")
def election_safety(run: Scheduler, leaders: dict[int, int]) -> bool:
    for node in run.acted:
        if node.role == "leader":
            leader = leaders.setdefault(node.current_term, node.id)
            assert leader == node.id, f"{leader} and {node.id} have led in term {node.current_term}"
    return True


@always("a leader only appends to its log")
def leader_append_only(run: Scheduler, logs: dict[int, tuple[int, Log]]) -> bool:
    """Compare a leader's log with the one that it had in this term before."""
    for node in run.acted:
        if node.role == "leader":
            term, log = logs.get(node.id, (0, EMPTY))
            if node.entries is not log:
                assert term != node.current_term or node.entries[: len(log)] == log, (
                    f"{node.id} has changed its log while leading in term {term}"
                )
            logs[node.id] = node.current_term, node.entries
    return True


class LogMatching:
    """Entries of the same index and term are the same wherever they are, and so are all before them.

    It is enough to look at the entry right before: if its term is the same, then so is what comes before that.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[str, int]] = {}  # By index and term: the command, and the term before.
        self.logs: dict[int, Log] = {}

    def __call__(self, run: Scheduler) -> bool:
        for node in run.acted:
            log, before = node.entries, self.logs.get(node.id, EMPTY)
            if log is not before:
                start = len(before) if log[: len(before)] == before else 1
                for index in range(start, len(log)):
                    term, command = log[index]
                    fact = (command, log[index - 1][0])
                    assert self.known.setdefault((index, term), fact) == fact, (
                        f"{node.id} has another entry {index} of term {term}, or another one before it"
                    )
                self.logs[node.id] = log
        return True


class LeaderCompleteness:
    """What is committed in a term is in the logs of the leaders of all later terms."""

    def __init__(self) -> None:
        self.committed: list[tuple[Entry, int]] = [(EMPTY[0], 0)]  # By index: the entry, and the term it was done in.
        self.leaders: dict[int, Log] = {}  # By term: the log as it was when the term's leader was elected.

    def __call__(self, run: Scheduler) -> bool:
        for node in run.acted:
            if node.role == "leader" and node.current_term not in self.leaders:
                self.leaders[node.current_term] = node.entries
                for index in range(1, len(self.committed)):
                    self._compare(index, node.current_term)
            for index in range(len(self.committed), node.commit_index + 1):
                self.committed.append((node.entries[index], node.current_term))
                for term in self.leaders:
                    self._compare(index, term)
        return True

    def _compare(self, index: int, term: int) -> None:
        entry, committed_in = self.committed[index]
        if term > committed_in:
            log = self.leaders[term]
            assert index < len(log) and log[index] == entry, (  # noqa: PT018
                f"entry {index} is committed in term {committed_in}, and the leader of term {term} doesn't have it"
            )


class StateMachineSafety:
    """No two nodes ever apply different commands at the same index."""

    def __init__(self) -> None:
        self.applied: list[tuple[str, int]] = []  # The commands, and who was the first to apply each.
        self.seen: dict[int, int] = {}  # By node: how many of its commands have been looked at.

    def __call__(self, run: Scheduler) -> bool:
        for node in run.acted:
            seen, number = self.seen.get(node.id, 0), len(node.applied)
            if seen != number:
                for place in range(seen if seen < number else 0, number):
                    self._compare(place, node)
                self.seen[node.id] = number
        return True

    def _compare(self, place: int, node: Raft) -> None:
        if place == len(self.applied):
            self.applied.append((node.applied[place], node.id))
        command, first = self.applied[place]
        assert node.applied[place] == command, (
            f"{first} has applied {command} as number {place + 1}, and {node.id} {node.applied[place]}"
        )


@eventually("there is a leader")
def somebody_leads(run: Scheduler) -> bool:
    return any(node.role == "leader" for node in run.acted)


_LONG_RUN = 4 * SECOND
"""From here on, the last part of a run has time for several elections."""


@at_end("all nodes that are up have applied what was applied anywhere before the last part of the run")
def caught_up(run: Scheduler) -> bool:
    """Faults that are drawn are over when the last three tenths begin."""
    if run.now < _LONG_RUN or len(run.up) <= run.num_nodes // 2:
        return True
    calm = run.now // 10 * 7
    old = max((node.applied[: sum(at <= calm for at in node.applied_at)] for node in run.up), key=len)
    for node in run.up:
        assert node.applied, f"{node.id} has applied nothing"
        assert node.applied[: len(old)] == old, (
            f"{node.id} has applied {len(node.applied)} commands, not all {len(old)}"
        )
    return True


model = Algorithm(
    name="raft",
    node=Raft,
    topology="clique:5",
    properties=(
        election_safety,
        leader_append_only,
        always("logs that have an entry in common are the same up to it")(LogMatching),
        always("what is committed is in the logs of all later leaders")(LeaderCompleteness),
        always("no two nodes apply different commands at the same index")(StateMachineSafety),
        somebody_leads,
        caught_up,
    ),
    until="10s",
    latency="uniform(1ms, 20ms)",
    faults="crash,partition,link,loss,duplication",
    least={"nodes": 1, "commands": 1},
)
