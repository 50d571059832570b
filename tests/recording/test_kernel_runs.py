"""Recordings of kernel simulations: the same bytes on every executor, and the digest of the run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.kernel.models import MODELS
from worldline.kernel import Entity, Simulation, build
from worldline.model import FOREVER, ModelError
from worldline.recording import Condition, Recorder, Recording

ROOT = Path(__file__).parents[2]
NAMES = ("lineage", "dynasties", "strangers", "stations", "weather", "gauges", "riots", "gaps")


def record(name: str, executor: str, target: Path | BinaryIO) -> Any:
    case = MODELS[name]
    simulation = case.build()
    plan = simulation.plan(case.until)
    recorder = Recorder(target, plan, federation=name, encoding="json")
    result = simulation.run(case.until, executor=executor, observer=recorder)
    recorder.close(end=FOREVER if plan.end is None else plan.end, dropped=result.dropped)
    return result


def recorded(name: str, executor: str = "inline") -> bytes:
    file = io.BytesIO()
    record(name, executor, file)
    return file.getvalue()


@pytest.mark.long
@pytest.mark.parametrize(("place", "name"), [*enumerate(NAMES)])
def test_the_bytes_are_the_same_on_every_executor(place: int, name: str) -> None:
    expected = recorded(name)
    assert len(expected) > 3_000
    assert recorded(name, f"processes({2 + place % 2})") == expected


WRITER = "import sys; from tests.recording.test_kernel_runs import write; write(*sys.argv[1:])"


def write(folder: str, *names: str) -> None:
    for name in names:
        Path(folder, name).write_bytes(recorded(name))


def test_the_bytes_are_the_same_in_the_other_build_under_another_hash_seed(tmp_path: Path) -> None:
    other = {"WORLDLINE_UNCOMPILED": "1" if build == "compiled" else "0", "PYTHONHASHSEED": "4711"}
    subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path), *NAMES],
        cwd=ROOT,
        env={**os.environ, **other},
        check=True,
        timeout=90,
    )
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == recorded(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_holds_what_happened(name: str, tmp_path: Path) -> None:
    result = record(name, "inline", tmp_path / "run.mcap")
    recording = Recording(tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert recording.outcome.digest == result.digest.hex()
    assert recording.header.roster == tuple(sorted(MODELS[name].build().model().names))
    counted: dict[tuple[str, str, str], int] = {}
    for loss in recording.losses():
        if loss.reason != "still under way at the end":
            key = (loss.receiver, loss.topic, loss.reason)
            counted[key] = counted.get(key, 0) + 1
    assert counted == result.dropped
    if name == "lineage":
        ended = {who: part for who, part in recording.outcome.participants.items() if "/" in who and not part.digest}
        assert len(ended) > 10


class Late(Entity):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def start(self) -> None:
        self.send("b" if self.name == "a" else "a", "slow", self.name, delay=10)

    def on_slow(self, who: str) -> None:
        self.heard.append(who)
        if self.now == 25:
            raise RuntimeError("enough")


def test_what_the_end_overtakes_is_under_way_and_what_comes_from_outside_takes_no_time(tmp_path: Path) -> None:
    simulation = Simulation()
    simulation.add("a", Late())
    simulation.add("b", Late())
    simulation.send("a", "slow", "outside", at=0)
    simulation.send("b", "slow", "outside", at=7)
    recorder = Recorder(tmp_path / "run.mcap", simulation.plan(10), encoding="json")
    simulation.run(10, observer=recorder)
    recorder.close(end=10)
    recording = Recording(tmp_path / "run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert [(each.at, each.sent, each.sender, each.receiver) for each in recording.arrivals()] == [
        (0, 0, "", "a"),
        (7, 7, "", "b"),
    ]
    assert [(each.at, each.receiver, each.reason) for each in recording.losses()] == [
        (10, "b", "still under way at the end"),
        (10, "a", "still under way at the end"),
    ]


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_of_a_run_that_fails_what_is_final_is_kept(executor: str, tmp_path: Path) -> None:
    simulation = Simulation()
    simulation.add("a", Late())
    simulation.add("b", Late())
    simulation.send("a", "slow", at=25)
    recorder = Recorder(tmp_path / "run.mcap", simulation.plan(), encoding="json")
    with pytest.raises(ModelError, match="enough") as raised:
        simulation.run(executor=executor, observer=recorder)
    recorder.abandon(raised.value.problem, participant=raised.value.participant, at=raised.value.at)
    recording = Recording(tmp_path / "run.mcap")
    verdict = recording.verify()
    assert (verdict.condition, verdict.until) == (Condition.BROKEN_OFF, 25)
    assert [(each.at, each.sender) for each in recording.arrivals()] == [(10, "a"), (10, "b")]
