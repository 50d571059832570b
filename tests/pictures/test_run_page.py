"""The page of any recorded run: it plays to the end, says what `info` and `export` say, and texts stay texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.pictures.test_player import needs_node, played
from worldline.model import plan
from worldline.pictures.run import page as page_module
from worldline.pictures.run import run_page
from worldline.recording import Recorder, Recording

EVIL = "<img src=x onerror=alert(1)></script>"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    recorder = Recorder(tmp_path / "run.mcap", plan(["ann", "bob"], seed=5), federation="tennis")
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    for number in range(6):
        at = number * 100_000_000
        recorder.sent("ann", number, "ball", at, json.dumps({"n": number, "says": EVIL}).encode(), at + 90_000_000)
        recorder.arrives("ann", number, "bob", at + 50_000_000, 0, "into the net" if number == 3 else None)
    recorder.noted("bob", "worldline/log", 40, b'{"text":"ready"}')
    for name in ("ann", "bob"):
        recorder.ended(name, 10**9, b"d")
    recorder.close()
    return Recording(tmp_path / "run.mcap")


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)[0])
    return found


def test_the_page_has_what_happened(recording: Recording) -> None:
    page = run_page(recording)
    data = data_of(page)
    assert data["members"] == [["ann", 0, 550_000_000], ["bob", 0, 550_000_000]]
    assert [each[:4] for each in data["messages"]][:2] == [[0, 50_000_000, 0, 1], [100_000_000, 150_000_000, 0, 1]]
    assert [data["texts"][each[6]] for each in data["messages"] if each[6] >= 0] == ["into the net"]
    assert [(each[0], data["topics"][each[2]], data["texts"][each[3]]) for each in data["notes"]] == [
        (40, "logs", '{"text":"ready"}'),
    ]
    assert recording.outcome is not None
    assert f"seed 5, 2 members, until 550ms, digest {recording.outcome.digest}" in page
    assert "<img" not in page
    assert run_page(recording) == page


@needs_node
def test_the_page_plays_to_the_end(recording: Recording) -> None:
    seen = played(run_page(recording))
    assert {"ann", "bob"} <= {*seen["painted"]}
    assert seen["clock"] == "550.0 ms"
    assert "Play" in seen["play"]


@needs_node
def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "empty.mcap", plan(["ann"]))
    recorder.began("ann", 0)
    recorder.ended("ann", 10, b"")
    recorder.close()
    assert "ann" in played(run_page(Recording(tmp_path / "empty.mcap")))["painted"]


def test_topics_are_chosen_and_large_runs_are_cut(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_of(run_page(recording, topics=["worldline/log"]))["messages"] == []
    monkeypatch.setattr(page_module, "MESSAGES_MAX", 2)
    cut = run_page(recording)
    assert len(data_of(cut)["messages"]) == 2
    assert "4 messages after the first ones aren't shown." in cut
