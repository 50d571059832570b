"""One truth for each room: what a page counts of a run and of its recording is what the run says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.watch.test_tape import told
from worldline.cli.runner import run_to_end
from worldline.history.observer import UNDER_WAY
from worldline.model import FOREVER
from worldline.recording import Recording, RunRecording, Shelf
from worldline.targets import RunOptions, prepare
from worldline.watch.live import LiveRun
from worldline.watch.recorded import recorded_show

EXAMPLES = Path(__file__).parents[2] / "examples"
SIMPY = """
import simpy

def customer(env):
    while True:
        yield env.timeout(3)

def model():
    env = simpy.Environment()
    env.process(customer(env))
    return env

UNTIL = "20s"
"""
TARGETS = {
    "federation": ("{examples}/commit/commit.toml", {"executor": "in-process"}),
    "lossy federation": ("{examples}/channels/channels.py", {}),
    "kernel": ("{examples}/packet_network/packet_network.py", {"until": "50ms"}),
    "nodes": ("raft", {}),
    "broken nodes": ("{examples}/broken_mutex/broken_mutex.py", {"seed": 11}),
    "spacetime": ("epidemic", {}),
    "relay": ("relay", {}),
    "world": ("{examples}/world/levels.sdf", {"until": "100ms", "settings": ("engine=kinematic",)}),
    "simpy": ("{simpy}", {}),
}


def counted(head: dict[str, Any], rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return what a page says of a run, by names."""
    members, topics, reasons = head["members"], head["topics"], head["reasons"]
    sent = {(at, sender, number, topic) for at, _, sender, _, topic, number, _ in rows}
    received = [row for row in rows if row[3] >= 0 and row[6] < 0]
    return {
        "stays": sorted((members[who], began, ended) for who, began, ended in head["stays"]),
        "sent": Counter((members[sender], topics[topic]) for _, sender, _, topic in sent),
        "received": Counter((members[row[3]], topics[row[4]]) for row in received),
        "lost": Counter((members[row[3]], topics[row[4]], reasons[row[6]]) for row in rows if row[6] >= 0),
        "losses": head["losses"],
        "noted": Counter((members[who], topics[topic], text) for _, who, topic, _, text, _ in head["notes"]),
        "latest": max((row[1] for row in rows), default=0),
        "digest": head["status"]["digest"],
        "failure": head["status"].get("failedAt"),
    }


@pytest.mark.parametrize("which", TARGETS)
def test_a_page_counts_what_the_recording_and_the_run_do(which: str, tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text(SIMPY)
    target, options = TARGETS[which]
    ready = prepare(target.format(examples=EXAMPLES, simpy=tmp_path / "queue.py"), RunOptions(**options))
    live = LiveRun({"name": which}, bytes_max=2**62)
    path = tmp_path / "run.mcap"
    recording = RunRecording(Shelf(path), ready.recorder, say=lambda _: None, warn=lambda _: None)
    outcome = run_to_end(ready.run, recording, page=live)
    show = recorded_show(Recording(path))
    assert show.reading is not None
    show.reading.join()
    seen, recorded = (counted(*told(each.news({}, rows_max=2**62))) for each in (live.show, show))
    assert seen == recorded
    assert sum(seen["sent"].values()) or which == "simpy"
    assert seen["digest"] == outcome.digest.hex()
    ended = {who: FOREVER if end is None else end for who, _, end in seen["stays"]}
    assert ended.keys() >= set(outcome.names)  # SimPy's processes are parts of a member.
    assert {name: ended[name] for name in outcome.names} == {name: outcome.times[name] for name in outcome.names}
    lost = {key: count for key, count in seen["lost"].items() if key[2] != UNDER_WAY}  # Not all rooms count these.
    assert lost == {key: count for key, count in outcome.dropped.items() if key[2] != UNDER_WAY}
    assert sum(dict(seen["losses"]).values()) == sum(seen["lost"].values())
