"""Plots: what is drawn of runs and sweeps, the same bytes every time, as pictures and as a page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Command, command_of
from worldline.experiments.table import Row, SweepFile
from worldline.kernel import Entity, KernelOutcome, Simulation
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.pictures.plot import Bars, Cells, Chart, Line, Panel, Plot, marks, plot
from worldline.pictures.plot.figure import histogram, thinned
from worldline.pictures.plot.over_time import shortest, time_unit
from worldline.pictures.plot.plotting import logarithmic
from worldline.recording import Recorder

numpy = pytest.importorskip("numpy")
pytest.importorskip("matplotlib")


def record(path: Path, shift: float = 0.0) -> Path:
    recorder = Recorder(path, plan(["ann", "bob"], seed=7), federation="walk", overwrite=True)
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    for number in range(20):
        for sender in ("ann", "bob"):
            text = json.dumps({"x": number * 0.5 + shift, "n": number, "mode": "<on>" if number % 2 else "off"})
            recorder.sent(sender, number, "state", number * 100_000_000, text.encode(), number * 100_000_000)
    for name in ("ann", "bob"):
        recorder.ended(name, 3_000_000_000, b"")
    recorder.close()
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return record(tmp_path / "walk.mcap")


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return command_of(monkeypatch, capsys)


def lines_of(plotted: Plot, panel: int = 0) -> list[Line]:
    content = plotted.chart.panels[panel].content
    assert not isinstance(content, Cells)
    lines = [each for each in content if isinstance(each, Line)]
    assert len(lines) == len(content)
    return lines


def bars_of(plotted: Plot) -> list[Bars]:
    content = plotted.chart.panels[0].content
    assert not isinstance(content, Cells)
    return [each for each in content if isinstance(each, Bars)]


# --- What is drawn of runs ---


def test_a_panel_for_each_name_with_a_line_for_each_member(run: Path) -> None:
    plotted = plot(run, topics=["state.x", "bob/state.n"])
    assert [panel.title for panel in plotted.chart.panels] == ["state.x", "state.n of bob"]
    assert plotted.chart.title == "walk, seed 7"
    assert plotted.chart.x_title == "simulated time (s)"
    ann, bob = lines_of(plotted)
    assert (ann.label, bob.label, ann.style, ann.color, bob.color) == ("ann", "bob", "line", 0, 1)
    assert list(ann.x[:3]) == [0.0, 0.1, 0.2]
    assert list(ann.y[:3]) == [0.0, 0.5, 1.0]
    (whole,) = lines_of(plotted, 1)
    assert (whole.style, plotted.chart.panels[1].is_whole) == ("steps", True)
    assert (whole.x[-1], whole.y[-1]) == (1.9, 19)  # The last value holds up to the end.


def test_runs_over_each_other_are_named_by_their_files(run: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = record(tmp_path / "other" / "walk.mcap", shift=3.0)
    plotted = plot(run, other, topics="ann/state.x")
    first, second = lines_of(plotted)
    assert (first.label, second.label) == (f"{tmp_path.name}/walk", "other/walk")
    assert (first.color, second.color, first.dash, second.dash) == (0, 1, 0, 0)
    assert second.y[0] - first.y[0] == 3.0
    both = lines_of(plot(run, other, topics="state.x"))
    assert [(line.color, line.dash) for line in both] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_texts_are_levels(run: Path) -> None:
    plotted = plot(run, topics="ann/state.mode")
    assert list(plotted.chart.panels[0].levels) == ["off", "<on>"]
    (line,) = lines_of(plotted)
    assert (list(line.y[:3]), line.style) == ([0, 1, 0], "steps")


def test_a_histogram_has_bars_that_runs_share(run: Path) -> None:
    ann, bob = bars_of(plot(run, topics="state.n", kind="histogram"))
    assert list(ann.edges) == [number - 0.5 for number in range(21)]
    assert list(ann.counts) == list(bob.counts) == [1] * 20
    (few, _) = bars_of(plot(run, topics="state.n", kind="histogram", bins=4))
    assert list(few.counts) == [5, 5, 5, 5]


def test_an_outcome_is_plotted_by_what_was_measured() -> None:
    class Desk(Entity):
        def start(self) -> Any:
            for number in range(3):
                self.record("queue", number)
                self.measure("wait", number / 2)
                yield "1min"

    simulation = Simulation()
    simulation.add("desk", Desk())
    outcome: KernelOutcome = simulation.run(until="10min")
    plotted = plot(outcome, topics=["queue", "desk/wait"])
    assert [panel.title for panel in plotted.chart.panels] == ["queue of desk", "wait of desk"]
    assert list(lines_of(plotted, 1)[0].y) == [0.0, 0.5, 1.0]
    with pytest.raises(UsageError, match=r"measured no 'quee' .did you mean 'queue'"):
        plot(outcome, topics="quee")


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    assert shortest(["/tf.a[0].z", "/tf.a[1].z"]) == {"/tf.a[0].z": "[0]", "/tf.a[1].z": "[1]"}
    assert shortest(["t.part", "t.seen.at"]) == {"t.part": "part", "t.seen.at": "seen.at"}
    assert shortest(["a", "a.b"]) == {"a": "a", "a.b": "b"}
    assert shortest(["same"]) == {"same": "same"}


@pytest.mark.parametrize(
    ("span", "name"),
    [(0, "ns"), (10**3, "µs"), (10**7, "ms"), (10**9, "s"), (60 * 10**9, "s"), (10**12, "min"), (10**15, "d")],
)
def test_time_is_told_in_a_unit_that_fits(span: int, name: str) -> None:
    assert time_unit(span)[1] == name


# --- Sweeps ---


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sweep"
    with SweepFile(path, {"target": "models/shop.py"}, ["doctors", "arrival"]) as file:
        points = [(doctors, arrival) for doctors in (2, 3) for arrival in ("10min", "4min")]
        for number, point in enumerate(points):
            for replicate in range(4):
                wait = number * 10 + replicate
                file.add(Row(number, replicate, replicate, point, {"wait.mean": wait}, digest="d"))
        file.add(Row(0, 4, 4, points[0], error="it broke", command="again"))
        file.finish()
    return path


def test_a_sweep_has_lines_with_bands(sweep: Path) -> None:
    pytest.importorskip("scipy")
    plotted = plot(sweep, topics="wait")
    first, second = lines_of(plotted)
    assert (first.label, second.label) == ("arrival = 4min", "arrival = 10min")  # Times by their size.
    assert (list(first.x), list(first.y)) == ([2.0, 3.0], [11.5, 31.5])
    assert first.low[0] == pytest.approx(11.5 - 3.182446 * 1.2909944 / 2)
    assert plotted.chart.subtitle == "17 runs of shop.py, 1 failed"
    by_doctors = plot(sweep, topics="wait.mean", x="arrival", by="doctors")
    assert list(by_doctors.chart.ticks) == ["4min", "10min"]
    assert [line.label for line in lines_of(by_doctors)] == ["doctors = 2", "doctors = 3"]


def test_a_sweep_as_a_heat_map_and_as_bars(sweep: Path) -> None:
    (panel,) = plot(sweep, topics="wait", kind="heat").chart.panels
    assert isinstance(panel.content, Cells)
    assert (list(panel.content.columns), list(panel.content.rows)) == (["2", "3"], ["4min", "10min"])
    assert [list(row) for row in panel.content.values] == [[11.5, 31.5], [1.5, 21.5]]
    assert [bar.label for bar in bars_of(plot(sweep, topics="wait", kind="histogram", by="doctors"))] == [
        *("doctors = 2", "doctors = 3"),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topics": "wat"}, "has no measure 'wat' (did you mean 'wait'?)"),
        ({"topics": "wait", "x": "doctor"}, "has no parameter 'doctor' (did you mean 'doctors'?)"),
        ({}, "name a measure as the topic, such as wait.mean"),
        ({"topics": "wait", "start": "1s"}, "this is a sweep"),
        ({"topics": "wait", "kind": "points"}, "a sweep isn't drawn as points"),
    ],
)
def test_what_a_sweep_doesnt_have(sweep: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        plot(sweep, **given)
    assert words in str(raised.value)


# --- Lines of many points ---


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=300),
    st.integers(1, 20),
    st.lists(st.integers(0, 5), min_size=300, max_size=300),
)
def test_a_thinned_line_has_the_extremes_of_every_column(values: list[float], columns: int, steps: list[int]) -> None:
    times = numpy.cumsum(steps[: len(values)]).astype(float)
    x, y = thinned(times, values, columns)
    given_values = numpy.array(values)
    assert len(x) <= max(4 * columns, min(len(values), 4 * columns))
    points = {*zip(times.tolist(), given_values.tolist(), strict=True)}
    assert all((a, b) in points or b != b for a, b in zip(x.tolist(), y.tolist(), strict=True))
    assert (x[0], x[-1]) == (times[0], times[-1])
    edges = numpy.linspace(times[0], times[-1], columns, endpoint=False)
    column, kept = numpy.searchsorted(edges, times, "right"), numpy.searchsorted(edges, x, "right")
    for each in {*column.tolist()}:
        before, after = given_values[column == each], y[kept == each]
        if numpy.isfinite(before).any():
            assert numpy.nanmin(before) == numpy.nanmin(after)
            assert numpy.nanmax(before) == numpy.nanmax(after)


def test_counts_of_a_histogram_are_those_of_the_numbers() -> None:
    ((edges, counts),) = histogram([[0.5, float("nan"), float("inf"), 1.5, 1.75]], 2)
    assert (list(edges), list(counts)) == ([0.5, 1.125, 1.75], [1, 2])
    assert [list(each[1]) for each in histogram([[3.25], [3.25]])] == [[1], [1]]
    with pytest.raises(UsageError, match="no numbers to count"):
        histogram([[float("nan")]])


# --- The files ---


@pytest.mark.long
def test_a_plot_has_the_same_bytes_in_any_process(run: Path, tmp_path: Path) -> None:
    here = plot(run, topics=["state.x", "state.mode"])
    code = f"from worldline.pictures.plot import plot\np = plot({str(run)!r}, topics=['state.x', 'state.mode'])\n"
    code += "import matplotlib; matplotlib.rcParams['lines.linewidth'] = 9; matplotlib.rcParams['font.size'] = 30\n"
    code += f"p.save({str(tmp_path / 'b.svg')!r}); p.save({str(tmp_path / 'b.png')!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100, env={**_environment(), "PYTHONHASHSEED": "5"})
    assert (tmp_path / "b.svg").read_text() == here.svg()
    assert (tmp_path / "b.png").read_bytes() == here.png()


@pytest.mark.long
def test_a_plot_has_the_same_bytes_however_often_it_is_drawn() -> None:
    """What lays plots out finds places that differ in their last bits, by luck: pictures mustn't show that."""
    line = Line.through(((time, (time * 7919) % 101 - 50.0) for time in range(100)), "a")
    several = [line, Line.through([(0.0, 1.0)], "b", color=1), Line.through([], "c", color=2)]
    panels = (Panel(title="t", content=several), Panel(title="u", content=several, limits=(-6, 6)), marks({"m": [3.0]}))
    drawn = {Plot(Chart(title="T", subtitle="s", x_title="x", panels=panels)).svg() for _ in range(6)}
    assert len(drawn) == 1


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_a_picture_is_svg_without_a_date(run: Path) -> None:
    text = plot(run, topics="state.x", title="a <b> & $c$ _d").svg()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"20\d\d-\d\d-\d\d|<script|http://(?!www\.w3\.org|purl\.org|creativecommons)", text)


def test_any_name_and_any_number_can_be_drawn() -> None:
    strange = [0.0, float("nan"), float("inf"), -float("inf"), 1e308, -1e-308]
    names = (r"$\frac{", "_hidden", "名前", "a" * 300, "<b>&", "")
    lines = [Line(label=name, x=[0, 1, 2, 3, 4, 5], y=strange, color=place) for place, name in enumerate(names)]
    alone = Line(label="one", x=[0.0], y=[1.0], style="steps")
    for content in (lines, [alone], [Line(label="none", x=[], y=[])]):
        for levels in ((), names[:2]):
            panel = Panel(title=r"$\frac{", content=content, levels=levels, y_title="$", is_whole=not levels)
            drawn = Plot(Chart(title=r"$\frac{", subtitle="$x", x_title="$y", panels=[panel]))
            ElementTree.fromstring(drawn.svg())
            assert "NaN" not in re.findall(r'"application/json">(.*?)</script>', drawn.html())[0]
    many = Line(label="m", x=range(10_000), y=[float("nan")] * 10_000)
    ElementTree.fromstring(Plot(Chart(title="t", panels=[Panel(title="p", content=[many])])).svg())


def test_the_page_needs_nothing_else_and_escapes_texts(run: Path) -> None:
    page = plot(run, topics=["state.mode", "state.x"], title="</script><b>").html()
    assert "default-src 'none'" in page
    assert "<b>" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", page)
    panels = chart_in(page)["panels"]
    assert panels[0]["levels"] == ["off", "<on>"]
    assert panels[1]["lines"][0]["y"][:3] == [0.0, 0.5, 1.0]
    bars = plot(run, topics="state.x", kind="histogram").html()
    assert chart_in(bars)["panels"] == []
    picture = b64decode(re.findall(r'<img id="picture" alt="[^"]*" src="data:image/svg\+xml;base64,([^"]+)">', bars)[0])
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def chart_in(page: str) -> Any:
    """Return the chart that a page has in it."""
    return json.loads(re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)[0])["chart"]


def test_the_command_writes_what_its_ending_says(worldline: Command, run: Path) -> None:
    assert worldline("plot", "walk.mcap", "--topic", "state.x") == (0, "", "written to walk.svg\n")
    assert Path("walk.svg").read_text() == plot(run, topics="state.x").svg()
    assert worldline("plot", "walk.mcap", "--topic", "state.x", "--from", "ann", "-o", "a.png")[0] == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert worldline("plot", "walk.mcap", "walk.mcap", "--topic", "state", "--kind", "points", "-o", "a.html")[0] == 2
    assert (
        worldline("plot", "walk.mcap", "--topic", "state.n", "--start", "1s", "--until", "2s", "-o", "a.html")[0] == 0
    )
    assert "simulated time (ms)" in Path("a.html").read_text()


def test_bad_input(worldline: Command, run: Path, tmp_path: Path) -> None:
    Path("text.txt").write_text("no")
    for arguments, words in (
        (("walk.mcap",), "name a field as the topic, such as state.x, state.n, state.mode"),
        (("walk.mcap", "--topic", "stat.x"), "has no field 'stat.x' (did you mean 'state.x'?)"),
        (("walk.mcap", "--topic", "state.x", "--from", "an"), "has no member 'an' (did you mean 'ann'?)"),
        (("walk.mcap", "--topic", "state"), "has both numbers and texts"),
        (("walk.mcap", "--topic", "state.x", "-o", "a.pdf"), "let it end in .svg, .png, .html"),
        (("walk.mcap", "--topic", "state.x", "-o", "no/a.svg"), "there is no folder no"),
        (("walk.mcap", "--topic", "state.x", "--start", "2s", "--until", "1s"), "nothing lies between"),
        (("walk.mcap", "--topic", "state.x", "--start", "100s"), "has nothing of 'state.x' from 100s on"),
        (("walk.mcap", "--topic", "state.x", "--kind", "heat"), "a heat map is for sweeps"),
        (("walk.mcap", "--topic", "state.x", "--by", "doctors"), "is for sweeps"),
        (("gone.mcap", "--topic", "state.x"), "there is no file gone.mcap"),
        (("text.txt", "--topic", "state.x"), "text.txt isn't an MCAP file"),
    ):
        code, output, errors = worldline("plot", *arguments)
        assert (code, output) == (2, ""), arguments
        assert words in errors
        assert errors.count("\n") == 1
    assert not list(tmp_path.glob("*.svg"))


def test_without_matplotlib_it_says_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plotted = plot(run, topics="state.x")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"needs matplotlib, which isn't installed \(make extras WITH=plot"):
        plotted.svg()


def test_logarithmic_axes_leave_out_what_has_no_logarithm(sweep: Path) -> None:
    low, high = [-1, 0, 50, 5000], [1, 2, 150, 15_000]
    lines = [Line(label="grows", x=[0, 1, 10, 100], y=[-1, 1, 100, 10_000], low=low, high=high)]
    chart = logarithmic(Chart(title="growth", panels=[Panel(title="", content=lines)]), "xy")
    (ax,) = Plot(chart).figure().axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    shown = ax.lines[0].get_xydata()
    assert shown.tolist() == [[1, 1], [10, 100], [100, 10_000]]
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert "100" in texts
    assert not any("$" in text for text in texts)
    assert Plot(chart).svg() == Plot(chart).svg()
    assert "<canvas" not in Plot(chart).html()
    many = Line(label="many", x=[*range(100_000)], y=[*range(100_000)])
    kept, _ = thinned(many.x, many.y, 100, by_powers=True)
    assert kept[:10].tolist() == [*range(1, 11)]
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (sweep, {"kind": "heat", "log": "y"}, "a heat map has no logarithmic axes"),
        (sweep, {"kind": "histogram", "log": "x"}, "the horizontal axis is of bars"),
        (sweep, {"log": "z"}, "'z' isn't a choice of axes"),
    ]
    for source, more, words in refused:
        with pytest.raises(UsageError, match=words):
            plot(source, topics="wait", **more)
    below = Chart(title="", panels=[Panel(title="", content=[Line(label="loss", x=[1, 2], y=[-3, 0])])])
    with pytest.raises(UsageError, match="loss has no numbers above 0 on the y axis"):
        logarithmic(below, "y")
    texts_only = Chart(title="mood", panels=[Panel(title="", content=lines, levels=["good", "bad"])])
    with pytest.raises(UsageError, match="mood is texts"):
        logarithmic(texts_only, "y")
