"""Lines that participants log: for observers and recordings, at their time and in their order, and in no digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from worldline import MS, Federation, Network, Participant, Program, RunEnded, Server, connect, link, run
from worldline.history.observer import LOG, Observer
from worldline.model import Plan, UsageError, plan
from worldline.recording import Recorder, Recording

NETWORK = Network(default=link("1ms"))


class LogReader(Observer):
    """Keeps what is logged, and what is sent, in the order in which it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.told.append((who, at, topic))

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        assert topic == LOG
        self.told.append((who, at, json.loads(payload or b"")["text"]))


def work(me: Participant) -> None:
    me.log("begins")
    me.publish("x", b"")
    me.promise("5ms")
    me.log(42)
    me.advance("7ms")  # Served from what was granted ahead, so that nobody else knows.
    me.advance("8ms")
    me.log("half a \udc80 character")


TOLD = [("a", 0, "begins"), ("a", 0, "x"), ("a", 0, "42"), ("a", 8 * MS, "half a ? character")]


def alone() -> Plan:
    return plan(["a"], network=NETWORK)


def test_in_one_process() -> None:
    reader = LogReader()
    run(Federation({"a": Program(work)}, network=NETWORK), observer=reader)
    assert reader.told == TOLD


def test_across_a_socket() -> None:
    reader = LogReader()
    with Server(alone(), observer=reader) as server, connect(server, "a") as me:
        work(me)
    assert reader.told == TOLD


def test_it_is_recorded_and_changes_no_digest(tmp_path: Path) -> None:
    def silent(me: Participant) -> None:
        me.publish("x", b"")
        me.advance("8ms")

    federation = Federation({"a": Program(work)}, network=NETWORK)
    recorder = Recorder(tmp_path / "run.mcap", federation.plan())
    outcome = run(federation, observer=recorder)
    recorder.close(dropped=outcome.dropped)
    assert outcome.digest == run(federation).digest == run(Federation({"a": Program(silent)}, network=NETWORK)).digest
    lines = [(each.sender, each.sent, json.loads(each.payload)) for each in Recording(tmp_path / "run.mcap").unheard()
             if each.topic == LOG]  # fmt: skip
    assert lines == [(who, at, {"text": text}) for who, at, text in TOLD if text != "x"]


def test_a_line_that_is_too_long_and_one_after_the_end_are_refused() -> None:
    def log(me: Participant) -> None:
        with pytest.raises(UsageError, match="is too large"):
            me.log("x" * 1001)
        me.advance("1s")
        with pytest.raises(RunEnded):
            me.log("too late")

    run(Federation({"a": Program(log)}, until="5ms", payload_max=1000))
