"""What hosts tell whoever looks on: the same on every executor, and in recordings what the trace says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, json

from worldline.history.observer import LOG, META
from worldline.model import Link, UsageError
from worldline.model.errors import ModelError
from worldline.model.latency import Uniform
from worldline.model.time import FOREVER, SECOND
from worldline.nodes import Algorithm, Node, Scheduler
from worldline.nodes.algorithms import find
from worldline.nodes.faults import Fault
from worldline.nodes.host import DOWN, HELD, REMOVED
from worldline.nodes.node import Event, Protocol, Start
from worldline.nodes.scheduler import HostObserver
from worldline.nodes.trace import Script
from worldline.nodes.trial import Trial
from worldline.recording import Arrival, Condition, Recorder, Recording


class Told(Struct, frozen=True):
    """A message with a field."""

    number: int


class Teller(Node):
    """Tells its neighbors some numbers."""

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == 0:
                for number in range(20):
                    self.broadcast(Told(number))
            case Protocol(Told(number), _):
                self.log(f"heard {number}")


class Fussy(Teller):
    """Can't stand the number 3."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if isinstance(event, Protocol) and event.message.number == 3:
            raise ValueError("three")


class Listing:
    """An observer that keeps all it is told, but for how far the run is: that may be said at any time."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.told.append((name, *given))

    def passed(self, time: int) -> None: ...

    def calls(self, name: str) -> list[tuple[Any, ...]]:
        return [given for how, *given in self.told if how == name]  # type: ignore[misc]


def told(run: Scheduler) -> Listing:
    """Run it to its end; return all that was told."""
    listing = Listing()
    run.run(observer=listing)
    return listing


def started(node: type[Node] = Teller, *, start: bool = True, **options: Any) -> Scheduler:
    run = Scheduler.over("line:2", node, **{"link": "1s", "trace": True, **options})
    if start:
        run.start_all_nodes()
    return run


def recorded(run: Scheduler, path: Path, end: int | None = None, executor: str = "inline") -> Recording:
    """Run it to its end, and record it."""
    recorder = Recorder(path, run.plan(end), federation="told", encoding="json")
    try:
        run.run(end, executor=executor, observer=recorder)
    except ModelError as error:
        recorder.abandon(error.problem, participant=error.participant, at=error.at, end=error.at)
    else:
        recorder.close(end=FOREVER if end is None else end)
    return Recording(path)


def counted(run: Scheduler, kind: str) -> dict[str, int]:
    """Return how many messages of each kind were sent or received."""
    return dict(
        sorted(Counter(each.what for each in run.records if each.kind == kind and each.peer is not None).items())
    )


def arrivals(recording: Recording) -> dict[str, int]:
    counts = recording.counts().items()
    return {topic: count.arrivals for topic, count in counts if not topic.startswith("worldline/")}


def order(arrival: Arrival) -> tuple[Any, ...]:
    return arrival.at, arrival.sent, int(arrival.sender), int(arrival.receiver)


def test_a_recording_says_what_the_trace_says(tmp_path: Path) -> None:
    run = started()
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert recording.outcome.digest == run.digest.hex()
    assert sorted(recording.outcome.participants) == ["", "0", "1"]  # Whoever starts nodes takes part as well.
    counts = recording.counts()
    assert (counts["Told"].published, counts["Told"].arrivals) == (20, 20)
    assert (counts[LOG].published, counts[META].published) == (20, 2)
    assert recording.loss_counts() == ()
    first, *_ = recording.arrivals(topics=["Told"])
    assert (first.at, first.sent, first.sender, first.receiver) == (10**9, 0, "0", "1")
    assert json.decode(first.payload) == {"number": 0}
    assert [json.decode(each.payload)["text"] for each in recording.unheard() if each.topic == META] == ["Start"] * 2


def test_lost_and_doubled_messages_are_counted(tmp_path: Path) -> None:
    link = Link(latency=Uniform(1, 10**9), loss_at_receiver=0.3, duplication=0.4)
    run = started(link=link, seed=5)
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    sent = [record for record in run.records if record.kind == "sent"]
    lost = sum(not record.arrivals for record in sent)
    doubled = sum(len(record.arrivals) == 2 for record in sent)
    assert lost
    assert doubled
    assert recording.counts()["Told"].published == len(sent) == 20
    assert recording.counts()["Told"].arrivals == 20 - lost + doubled == counted(run, "received")["Told"]
    assert sum(loss.count for loss in recording.loss_counts()) == lost
    assert {arrival.copy for arrival in recording.arrivals(topics=["Told"])} == {0, 1}


def test_a_script_of_copies_and_losses_is_recorded(tmp_path: Path) -> None:
    script = Script(10, {(0, 1, 0): (), (0, 1, 1): (5, 7), (0, 1, 2): (5, 5)})
    run = started(script=script)
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.counts()["Told"].arrivals == 17 + 2 + 2
    assert [(loss.receiver, loss.reason, loss.count) for loss in recording.loss_counts()] == [("1", "lost", 1)]
    early = [(each.at, json.decode(each.payload)["number"], each.copy) for each in recording.arrivals(end=10)]
    assert sorted(early) == [(5, 1, 0), (5, 2, 0), (5, 2, 1), (7, 1, 1)]


def test_what_is_dropped_where_it_arrives_is_a_loss(tmp_path: Path) -> None:
    run = started(faults=["500ms crash 1", "2s recover 1"])
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.counts()["Told"].arrivals == 0
    assert [(loss.receiver, loss.topic, loss.reason, loss.count) for loss in recording.loss_counts()] == [
        ("1", "Told", "the node is down", 20)
    ]
    texts = [json.decode(each.payload)["text"] for each in recording.unheard() if each.topic == META]
    assert texts == ["Start", "Start", "Crash", "Recover"]


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (["500ms down 0 1"], "the link went down on the way"),
        (["500ms remove 0 1"], "the link is gone"),
        (["0s partition 0"], "sent into a partition"),
        (["0s down 0 1"], "the link is down"),
    ],
)
def test_every_fault_names_its_reason(tmp_path: Path, faults: list[str], reason: str) -> None:
    run = Scheduler.over("line:2", Teller, link="1s", trace=True, faults=faults)
    run.start_all_nodes()
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert [(loss.reason, loss.count) for loss in recording.loss_counts()] == [(reason, 20)]


def test_what_happens_to_the_network_is_recorded(tmp_path: Path) -> None:
    run = started(faults=["2s partition 0", "3s repair"])
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    found = [(each.sent, each.sender, json.decode(each.payload)["text"]) for each in recording.unheard()]
    assert (2 * 10**9, "", "Partition 0") in found
    assert (3 * 10**9, "", "Repair") in found


def test_what_is_still_under_way_at_the_end_has_not_arrived(tmp_path: Path) -> None:
    run = started(link="uniform(1ns, 1s)", seed=1)
    recording = recorded(run, tmp_path / "run.mcap", end=5 * 10**8)
    assert recording.verify().condition is Condition.INTACT
    assert 0 < counted(run, "received")["Told"] < 20
    assert arrivals(recording) == counted(run, "received")


def test_all_of_a_large_run_is_there(tmp_path: Path) -> None:
    trial = Trial(algorithm=find("bellman-ford"), topology="clique:12", seed=3)
    run = trial.scheduler(trace=True)
    recording = recorded(run, tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert recording.outcome.digest == run.digest.hex()
    assert sorted(recording.outcome.participants)[:4] == ["", "00", "01", "02"]
    assert arrivals(recording) == counted(run, "received")
    received = [each for each in run.records if each.kind == "received" and each.peer is not None]
    assert sorted(map(order, recording.arrivals())) == sorted(
        (each.at, each.sent, each.peer, each.node) for each in received
    )


def test_a_run_that_fails_is_broken_off_and_says_where(tmp_path: Path) -> None:
    verdict = recorded(started(Fussy), tmp_path / "run.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert "node 1 at 1s: on the message Told(number=3) it raised ValueError: three" in verdict.text


@pytest.mark.parametrize(
    "message", [2**80, 1.5, None, "ü", b"\xff", (1, (2,)), {"a": {1: 2}}, Told(2**70), float("nan")]
)
def test_any_message_can_be_recorded(tmp_path: Path, message: Any) -> None:
    class Odd(Node):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start):
                self.broadcast(message)

    recording = recorded(started(Odd), tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert [count.arrivals for topic, count in recording.counts().items() if topic != META] == [2]


TRIALS = {
    "raft": Trial(
        algorithm=find("raft"), seed=4, until=3 * 10**9, kinds={"crash": 2, "link": 2, "loss": 0.1, "duplication": 0.2}
    ),
    "bellman-ford": Trial(
        algorithm=find("bellman-ford"),
        seed=2,
        topology="clique:5",
        latency="uniform(20ms, 1s)",
        kinds={"crash": 1, "partition": 1, "link": 2, "loss": 0.1, "duplication": 0.3},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", TRIALS)
def test_the_same_is_told_whatever_the_executor(name: str) -> None:
    trial = TRIALS[name]
    found = []
    for executor in ("inline", "processes(2)", "processes(3)"):
        listing = Listing()
        outcome = trial.run(executor=executor, observer=listing)
        assert outcome.failure is None
        found.append((outcome.digest, outcome.events, outcome.faults, listing.told))
    assert found[0] == found[1] == found[2]
    quiet = trial.run()
    assert (quiet.digest, quiet.events, quiet.faults) == found[0][:3]
    assert any(lost == DOWN for *_, copy, lost in listing.calls("arrives"))
    assert any(copy for *_, copy, _ in listing.calls("arrives"))
    assert any(number < 0 for _, number, *_ in listing.calls("sent"))


@pytest.mark.parametrize("name", TRIALS)
def test_recordings_are_the_same_whatever_the_executor(tmp_path: Path, name: str) -> None:
    trial = TRIALS[name]
    files = []
    for executor in ("inline", "processes(2)"):
        file = tmp_path / f"{executor}.mcap"
        recording = recorded(trial.scheduler(properties=()), file, trial.end(), executor)
        assert recording.verify().condition is Condition.INTACT
        assert recording.outcome is not None
        assert recording.outcome.digest == trial.run().digest.hex()
        files.append(file.read_bytes())
    assert files[0] == files[1]


def test_a_run_that_fails_in_processes_is_recorded_as_inline(tmp_path: Path) -> None:
    files = []
    for executor in ("inline", "processes(2)"):
        recording = recorded(started(Fussy, trace=False), tmp_path / f"{executor}.mcap", executor=executor)
        assert recording.verify().condition is Condition.BROKEN_OFF
        files.append((tmp_path / f"{executor}.mcap").read_bytes())
    assert files[0] == files[1]


def test_a_copy_that_arrives_in_vain_is_told_as_one_of_its_message() -> None:
    script = Script(10, {(0, 1, 0): (5, 7, 9), (0, 1, 1): (5, 8)})
    listing = told(started(script=script, faults=[Fault(6, "crash", (1,))]))
    (first, second, *_) = (number for _, number, topic, *_ in listing.calls("sent") if topic == "Told")
    assert second == first + 3
    fates = {(number, copy): (at, lost) for _, number, _, at, copy, lost in listing.calls("arrives")}
    assert [fates[first, copy] for copy in range(3)] == [(5, None), (7, DOWN), (9, DOWN)]
    assert [fates[second, copy] for copy in range(2)] == [(5, None), (8, DOWN)]


def test_what_a_link_keeps_is_lost_unless_it_comes_up() -> None:
    def fates(*faults: str) -> set[str | None]:
        listing = told(started(faults=faults, on_link_down="keep"))
        times = [until for *_, until in listing.calls("lasts")]
        assert times == [FOREVER] * 20 + [int(fault[0]) * SECOND for fault in faults[1:][-1:]] * 20
        assert len({(number, at) for _, number, _, at, *_ in listing.calls("arrives")}) == 20
        return {lost for *_, lost in listing.calls("arrives")[-20:]}

    assert fates("500ms down 0 1") == {HELD}
    assert fates("500ms down 0 1", "2s up 0 1") == {None}
    assert fates("500ms down 0 1", "2s remove 0 1") == {REMOVED}
    assert fates("500ms down 0 1", "2s crash 1", "3s up 0 1") == {DOWN}


class Tireless(Node):
    """Says something every second."""

    def execute(self, event: Event) -> None:
        if self.now < 500 * SECOND and not isinstance(event, Protocol):
            self.broadcast(Told(0))
            self.set_timer(SECOND)


def test_what_a_link_has_kept_holds_up_no_recording(tmp_path: Path) -> None:
    run = started(Tireless, trace=False, faults=["500ms down 0 1", "2s up 0 1"], on_link_down="keep")
    recorder = Recorder(tmp_path / "run.mcap", run.plan(), encoding="json", chunk_size=1_000)
    run.run(observer=recorder)
    assert len(recorder._pending) < 100


def test_what_a_link_keeps_for_no_time_at_all_arrives() -> None:
    """The link comes up at the very moment at which something arrives that it would have kept."""
    listing, run = Listing(), started(trace=False, on_link_down="keep", faults=["1s down 0 1"], start=False)
    run.start(0, at=1)
    run.run("1s", observer=listing)
    run.link_up(0, 1, at="1000000001ns")
    run.run(observer=listing)
    fates = [lost for *_, lost in listing.calls("arrives")]
    assert fates == [None] * 20 + [HELD] * 20 + [None] * 20


def test_whoever_looks_on_sees_all_of_it() -> None:
    run = started(trace=False)
    run.run("500ms")
    with pytest.raises(UsageError, match="has begun"):
        run.run(observer=Listing())


def test_a_run_can_be_observed_piece_by_piece() -> None:
    listing = Listing()
    run = started(trace=False)
    run.run("500ms", observer=listing)
    run.run(observer=listing)
    assert len(listing.calls("sent")) == 20
    assert [what for what in listing.told if what[0] not in ("began", "ended")] == [
        what for what in told(started(trace=False)).told if what[0] not in ("began", "ended")
    ]


def test_details_are_the_records_of_the_trace() -> None:
    run = started()
    listing = told(run)
    details = [given[-1] for how, *given in listing.told if how in ("sent", "noted")]
    assert details == run.records
    assert run.records


def test_what_is_not_looked_at_in_processes_is_remarked() -> None:
    trial = TRIALS["bellman-ford"]
    assert trial.run().remarks() == []
    assert trial.run(executor="processes(2)").remarks() == [
        "not checked, since that needs the inline executor: always: no distance is shorter than the true one"
    ]


def test_a_failure_in_processes_is_an_outcome_too() -> None:
    algorithm = Algorithm(name="fussy", node=Fussy, topology="line:2", latency="1s")
    inline, apart = (Trial(algorithm=algorithm).run(executor=each) for each in ("inline", "processes(2)"))
    assert inline.failure is not None
    assert str(inline.failure) == str(apart.failure)
    assert inline.now == apart.now == 10**9


def test_copies_are_known_as_long_as_they_are_under_way() -> None:
    """However many there were before: of those that have arrived, nothing is kept."""
    listing = Listing()
    hearing = HostObserver(None, listing)
    for number in range(0, 6_000, 2):
        hearing.arrives("0", number, "1", number + 10, 0, None)
        hearing.arrives("0", number, "1", number + 20, 1, None)
        hearing.passed(number)
    assert len(hearing._copies) < 2_000
    hearing.arrives("0", 5_999, "1", 6_018, 0, "in vain")
    assert listing.calls("arrives")[-1] == ["0", 5_998, "1", 6_018, 1, "in vain"]
