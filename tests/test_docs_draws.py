"""The page on draws: the robot cell with other draws, and what the commands print for it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.test_docs_running import retold, without_clock
from worldline import MS, Federation, Network, Participant, Program, link, run

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "draws.md"


@pytest.mark.long
def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    for name in ("robot_cell.py", "robot_cell.toml"):
        shutil.copy(ROOT / "examples" / "robot_cell" / name, tmp_path)
    text = PAGE.read_text()
    assert without_clock(retold(text, tmp_path)) == without_clock(text)


def test_the_call_from_python_replaces_what_it_names() -> None:
    arrivals: list[int] = []

    def camera(me: Participant) -> None:
        for _ in range(5):
            me.publish("image", b"picture")
            me.advance(by="10ms")

    def planner(me: Participant) -> None:
        arrivals.extend(message.arrival for message in me.messages(until="60ms"))

    programs = {"camera": Program(camera), "planner": Program(planner, subscribes=["image"])}
    federation = Federation(programs, network=Network(default=link("uniform(1ms, 9ms)")), until="60ms")
    (call,) = re.findall(r"`(run\(federation, draws=.*\))`", PAGE.read_text())
    eval(call, {"run": run, "federation": federation})
    assert len(arrivals) == 5
    assert arrivals[3] == 32 * MS
