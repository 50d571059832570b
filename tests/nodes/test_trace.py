"""Traces: records, and the lines that they make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.nodes.chatter import Chatter, Eager, Listener, ran, ran_pair
from worldline.model.links import link
from worldline.model.time import SECOND
from worldline.nodes import NodeRecord
from worldline.nodes.trace import line_of, text_of

ROOT = Path(__file__).parents[2]


def test_the_lines_of_a_run() -> None:
    run = ran_pair(Eager, faults=["500ms crash 0", "600ms partition 1", "700ms repair", "2s recover 0"], trace=True)
    assert run.text(times=True).splitlines()[3:] == [
        "---",
        "    0.000000000  0 <- *: Start",
        "    0.000000000  0 -> 1: hello",
        "    0.000000000  1 <- *: Start",
        "    0.000000000  1 -> 0: hello",
        "    0.500000000  0 <- *: Crash",
        "    0.600000000  *: Partition 1",
        "    0.700000000  *: Repair",
        "    1.000000000  1 <- 0: hello",
        "    1.000000000  0 <- 1: hello (the node is down)",
        "    2.000000000  0 <- *: Recover",
        "    2.000000000  0 -> 1: 0 after Recover",
        "    3.000000000  1 <- 0: 0 after Recover",
    ]


def test_a_record_says_all_there_is() -> None:
    run = ran_pair(Listener, trace=True)
    sent = next(record for record in run.records if record.kind == "sent" and record.node == 1)
    assert (sent.at, sent.peer, sent.link, sent.what, sent.arrivals) == (0, 0, 0, "str", (SECOND,))
    received = next(record for record in run.records if record.kind == "received" and record.peer == 1)
    assert (received.at, received.node, received.sent, received.link, received.text) == (SECOND, 0, 0, 0, "hello")
    assert run.records[0].what == "Start"


def test_what_is_sent_is_received_or_dropped_once() -> None:
    faults = ["200ms crash 1", "500ms recover 1", "300ms down 0 3", "600ms up 0 3", "400ms remove 1 2"]
    run = ran("ring:4", Chatter, link=link("uniform(1ms, 1s)", duplication=0.3), faults=faults, trace=True)
    due = sorted((at, r.peer, r.node, r.text) for r in run.records if r.kind == "sent" for at in r.arrivals)
    got = sorted(
        (r.at, r.node, r.peer, r.text) for r in run.records if r.kind in ("received", "dropped") and r.peer is not None
    )
    assert due == got
    assert any(r.kind == "dropped" for r in run.records)


def test_records_survive_json() -> None:
    run = ran("ring:4", Chatter, trace=True, faults=["100ms partition 1"])
    encoded = msgspec.json.encode(run.records)
    assert [str(record) for record in msgspec.json.decode(encoded, type=list[NodeRecord])] == list(
        map(str, run.records)
    )


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (NodeRecord(at=5, kind="received", text="Start", node=2), "2 <- *: Start"),
        (NodeRecord(at=5, kind="received", text="x", node=2, peer=0), "2 <- 0: x"),
        (NodeRecord(at=5, kind="sent", text="x", node=2, peer=0, reason="lost"), "2 -> 0: x (lost)"),
        (NodeRecord(at=5, kind="logged", text="done", node=2), "2: done"),
        (NodeRecord(at=5, kind="dropped", text="x", node=2, peer=0, reason="no"), "2 <- 0: x (no)"),
        (NodeRecord(at=5, kind="happened", text="Repair"), "*: Repair"),
    ],
)
def test_lines(record: NodeRecord, line: str) -> None:
    assert str(record) == line_of(record) == text_of([record]) == line


SETS = """
from tests.nodes.chatter import pair
from worldline.nodes import Node, Start
class Sets(Node):
    def execute(self, event):
        if isinstance(event, Start):
            self.send({"a", "b", "c", "d"}, 0)
run = pair(Sets, trace=True)
run.run()
print(run.digest.hex(), run.text(), [record.data for record in run.records])
"""


def test_traces_do_not_depend_on_the_hash_seed() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
