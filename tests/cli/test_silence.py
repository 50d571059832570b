"""A step of a model that takes long is named, although the run can't tell its status meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from worldline.cli import run as silence

MODEL = """
import threading
from worldline.kernel import Entity, Simulation

class Endless(Entity):
    def start(self):
        assert threading.noticed.wait(60)

def model():
    simulation = Simulation()
    simulation.add("a", Endless())
    return simulation
"""


def test_a_step_that_takes_long_is_named_with_its_line(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticed, said = threading.Event(), list[str]()

    def remark(text: str) -> None:
        said.append(text)
        noticed.set()

    monkeypatch.setattr(threading, "noticed", noticed, raising=False)
    monkeypatch.setattr(silence, "remark", remark)
    monkeypatch.setattr(silence, "SILENT_S", 0.01)
    file = tmp_path / "endless.py"
    file.write_text(MODEL)
    code, _, err = worldline("run", str(file))
    assert (code, err) == (0, "")
    (text,) = said
    assert text.startswith("still running: one step has taken ")
    assert text.endswith(" seconds so far, in endless.py, line 7")
