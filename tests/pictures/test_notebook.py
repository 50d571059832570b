"""What notebooks show of values: tables, diagrams, pages, progress; and nothing that does anything."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from worldline.experiments.table import Row, SweepFile, read_sweep
from worldline.history.outcome import Status
from worldline.kernel import Entity, Simulation
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.model.text import ROWS_MAX, escaped, facts_html, table_html
from worldline.nodes import Node, Scheduler, Start, as_topology
from worldline.notebook import Progress, animation, diagram
from worldline.recording import Recorder, Recording
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

EVIL = "<img src=x onerror=alert(1)>\x1b[2J"


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{markup}</div>")


def test_texts_do_nothing() -> None:
    for markup in (facts_html(EVIL, [(EVIL, EVIL)]), table_html((EVIL,), [(EVIL,)])):
        assert "<img" not in markup
        assert "\x1b" not in markup
        parsed(markup)
    assert len(escaped("x" * 10_000)) == 200


def test_long_tables_say_how_much_is_left_out() -> None:
    markup = table_html(("a", "b"), ((number, number) for number in range(ROWS_MAX + 1005)))
    assert "and 1,005 more" in markup
    assert len(parsed(markup).findall(".//tbody/tr")) == ROWS_MAX
    assert table_html(("a",), []) == ""


def test_an_outcome_shows_its_digest_and_what_was_measured() -> None:
    class Desk(Entity):
        def start(self) -> Any:
            for number in range(3):
                self.record("queue", number)
                yield "1s"
            self.record("state", EVIL)

    simulation = Simulation()
    simulation.add("desk", Desk())
    outcome = simulation.run(until="4s")
    markup = outcome._repr_html_()
    texts = [cell.text for cell in parsed(markup).iter("td")]
    assert outcome.digest.hex() in texts
    assert texts[texts.index("desk/queue") :][:4] == ["desk/queue", "3", "1.25", "2"]
    assert "<img" not in markup


def test_a_recording_shows_its_topics(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.mcap", plan(["ann", "bob"], seed=3), federation="tennis & co")
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    recorder.sent("ann", 0, "ball", 5, b"1", 9)
    recorder.arrives("ann", 0, "bob", 8, 0, None)
    for name in ("ann", "bob"):
        recorder.ended(name, 10, b"")
    recorder.close()
    markup = Recording(tmp_path / "run.mcap")._repr_html_()
    texts = [cell.text for cell in parsed(markup).iter("td")]
    assert {"complete", "ann, bob", "3"} <= {*texts}
    assert texts[-3:] == ["ball", "1", "1"]
    assert "tennis &amp; co" in markup
    (tmp_path / "run.mcap").write_bytes((tmp_path / "run.mcap").read_bytes()[:-200])
    assert "the end of the file is missing" in Recording(tmp_path / "run.mcap")._repr_html_()


def test_a_sweep_shows_its_points(tmp_path: Path) -> None:
    with SweepFile(tmp_path / "a.sweep", {"target": "a.py"}, ["doctors"]) as file:
        for point, doctors in enumerate((2, 3)):
            for replicate in range(2):
                file.add(Row(point, replicate, 0, (doctors,), {"wait.mean": doctors + replicate}, digest="d"))
        file.add(Row(1, 2, 0, (3,), error=EVIL))
        file.finish()
    texts = [cell.text for cell in parsed(read_sweep(tmp_path / "a.sweep")._repr_html_()).iter("td")]
    assert texts[-6:] == ["2", "2", "2.5", "3", "3", "3.5"]
    assert texts[-7] == "1"  # failed


def test_topologies_and_nodes_are_drawn() -> None:
    class Talker(Node):
        def execute(self, event: object) -> None:
            if isinstance(event, Start):
                self.broadcast("hello")
                self.measure("starts", 1)

    ring = as_topology("ring:4")
    assert parsed(ring._repr_svg_())[0].tag.endswith("svg")
    assert diagram(ring) == ring._repr_svg_()
    traced = Scheduler.over("ring:4", Talker, seed=1, trace=True)
    traced.start_all_nodes()
    traced.run()
    picture = diagram(traced, title=EVIL)
    assert picture._repr_svg_() == str(picture)
    assert "<img" not in picture
    untraced = Scheduler.over("ring:4", Talker, seed=1)
    with pytest.raises(UsageError, match="wasn't traced"):
        diagram(untraced)


def test_agents_are_drawn_and_played() -> None:
    def simulated(*, trace: bool) -> Any:
        simulation = ForwardSimulation(Minkowski(2), trace=trace)
        with simulation:
            agent = Agent()
            agent.name = "ann"
        return simulation.run(until=5)

    traced = simulated(trace=True)
    assert parsed(diagram(traced)._repr_svg_())[0].tag.endswith("svg")
    frame = animation(traced)._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "<script" not in frame  # It is escaped, and has a policy of its own.
    with pytest.raises(UsageError, match="wasn't traced"):
        diagram(simulated(trace=False))
    with pytest.raises(UsageError, match="can't be drawn"):
        diagram(42)


class _Display:
    """Stands for IPython."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, html: str, display_id: bool) -> _Display:
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)

    @staticmethod
    def HTML(html: str) -> str:  # noqa: N802 - as it is called there.
        return html


def test_progress_is_shown_in_a_notebook_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    display = _Display()
    silent = Progress()
    silent(3, 3)
    assert "3 of 3 runs" in silent.html
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", display)  # type: ignore[arg-type]
    progress = Progress("<shop>")
    progress(0, 10)
    progress(1, 10)  # Too soon to be shown.
    progress(10, 10)
    assert len(display.shown) == 2
    assert display.shown[-1].startswith("&lt;shop&gt; <progress")
    assert "10 of 10 runs" in display.shown[-1]
    watching = Progress()
    watching(Status(time=500_000_000, end=1_000_000_000, events=7))
    assert 'value="0.5000"' in display.shown[-1]
    assert "500ms, 7 events" in display.shown[-1]
