"""The recorder: one run, one file, to the byte."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from tests.recording import stage
from tests.recording.stage import recorded, truth, write_script
from worldline import Federation, Program, run
from worldline.federation.inprocess.checker import SampledSchedule
from worldline.federation.inprocess.run import Schedule
from worldline.lock import Action, Arbiter, Event, Received, Sent
from worldline.model import LossError, Network, Plan, Rule, UsageError, hold, link, plan, uniform
from worldline.recording import Arrival, Condition, Count, LossCount, MemberFacts, Recorder, Recording, writer
from worldline.recording.pending import Pending, Publication

PLAN = plan(["a", "b"])


def save(data: bytes, folder: Path) -> Recording:
    path = folder / "run.mcap"
    path.write_bytes(data)
    return Recording(path)


# --- Luck doesn't show ---


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_every_interleaving_of_the_calls_gives_the_same_bytes(script: int, one: int, other: int) -> None:
    written = write_script(Random(script), participants=4)
    assert recorded(written, one) == recorded(written, other)


class ByReceipt(Pending):
    """Leaks: writes in the order in which it was told."""

    def take(self) -> list[Publication]:
        self._carry_out_closures()
        return self._remove(0)

    def finish(self, end: int) -> list[Publication]:
        self._carry_out_closures()
        return self._remove(len(self._order))


class Deaf(Pending):
    """Leaks: what was closed stays, so that it depends on when the subscription was heard of."""

    def closed(self, receiver: str, topic: str, until: int) -> None:
        pass


@pytest.mark.parametrize("leak", [ByReceipt, Deaf])
def test_a_recorder_that_leaks_is_caught(leak: type[Pending], monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(*target: Any, **options: Any) -> Recorder:
        recorder = Recorder(*target, **options)
        recorder._pending = leak(options["chunk_size"])
        return recorder

    monkeypatch.setattr(stage, "Recorder", leaky)
    scripts = [write_script(Random(number), participants=4) for number in range(20)]
    assert any(recorded(script, 1) != recorded(script, 2) for script in scripts)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_file_holds_what_happened(script: int, luck: int) -> None:
    written = write_script(Random(script), participants=4)
    arrivals, unheard, losses = truth(written)
    with TemporaryDirectory() as folder:
        recording = save(recorded(written, luck), Path(folder))
        assert list(recording.arrivals()) == arrivals
        assert list(recording.unheard()) == unheard
        assert list(recording.losses()) == losses
        assert recording.verify().condition is Condition.INTACT


def test_a_publication_may_lie_across_chunks() -> None:
    script = write_script(Random(3), participants=4)
    with TemporaryDirectory() as folder:
        for size in (1, 60, 10_000):
            recording = save(recorded(script, 1, chunk_size=size), Path(folder))
            assert (list(recording.arrivals()), list(recording.unheard()), list(recording.losses())) == truth(script)
            assert recording.verify().condition is Condition.INTACT


class Recorded(Arbiter):
    """An arbiter that lets a recorder know, after every event, how far the run has come."""

    def __init__(self, planned: Plan, recorder: Recorder) -> None:
        super().__init__(planned, recorder)
        self._recorder = recorder

    def handle(self, who: str, *events: Event) -> tuple[Action, ...]:
        actions = super().handle(who, *events)
        self._recorder.passed(self.floor())
        return actions


def federation() -> Federation:
    """Everything at once: losses, duplicates, queues, holds, late and short subscriptions, guests, buffers."""

    def speaker(self) -> None:  # type: ignore[no-untyped-def]
        for number in range(12):
            self.publish("talk", bytes(number))
            if number % 3 == 0:
                self.publish("slow", bytes(30 * number), at=self.now + 1_000_000)
            self.advance(by="2ms")

    def host(self) -> None:  # type: ignore[no-untyped-def]
        self.invite("guest", at="7ms")
        for _ in self.messages(until="30ms"):
            self.publish("talk", b"aha")

    def visitor(self) -> None:  # type: ignore[no-untyped-def]
        for _ in range(3):
            self.subscribe("talk")
            self.subscribe("slow", "mailbox")
            self.advance(by="4ms")
            self.unsubscribe("talk")
            self.advance(by="3ms")
            self.unsubscribe("slow")

    network = Network(
        default=link(uniform("1ms", "6ms"), loss=0.1, duplication=0.3),
        rules=(Rule(topic="slow", link=link("1ms", bandwidth=20_000, loss_at_sender=0.1)),),
        outages=hold(["host"], ["visitor"], "5ms", "9ms"),
    )
    return Federation(
        {
            "speaker": Program(speaker, publishes=["talk", "slow"]),
            "host": Program(host, subscribes=["talk"], controls=True),
            "visitor": Program(visitor, publishes=[]),
            "guest": Program(visitor, publishes=[], guest=True),
        },
        network=network,
        until="60ms",
    )


def of_a_real_run(schedule: Schedule) -> tuple[bytes, Any]:
    file = io.BytesIO()
    told = federation()
    recorder = Recorder(file, told.plan(), federation="all", chunk_size=1_000)
    outcome = run(told, observer=recorder, schedule=schedule, arbiter=Recorded, keep_journals=True)
    recorder.close(dropped=outcome.dropped)
    return file.getvalue(), outcome


def test_what_is_under_way_at_the_end_isnt_settled_before_all_have_left() -> None:
    """Those who have been told of the end do nothing more, but what would reach them after it must not be written."""

    def step(self: Any) -> None:
        while not self.ended:
            self.publish(self.name, b"news", at=self.now + 3_000_000)
            self.advance(by="10ms")

    programs = {name: Program(step, publishes=[name], subscribes=[other]) for name, other in ("ab", "ba")}
    told = Federation(programs, network=Network(default=link("3ms")), until="105ms")
    files = []
    for arbiter in (Recorded, Arbiter):  # One looks after every event, the other only at the end.
        file = io.BytesIO()
        recorder = Recorder(file, told.plan(), chunk_size=1)  # So that it writes at once what it can.
        run(told, observer=recorder, arbiter=arbiter)
        recorder.close()
        files.append(file.getvalue())
    assert files[0] == files[1]


def test_a_real_run_gives_the_same_file_under_every_schedule(tmp_path: Path) -> None:
    expected, outcome = of_a_real_run(Schedule())
    for number in range(12):
        assert of_a_real_run(SampledSchedule(number))[0] == expected, f"schedule {number}"
    recording = save(expected, tmp_path)
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert recording.outcome.digest == outcome.digest.hex()
    assert {name: part.left for name, part in recording.outcome.participants.items()} == outcome.times
    assert {(loss.receiver, loss.topic, loss.reason): loss.count for loss in recording.loss_counts()} == {
        key: count for key, count in outcome.dropped.items() if count
    }


def test_a_real_runs_journals_are_in_the_file(tmp_path: Path) -> None:
    data, outcome = of_a_real_run(Schedule())
    recording = save(data, tmp_path)
    arrived = set(recording.arrivals())
    received = [
        (name, entry.message)
        for name, entries in outcome.journals.items()
        for entry in entries
        if isinstance(entry, Received)
    ]
    assert len(received) > 20
    for receiver, (arrival, sent, sender, sequence, copy, topic, payload) in received:
        assert Arrival(arrival, sent, sender, sequence, receiver, copy, topic, payload) in arrived
    dropped_by_buffers = sum(count for key, count in outcome.dropped.items() if key[2] == "dropped by its buffer")
    assert len(arrived) == len(received) + dropped_by_buffers
    published = sum(isinstance(entry, Sent) for entries in outcome.journals.values() for entry in entries)
    assert published == sum(count.published for count in recording.counts().values())


# --- What the file says ---


def small(target: Path | io.BytesIO, **options: object) -> Recorder:
    """A run in which a sends three messages, of which b gets the first and loses the second."""
    recorder = Recorder(target, PLAN, **options)  # type: ignore[arg-type]
    recorder.began("a", 0)
    recorder.began("b", 2)
    recorder.sent("a", 0, "x", 10, b"one", 20)
    recorder.arrives("a", 0, "b", 15, 0, None)
    recorder.sent("a", 1, "x", 11, b"three", 21)
    recorder.arrives("a", 1, "b", 16, 0, "bad luck")
    recorder.sent("a", 2**32, "y", 12, b"", 22)
    return recorder


def test_the_outcome_tells_of_participants_topics_and_losses(tmp_path: Path) -> None:
    recorder = small(tmp_path / "run.mcap")
    recorder.ended("b", 40, b"\x0b")
    recorder.ended("a", 30, b"\x0a")
    recorder.close(dropped={("b", "x", "dropped by its buffer"): 4, ("b", "x", "bad luck"): 99, ("b", "y", "none"): 0})
    outcome = Recording(tmp_path / "run.mcap").outcome
    assert outcome is not None
    assert outcome.status == "complete"
    assert outcome.participants == {
        "a": MemberFacts(started=0, left=30, digest="0a"),
        "b": MemberFacts(started=2, left=40, digest="0b"),
    }
    assert outcome.topics == {"x": Count(published=2, arrivals=1, bytes=8), "y": Count(published=1)}
    assert outcome.losses == (LossCount("b", "x", "bad luck", 1), LossCount("b", "x", "dropped by its buffer", 4))


def test_the_header_tells_of_the_plan(tmp_path: Path) -> None:
    network = Network(
        rules=(Rule(sender="a", link=link("5ms", loss=0.25, fifo=True, bandwidth=7)),),
        outages=hold(["a"], ["b"], "1s", "2s"),
    )
    planned = plan(["b", "a"], guests=["z", "g"], network=network, seed=-5, until="3s")
    Recorder(tmp_path / "run.mcap", planned, federation="it").close()
    header = Recording(tmp_path / "run.mcap").header
    assert (header.federation, header.version, header.format) == ("it", version("worldline"), 1)
    assert header.plan() == plan(["a", "b"], guests=["g", "z"], network=network, seed=-5, until="3s")
    assert header.byte_order == sys.byteorder
    assert f"{sys.version_info.major}.{sys.version_info.minor}." in header.python


def test_a_run_that_is_broken_off_keeps_what_was_final_and_says_who_and_why(tmp_path: Path) -> None:
    recorder = small(tmp_path / "run.mcap")
    recorder.passed(21)
    recorder.abandon("its process was killed \udcff", participant="b", at=17)
    recorder.abandon("again")
    recording = Recording(tmp_path / "run.mcap")
    assert recording.outcome is not None
    assert (recording.outcome.status, recording.outcome.digest) == ("broken off", "")
    assert recording.outcome.participants["a"] == MemberFacts(started=0)
    assert [arrival.payload for arrival in recording.arrivals()] == [b"one"]
    assert list(recording.unheard()) == []
    verdict = recording.verify()
    assert (verdict.condition, verdict.until) == (Condition.BROKEN_OFF, 11)
    assert str(verdict) == ("broken off: b at 17ns: its process was killed ?; everything sent before 11ns is there")


def test_chunks_reach_the_system_as_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, PLAN, chunk_size=1000)
    assert Recording(path).verify().until == 0  # The header is there before the run has started.
    for sequence in range(2_000):
        recorder.sent("a", sequence, "x", 10 * sequence, bytes(100), 10 * sequence + 5)
        recorder.passed(10 * sequence)
    seen = Recording(path)  # As after kill -9: nothing has been closed.
    count = len(list(seen.unheard()))
    assert count > 1_000
    verdict = seen.verify()
    assert (verdict.condition, verdict.until) == (Condition.CUT_OFF, 10 * (count - 1))
    recorder.close()
    assert len(list(Recording(path).unheard())) == 2_000


def test_encodings_are_the_topics(tmp_path: Path) -> None:
    small(tmp_path / "run.mcap", encodings={"x": "json"}).close()
    with (tmp_path / "run.mcap").open("rb") as file:
        channels = make_reader(file).get_summary().channels.values()  # type: ignore[union-attr]
    found = {(channel.topic, channel.message_encoding, channel.schema_id) for channel in channels}
    assert found == {("x", "json", 0), ("y", "", 0), ("worldline/lost", "json", 1)}


def test_hash_seeds_dont_show_in_the_bytes() -> None:
    program = (
        "from random import Random; from hashlib import sha256; from tests.recording.stage import *;"
        "print(sha256(recorded(write_script(Random(5), participants=4), 1)).hexdigest())"
    )
    root = Path(__file__).parent.parent.parent
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


# --- What can go wrong ---


def test_a_missing_folder_a_file_that_is_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*/nowhere"):
        Recorder(tmp_path / "nowhere" / "run.mcap", PLAN)
    assert not (tmp_path / "nowhere").exists()
    old = tmp_path / "old.mcap"
    old.write_bytes(b"precious")
    with pytest.raises(UsageError, match=r"old\.mcap already exists"):
        Recorder(str(old), PLAN)
    assert old.read_bytes() == b"precious"
    with pytest.raises(UsageError):
        Recorder(tmp_path, PLAN, overwrite=True)
    Recorder(old, PLAN, overwrite=True).close()
    assert Recording(old).verify().condition is Condition.INTACT


def test_too_many_topics_are_refused_and_what_came_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATHS_MAX", 1)
    monkeypatch.setattr(writer, "CHANNELS_MAX", 2)
    recorder = small(tmp_path / "run.mcap")
    recorder.passed(100)
    with pytest.raises(UsageError, match="more topics than an MCAP file can hold besides 1 paths"):
        recorder.close()
    with pytest.raises(UsageError, match="abandon it"):
        recorder.close()
    recorder.abandon("too many topics")
    recording = Recording(tmp_path / "run.mcap")
    assert recording.verify() == (
        Condition.BROKEN_OFF,
        "too many topics; everything sent before 11ns is there",
        11,
    )
    assert [arrival.payload for arrival in recording.arrivals()] == [b"one"]


class FullDisk(io.BytesIO):
    def write(self, data: bytes) -> int:  # type: ignore[override]
        if len(self.getvalue()) > 5_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_full_disk_is_a_loss_and_leaves_what_can_be_read(tmp_path: Path) -> None:
    file = FullDisk()
    recorder = Recorder(file, PLAN, chunk_size=500)
    with pytest.raises(LossError, match="can't be written: No space left on device"):  # noqa: PT012
        for sequence in range(10_000):
            recorder.sent("a", sequence, "x", sequence, Random(sequence).randbytes(100), sequence + 5)
            recorder.passed(sequence)
    recorder.abandon("the disk is full")
    verdict = save(file.getvalue(), tmp_path).verify()
    assert verdict.condition is Condition.CUT_OFF
    assert verdict.until is not None
    assert verdict.until > 10
