"""Two-phase commit under crashes and losses, and that its properties notice when it is wrong."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.nodes.trying import noticed, tried
from worldline.model.time import SECOND
from worldline.nodes import Scheduler, fault
from worldline.nodes.algorithms.two_phase_commit import TwoPhaseCommit, model
from worldline.nodes.faults import parse_kinds

FAULTS = parse_kinds(model.faults)
ROUGH = parse_kinds("crash,loss")


def decisions(run: Scheduler) -> list[bool | None]:
    return [node.decision for node in run.nodes]


@pytest.mark.parametrize(("topology", "seeds"), [("star:1", 2), ("star:2", 10), ("star:5", 60), ("clique:4", 20)])
def test_all_or_nobody_whatever_happens(topology: str, seeds: int) -> None:
    for seed in range(seeds):
        tried(model, seed, topology, kinds=FAULTS)


def test_more_than_it_is_used_to() -> None:
    outcomes = [
        decisions(tried(model, seed, kinds=parse_kinds("crash=5,loss=0.3"), parameters={"yes": 1.0}))
        for seed in range(40)
    ]
    assert [True] * 5 in outcomes
    assert [False] * 5 in outcomes


def test_without_faults_it_commits_if_all_want_to() -> None:
    for seed in range(10):
        run = tried(model, seed, parameters={"yes": 1.0})
        assert decisions(run) == [True] * 5
        assert run.result().events == 5 + 4 * 4  # Starts, and four messages for each participant.


def test_one_no_is_enough() -> None:
    seen = 0
    for seed in range(30):
        run = tried(model, seed, parameters={"yes": 0.7})
        votes = [node.vote for node in run.nodes]
        assert decisions(run) == [all(votes)] * 5
        seen += votes.count(False) == 1
    assert seen


def test_it_goes_on_where_messages_get_lost() -> None:
    """Without patience every lost vote would mean that all abort."""
    committed = [
        tried(model, seed, kinds={"loss": 0.1}, parameters={"yes": 1.0}).node(0).decision for seed in range(20)
    ]
    assert sum(committed) >= 18


def test_who_has_promised_is_blocked_while_the_coordinator_is_down() -> None:
    """It has asked for votes, crashes before the first comes in, and is back after a minute, when it aborts."""
    faults = (fault(1, "crash", 0), fault("1min", "recover", 0))
    parameters = {"yes": 1.0}
    unfinished = structs.replace(model, properties=model.properties[:3])
    run = tried(unfinished, 0, faults=faults, parameters=parameters, until=59 * SECOND)
    assert [node.vote for node in run.nodes] == [True] * 5
    assert decisions(run) == [None] * 5
    assert decisions(tried(model, 0, faults=faults, parameters=parameters)) == [False] * 5


def test_a_decision_outlives_the_coordinator() -> None:
    """It crashes when it has decided and nobody knows: whenever it comes back, it knows."""
    run = tried(
        model,
        0,
        latency="1s",
        parameters={"yes": 1.0},
        faults=(
            fault("2001ms", "crash", 0),
            fault("2002ms", "crash", 3),
            fault("1min", "recover", 0),
            fault("2min", "recover", 3),
        ),
    )
    assert decisions(run) == [True] * 5
    assert run.now > 120 * SECOND


def test_a_decision_may_overtake_the_question() -> None:
    """Somewhere among these, a participant hears of the abort first, and is asked then."""
    late = 0
    for seed in range(60):
        run = tried(model, seed, parameters={"yes": 0.5})
        late += any(node.vote is None for node in run.nodes[1:] if run.node(0).vote)
    assert late


# -- Properties can fail


class WithoutLog(TwoPhaseCommit):
    """Forgets what it has decided."""

    stable = ("vote", "to_coordinator")


class Decisive(TwoPhaseCommit):
    """Takes silence for consent."""

    def on_timeout(self) -> None:
        self._conclude(commit=True)


class Democratic(TwoPhaseCommit):
    """Commits although somebody has voted no."""

    def count_vote(self, yes: bool, link: int) -> None:
        super().count_vote(True, link)


class Independent(TwoPhaseCommit):
    """Aborts when it has waited long enough, although it has promised to commit."""

    def ask(self) -> None:
        self.decide(commit=False)


class Taciturn(TwoPhaseCommit):
    """Says everything once, and doesn't ask."""

    def _tell_again(self) -> None:
        self.log("has said what it had to say")

    def ask(self) -> None:
        self.log("doesn't ask")


@pytest.mark.parametrize(
    ("node", "seed", "text", "reason"),
    [
        (Independent, 23, "no node has committed while another has aborted", "1 has aborted and 0 has committed"),
        (WithoutLog, 12, "no node has committed while another has aborted", "has committed and 0 has aborted"),
        (WithoutLog, 12, "a decision never changes", "decided True, and now False"),
        (Decisive, 253, "no node commits unless all have voted yes", "has voted neither yes nor no"),
        (Democratic, 0, "no node commits unless all have voted yes", "has voted no"),
        (Taciturn, 0, "all nodes have decided", ". hasn't"),
    ],
)
def test_properties_notice(node: type[TwoPhaseCommit], seed: int, text: str, reason: str) -> None:
    noticed(model, node, text, f"property failed: {text}: .*{reason}", [seed], kinds=ROUGH)
