"""Shrinking: what is left fails in the same way, can happen, and nothing in it can be left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from worldline.model.errors import ModelError, Stuck, UsageError
from worldline.nodes import Node, Violation, always, at_end
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.faults import are_milder, as_fault
from worldline.nodes.node import Event, LinkUp, Protocol, Recover, Send, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.shrinking import in_words, shrink
from worldline.nodes.trace import Script, text_of
from worldline.nodes.trial import Trial, load, save, search
from worldline.search.day import USUAL_DAY
from worldline.search.shrinking import Shrunk as ShrunkTrial

Shrunk = ShrunkTrial[Trial]

# --- Algorithms with bugs ---


class Hasty(Node):
    """Node 0 counts aloud; the others believe that what is said first is heard first."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send, *, count: int = 3) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.count = count
        self.heard: list[int] = []

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == 0:
                for number in range(self.count):
                    self.broadcast(number)
            case Protocol(number, _):
                self.heard.append(number)


@always("numbers come in order")
def in_order(run: Scheduler) -> bool:
    return all(node.heard == sorted(node.heard) for node in run.nodes)


HASTY = Algorithm(name="hasty", node=Hasty, topology="clique:5", properties=(in_order,), least={"count": 1})


class Forgetful(Node):
    """Promises are kept where a crash takes them."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.promised = 0

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                self.set_timer("1s")
            case Timer():
                self.broadcast("promise")
                self.set_timer("1s")
            case Protocol():
                self.promised += 1


@always("promises are kept")
def kept(run: Scheduler, before: dict[int, int]) -> bool:
    if run.last is None:
        return True
    promised = run.node(run.last).promised
    was, before[run.last] = before.get(run.last, 0), promised
    return bool(promised >= was)


FORGETFUL = Algorithm(
    name="forgetful",
    node=Forgetful,
    topology="clique:4",
    properties=(kept,),
    until="10s",
)


class Trusting(Node):
    """Sends once, and takes for granted that it arrives."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.heard: list[int] = []

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast("hello")
            case Protocol(_, link):
                self.heard.append(link)


@at_end("everybody hears everybody")
def all_heard(run: Scheduler) -> bool:
    return all(len(node.heard) == node.num_neighbors for node in run.nodes)


TRUSTING = Algorithm(name="trusting", node=Trusting, topology="clique:4", properties=(all_heard,))


class Late(Trusting):
    """Says hello after a second; it knows that links can go down, but says nothing again when they are up."""

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.set_timer("1s")
            case Timer():
                self.broadcast("hello")
            case LinkUp():
                self.log("up again")
            case Protocol(_, link):
                self.heard.append(link)


LATE = Algorithm(name="late", node=Late, topology="line:2", properties=(all_heard,), until="5s")


class Coincidence(Node):
    """Fails if the first word of 1 comes late and the second word of 2 comes early, both."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.heard: dict[tuple[int, int], int] = {}

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id:
                for word in range(3):
                    self.send((self.id, word), 0)
            case Protocol(message, _):
                self.heard[message] = self.now


@always("no coincidence")
def no_coincidence(run: Scheduler) -> bool:
    heard = run.node(0).heard
    return not (heard.get((1, 0), 0) > 750_000_000 and heard.get((2, 1), 10**9) < 250_000_000)


COINCIDENCE = Algorithm(name="coincidence", node=Coincidence, topology="star:4", properties=(no_coincidence,))


class Demanding(Node):
    """Fails only with enough nodes and a large enough parameter."""

    def __init__(
        self,
        num_nodes: int,
        id: int,  # noqa: A002
        num_neighbors: int,
        send: Send,
        *,
        size: int = 6,
        is_loud: bool = True,
        name: str = "x",
    ) -> None:
        super().__init__(num_nodes, id, num_neighbors, send)
        self.fails = num_nodes >= 4 and size >= 3 and is_loud and name == "x"

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.broadcast("x")


@at_end("it is modest")
def modest(run: Scheduler) -> bool:
    return not run.node(0).fails


DEMANDING = Algorithm(
    name="demanding", node=Demanding, topology="ring:7", properties=(modest,), least={"nodes": 1, "size": 1}
)


class Patient(Node):
    """Gives up: at once if there are five nodes, otherwise after a hundred rounds."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rounds = 3 if self.num_nodes >= 5 else 100
        self.gave_up = False

    def execute(self, event: Event) -> None:
        if isinstance(event, Start | Timer):
            self.rounds -= 1
            self.gave_up = self.rounds == 0
            self.broadcast("x")
            if self.rounds:
                self.set_timer("1s")


@always("nobody gives up")
def persistent(run: Scheduler) -> bool:
    return not any(node.gave_up for node in run.nodes)


PATIENT = Algorithm(
    name="patient", node=Patient, topology="ring:5", properties=(persistent,), latency="1ms", least={"nodes": 2}
)


class Rounds(Node):
    """Asks in rounds; an answer that is late is noticed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rounds = 0
        self.is_late = False

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Timer("next") if self.id == 0 and self.rounds < 12:
                self.rounds += 1
                self.set_timer("1s", "next")
                self.set_timer("450ms", "late")
                self.broadcast("ask")
            case Timer("late"):
                self.is_late = True
            case Protocol("ask", link):
                self.send("answer", link)
            case Protocol("answer"):
                self.cancel_timer("late")


@always("answers come in time")
def in_time(run: Scheduler) -> bool:
    return not run.node(0).is_late


ROUNDS = Algorithm(
    name="rounds",
    node=Rounds,
    topology="line:2",
    properties=(in_time,),
    latency="uniform(1ms, 400ms)",
    least={"nodes": 2},
)


class Raises(Hasty):
    """Raises when numbers come out of order; with less than three nodes, it raises something else at once."""

    def execute(self, event: Event) -> None:
        if self.num_nodes < 3:
            raise LookupError("I need two others")
        super().execute(event)
        if self.heard != sorted(self.heard):
            raise ValueError("out of order")


class Chatty(Hasty):
    """Goes on for ever once a number has come too early."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if self.heard != sorted(self.heard):
            self.heard = [1, 0]
            self.broadcast(0)


def failing(trial: Trial, seeds: int = 200) -> Trial:
    """Return the trial with the first seed, from its own on, on which it fails."""
    found = search(trial, range(trial.seed, trial.seed + seeds)).failure
    assert found is not None
    return trial.with_seed(found.seed)


CASES: dict[str, Trial] = {
    "order": Trial(algorithm=HASTY),
    "order, more of them": Trial(algorithm=HASTY, topology="ring:4", parameters={"count": 5}),
    "crash": Trial(algorithm=FORGETFUL, kinds={"crash": 3}),
    "crash, and more": Trial(algorithm=FORGETFUL, kinds={"crash": 2, "partition": 2, "link": 2, "loss": 0.1}),
    "loss": Trial(algorithm=TRUSTING, kinds={"loss": 0.1}),
    "two messages": Trial(algorithm=COINCIDENCE),
    "two messages in order": Trial(algorithm=COINCIDENCE, fifo=True, seed=270),
    "parameter": Trial(algorithm=DEMANDING),
    "written down": Trial(
        algorithm=FORGETFUL,
        topology="grid:2x2",
        faults=tuple(map(as_fault, ("1s down 0 1", "2s up 0 1", "3700ms crash 2", "4100ms recover 2", "5s crash 3"))),
    ),
    "narrow latency": Trial(algorithm=HASTY, latency="uniform(7ms, 7003us)"),
    "exception": Trial(algorithm=Algorithm(name="raises", node=Raises, topology="clique:3")),
}


@cache
def shrunk_case(name: str) -> tuple[Trial, Shrunk]:
    trial = failing(CASES[name])
    return trial, shrink(trial)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Trial, Shrunk]:
    return shrunk_case(request.param)


def sign(failure: BaseException | None) -> str:
    """Say which failure it is."""
    if isinstance(failure, Violation):
        return str(failure.facts["property"])
    return type(failure).__name__


def with_less(trial: Trial) -> Iterator[Trial]:
    """Yield the trial without one of the faults, or without one of the messages that are named."""
    for place in range(len(trial.faults)):
        yield structs.replace(trial, faults=trial.faults[:place] + trial.faults[place + 1 :])
    assert trial.script is not None
    for message in trial.script.exceptions:
        rest = {other: delays for other, delays in trial.script.exceptions.items() if other != message}
        yield structs.replace(trial, script=Script(trial.script.usual[0], rest))


def traced(trial: Trial) -> Scheduler:
    run = trial.scheduler(trace=True)
    with pytest.raises(ModelError):
        run.run(trial.end(), events_max=trial.events_max)
    return run


# --- What holds for all of them ---


def test_it_fails_in_the_same_way(case: tuple[Trial, Shrunk]) -> None:
    before, shrunk = case
    assert sign(shrunk.trial.run().failure) == sign(shrunk.failure) == sign(before.run().failure)
    assert str(shrunk.trial.run().failure) == str(shrunk.failure)


def test_nothing_can_be_left_out_unless_it_gets_longer(case: tuple[Trial, Shrunk]) -> None:
    _, shrunk = case
    for less in with_less(shrunk.trial):
        assert sign(less.run().failure) != sign(shrunk.failure) or less.measured()[1] > shrunk.records_before


def test_there_is_less_of_it(case: tuple[Trial, Shrunk]) -> None:
    before, shrunk = case
    assert shrunk.left <= shrunk.drawn
    assert shrunk.records_before == len(traced(before).records)
    assert len(shrunk.records) <= shrunk.records_before
    assert shrunk.records == traced(shrunk.trial).records
    assert 0 < shrunk.runs <= 5_000


def test_it_is_no_longer_to_read_and_nothing_is_amiss_that_was_not(case: tuple[Trial, Shrunk]) -> None:
    before, shrunk = case
    found = before.run().failure
    assert found is not None
    assert len(shrunk.records) <= shrunk.records_before or (shrunk.failure.at or 0) <= (found.at or 0)
    assert are_milder(shrunk.trial.faults, before.pinned().faults)


@pytest.mark.parametrize("seed", [40, 60, 80])
def test_fewer_nodes_have_no_other_faults(seed: int) -> None:
    trial = failing(Trial(algorithm=FORGETFUL, kinds={"crash": 1}, seed=seed, day=USUAL_DAY))
    assert are_milder(shrink(trial).trial.faults, trial.pinned().faults)


@pytest.mark.long
def test_what_takes_longer_to_read_is_no_shrunk_form() -> None:
    """With fewer nodes it fails as well, but only after a long quiet time with many messages."""
    trial = Trial(algorithm=PATIENT)
    shrunk = shrink(trial, runs_max=300)
    assert shrunk.trial.graph().num_nodes == 5
    assert len(shrunk.records) <= shrunk.records_before


def test_it_happens_to_an_earlier_message() -> None:
    """The message that is late may be any of eight, so it is the first."""
    late = {(0, 1, 7): (390_000_000,)}
    shrunk = shrink(Trial(algorithm=ROUNDS, script=Script(200_000_000, late)))
    assert shrunk.trial.script is not None
    assert list(shrunk.trial.script.exceptions) == [(0, 1, 0)]
    assert len(shrunk.records) < shrunk.records_before


def test_it_can_happen(case: tuple[Trial, Shrunk]) -> None:
    """What a message takes is what the links allow, and none gets lost where links lose nothing."""
    before, shrunk = case
    latency, script = before.link().latency, shrunk.trial.script
    assert script is not None
    assert latency.minimum <= script.usual[0] <= latency.maximum
    for delays in script.exceptions.values():
        assert delays or "loss" in before.kinds
        assert all(latency.minimum <= delay <= latency.maximum for delay in delays)
    for record in traced(shrunk.trial).records:
        if record.kind == "sent" and record.reason in ("", "lost"):
            assert record.arrivals or "loss" in before.kinds
            assert all(latency.minimum <= at - record.at <= latency.maximum for at in record.arrivals)


def test_messages_overtake_each_other_only_where_they_may(case: tuple[Trial, Shrunk]) -> None:
    before, shrunk = case
    if not before.link().fifo:
        return
    last: dict[tuple[Any, Any], int] = {}
    for record in traced(shrunk.trial).records:
        if record.kind == "sent" and record.arrivals:
            way = record.node, record.peer
            assert record.arrivals[0] >= last.get(way, 0)
            last[way] = record.arrivals[0]


@pytest.mark.parametrize("name", ["order", "crash, and more", "two messages in order"])
def test_it_is_the_same_every_time(name: str) -> None:
    before, shrunk = shrunk_case(name)
    again = shrink(before)
    assert again.text() == shrunk.text()
    assert (again.runs, again.drawn, again.left) == (shrunk.runs, shrunk.drawn, shrunk.left)
    assert again.records == shrunk.records


def test_a_saved_one_fails_as_it_did(case: tuple[Trial, Shrunk], tmp_path: Path) -> None:
    _, shrunk = case
    file = tmp_path / "own.py"
    file.write_text(
        "from tests.nodes.test_shrinking import CASES\n"
        f"model = next(\n    trial.algorithm for trial in CASES.values()"
        f" if trial.algorithm.name == {shrunk.trial.algorithm.name!r}\n)\n"
    )
    save(shrunk.trial, tmp_path / "it.json", file=file)
    loaded, _ = load(tmp_path / "it.json", file)
    here, there = traced(shrunk.trial), traced(loaded)
    assert text_of(here.records, times=True) == text_of(there.records, times=True)
    assert here.digest == there.digest
    assert str(loaded.run().failure) == str(shrunk.failure)


# --- What comes of some ---


def shrunk_of(name: str) -> Shrunk:
    return shrunk_case(name)[1]


def test_reordering_takes_one_message() -> None:
    shrunk = shrunk_of("order")
    assert shrunk.text().splitlines() == [
        "2 nodes (clique:2), count = 2; every message takes 500ms, but",
        "  message 2 from 0 to 1 takes 100ms",
    ]


def test_a_crash_takes_a_crash_and_a_recovery() -> None:
    shrunk = shrunk_of("crash, and more")
    assert [fault.verb for fault in shrunk.trial.faults] == ["crash", "recover"]
    assert shrunk.trial.script is not None
    assert shrunk.trial.script.exceptions == {}
    assert shrunk.trial.graph().num_nodes == 3  # With two, the node isn't there that was down.


def test_a_loss_takes_one_loss() -> None:
    shrunk = shrunk_of("loss")
    assert shrunk.trial.script is not None
    assert list(shrunk.trial.script.exceptions.values()) == [()]
    assert shrunk.text().endswith("gets lost")


def test_two_messages_are_two_messages() -> None:
    shrunk = shrunk_of("two messages")
    assert shrunk.trial.script is not None
    assert sorted(shrunk.trial.script.exceptions) == [(1, 0, 0), (2, 0, 1)]


def test_nodes_and_parameters_shrink_as_far_as_they_go() -> None:
    shrunk = shrunk_of("parameter")
    assert shrunk.trial.graph().num_nodes == 4
    assert shrunk.trial.parameters == {"size": 3}
    assert shrunk.left == 0
    assert shrunk.text() == "4 nodes (ring:4), size = 3; every message takes 500ms"


def test_faults_that_are_written_down_keep_their_nodes() -> None:
    shrunk = shrunk_of("written down")
    assert shrunk.trial.graph().num_nodes == 4
    assert [(fault.verb, fault.nodes) for fault in shrunk.trial.faults] == [("crash", (2,)), ("recover", (2,))]


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        (Trial(algorithm=LATE, faults=(as_fault("500ms down 0 1"), as_fault("2s up 0 1"))), "down"),
        (Trial(algorithm=LATE, faults=(as_fault("500ms partition 0"), as_fault("2s repair"))), "partition"),
        (Trial(algorithm=LATE, kinds={"link": 2}), "down"),
    ],
)
def test_links_that_lose_nothing_lose_nothing(trial: Trial, reason: str) -> None:
    shrunk = shrink(failing(trial))
    assert reason in [fault.verb for fault in shrunk.trial.faults]
    assert shrunk.trial.script is not None
    assert all(shrunk.trial.script.exceptions.values())


def test_another_exception_is_another_failure() -> None:
    trial = failing(Trial(algorithm=Algorithm(name="raises", node=Raises, topology="clique:5")))
    shrunk = shrink(trial)
    assert "ValueError: out of order" in str(shrunk.failure)
    assert shrunk.trial.graph().num_nodes == 3


def test_what_never_ends_can_be_shrunk() -> None:
    algorithm = Algorithm(name="chatty", node=Chatty, topology="clique:3")
    trial = failing(Trial(algorithm=algorithm, parameters={"count": 2}, events_max=60))
    shrunk = shrink(trial)
    assert isinstance(shrunk.failure, Stuck)
    assert isinstance(shrunk.trial.run().failure, Stuck)
    assert (shrunk.left, shrunk.trial.graph().num_nodes) == (1, 3)


# --- Limits ---


def test_what_does_not_fail_is_refused() -> None:
    with pytest.raises(UsageError, match="this trial doesn't fail, so there is nothing to shrink"):
        shrink(Trial(algorithm=HASTY, fifo=True))


@pytest.mark.parametrize("runs_max", [0, 1, 2, 7, 150])
def test_enough_is_enough(runs_max: int) -> None:
    trial, _ = shrunk_case("crash, and more")
    done: list[int] = []
    shrunk = shrink(trial, runs_max=runs_max, progress=done.append)
    assert shrunk.runs <= runs_max
    assert done == list(range(1, shrunk.runs + 1))
    assert sign(shrunk.trial.run().failure) == sign(trial.run().failure)
    assert shrunk.text()


def test_what_is_shrunk_already_stays_as_it_is() -> None:
    shrunk = shrunk_of("two messages")
    again = shrink(shrunk.trial)
    assert again.text() == shrunk.text()
    assert again.records == shrunk.records


def test_words_are_plain() -> None:
    faults = tuple(map(as_fault, ("1s crash 1", "2s recover 1")))
    script = Script(5_000_000, {(0, 1, 2): (), (0, 1, 0): (1_000_000, 2_000_000)})
    trial = Trial(algorithm=HASTY, topology="line:2", parameters={"count": 4}, faults=faults, script=script)
    assert in_words(trial, USUAL_DAY) == [
        "2 nodes (line:2), count = 4; every message takes 5ms, but",
        "  message 1 from 0 to 1 takes 1ms and 2ms",
        "  message 3 from 0 to 1 gets lost",
        "  at 1s crash 1",
        "  at 2s recover 1",
    ]
    drawn = in_words(Trial(algorithm=HASTY, seed=3), USUAL_DAY)
    assert drawn == ["5 nodes (clique:5); messages take what seed 3 draws"]


class Endless(Node):
    def execute(self, event: Event) -> None:
        while True:
            pass


def test_a_trial_without_an_end_is_given_up() -> None:
    trial = Trial(algorithm=Algorithm(name="endless", node=Endless, topology="ring:3"))
    with pytest.raises(Stuck, match=r"it has taken more than 0.1 seconds of real time"):
        shrink(trial, seconds_max=0.1)


def test_only_trials_are_shrunk() -> None:
    with pytest.raises(UsageError, match="isn't a trial"):
        shrink(Endless)  # type: ignore[arg-type]
