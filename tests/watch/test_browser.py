"""The page in a real browser: what it shows, what it does when it is clicked, and that it asks no other host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.world.stage import poses_at, stage
from worldline.cli.world import Placements
from worldline.history.observer import MEASURE, UNDER_WAY
from worldline.history.outcome import Status
from worldline.model import FOREVER, plan
from worldline.pictures.plot.chart import Chart, Line, Panel
from worldline.pictures.plot.plotting import page_of
from worldline.recording import Recorder, Recording
from worldline.spacetime.examples import find
from worldline.watch.agents import agents_page
from worldline.watch.live import LiveRun
from worldline.watch.recorded import recorded_show
from worldline.watch.server import PageServer
from worldline.world.foxglove import WorldTeller
from worldline.world.spectator import SeveralSpectators

playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed: pip install '.[dev]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install it (apt install chromium)"),
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
HOSTILE = "<img src=x onerror=window.hacked=1>"
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
CELL = Path(__file__).parents[2] / "examples" / "robot_cell" / "robot_cell.toml"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[[str], Any]]:
    """Open a page; in the end it may have logged no error, and asked no other host."""
    wrong: list[str] = []
    context = browser.new_context(viewport={"width": 1100, "height": 700})

    def opening(url: str) -> Any:
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        host = url.partition("//")[2].partition("/")[0]
        page.on("request", lambda asked: None if host in asked.url else wrong.append(f"asked {asked.url}"))
        page.goto(url)
        until(page, "window.worldline && worldline.runs.every(run => run.count > 0)")
        return page

    yield opening
    context.close()
    assert wrong == []


def until(page: Any, condition: str) -> Any:
    """Wait until something holds on the page. Its policy forbids what playwright would do for that."""
    deadline = time.monotonic() + 60
    while not (found := page.evaluate(f"() => {condition}")):
        assert time.monotonic() < deadline, condition
        page.wait_for_timeout(50)
    return found


def recorded(path: Path, *, seed: int = 0, count: int = 40) -> Recording:
    recorder = Recorder(path, plan(["ann", "bob", HOSTILE], seed=seed), federation=HOSTILE)
    for name in ("ann", "bob", HOSTILE):
        recorder.began(name, 0)
    for number in range(count):
        at = number * 1_000_000
        text = json.dumps({"x": number + seed * (number > 20), "text": HOSTILE}).encode()
        recorder.sent("ann", number, "pose", at, text, at + 400_000)
        recorder.arrives("ann", number, "bob", at + 400_000, 0, HOSTILE if number == 10 else None)
    recorder.noted("bob", "worldline/log", 5_000_000, json.dumps({"text": HOSTILE}).encode())
    for name in ("ann", "bob", HOSTILE):
        recorder.ended(name, count * 1_000_000, b"\x01")
    recorder.passed(10**12)
    recorder.close()
    return Recording(path)


def test_a_recording_is_scrubbed_and_read(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    with PageServer([recorded_show(recorded(tmp_path / "a.mcap"))]) as server:
        page = opened(server.url)
        until(page, "document.getElementById('phase').textContent === 'over'")
        slider = page.locator("#time")
        slider.fill("5000")
        assert abs(page.evaluate("worldline.look.now / worldline.runs[0].end") - 0.5) < 0.01
        page.evaluate("worldline.setWindow(0, 6e6)")
        page.evaluate(DRAWN)
        spot = page.evaluate("worldline.spotOf(0, 3)")
        page.mouse.click(*spot)
        until(page, "document.getElementById('payload')")
        assert json.loads(page.inner_text("#payload")) == {"x": 3, "text": HOSTILE}
        page.select_option("#seek", "loss")
        page.click("#next")
        assert page.evaluate("worldline.look.now") == 10_400_000
        page.click("#tab-signals")
        page.locator("label", has_text="x").locator("input").check()
        until(page, "worldline.signals().length === 1")
        page.click("#tab-overview")
        until(page, "document.querySelector('.members')")
        until(page, f"document.querySelector('.members').innerText.includes({json.dumps(HOSTILE)})")
        assert page.evaluate("window.hacked") is None


def test_of_the_members_only_what_differs_is_drawn_anew(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    with PageServer([recorded_show(recorded(tmp_path / "a.mcap"))]) as server:
        page = opened(server.url)
        until(page, "document.getElementById('phase').textContent === 'over'")
        page.click("#tab-overview")
        page.evaluate("worldline.setNow(20e6)")
        page.evaluate(DRAWN)
        before = page.inner_text(".members")
        page.evaluate(
            """() => {
                window.changes = [];
                new MutationObserver(all => window.changes.push(...all.map(each => each.target.textContent)))
                    .observe(document.getElementById("view-overview"), {childList: true, subtree: true});
            }"""
        )
        page.evaluate("worldline.setNow(21e6)")
        page.evaluate(DRAWN)
        # Time and number of what ann has sent, and what bob has received.
        assert page.evaluate("window.changes") == ["21 ms", "22", "20.4 ms", "20"]
        page.evaluate("worldline.setNow(20e6)")
        page.evaluate(DRAWN)
        assert page.inner_text(".members") == before


def test_no_text_hides_anything_or_turns_what_is_around_it(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    recorder = Recorder(tmp_path / "run.mcap", plan(["ann"]))
    recorder.began("ann", 0)
    recorder.sent("ann", 0, "pose", 0, b'{"text":"\\u202eab\\u0000"}', 0)
    recorder.noted("ann", "worldline/log", 1, b'{"text":"\\u202eab\\u2066"}')
    recorder.noted("ann", "worldline/state", 2, b'{"k\\u202e":"\\u202eab"}')
    recorder.ended("ann", 9, b"\x01")
    recorder.passed(10)
    recorder.close()
    with PageServer([recorded_show(Recording(tmp_path / "run.mcap"))]) as server:
        page = opened(server.url)
        says = until(page, "worldline.runs[0].notes.length === 2 && worldline.runs[0].notes.map(note => note.says)")
        assert says == ["\\u202eab\\u2066", "k\\u202e \\u202eab"]
        page.evaluate("worldline.select(worldline.runs[0], 0)")
        until(page, "document.getElementById('payload')")
        assert "\\u202eab\\u0000" in page.inner_text("#payload")


def test_a_day_of_numbers(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    """Payloads that are numbers are plotted, times are in words, and of many messages all losses are drawn."""
    hour, count = 3_600_000_000_000, 10_000
    recorder = Recorder(tmp_path / "day.mcap", plan(["ann", "bob"]), federation="day")
    recorder.began("ann", 0)
    recorder.began("bob", 0)
    for number in range(count):
        at = number * 24 * hour // count
        recorder.sent("ann", number, "warmth", at, str(20 + number % 3).encode(), at + 1000)
        recorder.arrives("ann", number, "bob", at + 400, 0, "lost" if number in (3001, 7003) else None)
    recorder.ended("ann", 30 * hour, b"\x01")
    recorder.ended("bob", FOREVER, b"\x01")
    recorder.passed(10**18)
    recorder.close()
    with PageServer([recorded_show(Recording(tmp_path / "day.mcap"))]) as server:
        page = opened(server.url)
        until(page, "worldline.runs[0].status.phase === 'over'")
        until(page, "document.getElementById('figures').innerText.includes('at 1 d 6 h')")
        rows, stride = page.evaluate(f"worldline.runs[0].some(0, {count}, 500)")
        blocks = [row // 32 for row in rows[:-2]]
        assert (stride, rows[-2:], blocks) == (32, [3001, 7003], sorted(set(blocks)))
        assert len(blocks) > 300
        assert {row % 4 for row in rows} == {0, 1, 2, 3}  # What takes turns is all there.
        assert set(rows) <= set(page.evaluate(f"worldline.runs[0].some(0, {count}, 1000)[0]"))  # Zooming in adds to it.
        page.evaluate(f"worldline.setNow({9.5 * hour})")
        until(page, "document.getElementById('clock').innerText === '9 h 30 min'")
        page.click("#tab-overview")
        until(page, "document.querySelectorAll('table')[1]?.innerText.includes('1')")
        page.click("#tab-signals")
        until(page, "worldline.signals().length === 1 && worldline.signals()[0].topic === 'warmth'")


def test_what_the_end_overtook_is_no_loss(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    names = [f"a participant with a long name, {number}" for number in range(40)]
    recorder = Recorder(tmp_path / "run.mcap", plan(names))
    for name in names:
        recorder.began(name, 0)
    for number, (sender, receiver) in enumerate(pairwise(names)):
        lost = UNDER_WAY if number > 35 else "lost" if number == 7 else None
        recorder.sent(sender, 0, "pose", number * 1000, b"1", 90_000)
        recorder.arrives(sender, 0, receiver, 90_000 if number > 35 else number * 1000 + 500, 0, lost)
    for name in names:
        recorder.ended(name, 40_000, b"\x01")
    recorder.passed(10**9)
    recorder.close()
    with PageServer([recorded_show(Recording(tmp_path / "run.mcap"))]) as server:
        page = opened(server.url)
        until(page, "worldline.runs[0].status.phase === 'over'")
        until(page, "document.getElementById('figures').innerText.includes('1 not received · 3 under way at the end')")
        assert page.evaluate("[worldline.runs[0].end, worldline.runs[0].lost]") == [40_000, [7]]
        page.click("#tab-overview")  # All that there is, before a moment is chosen.
        until(page, "document.querySelectorAll('.members tr')[8]?.innerText.split(/\\s+/).includes('1')")
        page.click("#tab-network")
        page.evaluate(DRAWN)
        assert page.evaluate("worldline.views().network.isLarge") is False  # Names beside dots, since they are long.
        assert page.evaluate("worldline.runs[0].ways.size") == len(names) - 1


def test_two_recordings_show_their_first_difference(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    one, other = recorded(tmp_path / "a.mcap"), recorded(tmp_path / "b.mcap", seed=1)
    content = {
        "difference": {"text": "first cause: ann", "at": 21_000_000, "chain": [{"member": "ann", "at": 21_000_000}]}
    }
    with PageServer([recorded_show(one), recorded_show(other)], extras=content) as server:
        page = opened(server.url)
        until(page, "worldline.look.now === 21e6")
        until(page, "document.getElementById('alarm').innerText === 'first cause: ann'")
        until(page, "document.querySelectorAll('#view-diagram canvas[role=img]').length === 2")


def test_a_failure_is_stepped_through(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    show = recorded_show(recorded(tmp_path / "a.mcap"))
    assert show.reading is not None
    show.reading.join()
    show.status |= {"failure": f"bob at 6ms: property failed: {HOSTILE}", "failedAt": 6_000_000, "failedBy": "bob"}
    steps = [("ann", 1_000_000, "sent  pose", False), ("bob", 1_400_000, HOSTILE, True), ("bob", 1_400_000, "x", False)]
    story = {
        "circumstances": ["all is usual, but", f"  {HOSTILE}"],
        "left_out": 0,
        "steps": [{"who": who, "at": at, "text": text, "matters": matters} for who, at, text, matters in steps],
    }
    current = "[...document.querySelectorAll('#story ol button')].findIndex(each => each.hasAttribute('aria-current'))"
    with PageServer([show], extras={"story": story}) as server:
        page = opened(server.url)
        until(page, "document.querySelectorAll('#story ol li').length === 4")  # The failure is the last step.
        assert page.inner_text("#story .failure").endswith(f"property failed: {HOSTILE}")
        seen = []
        for _ in range(5):
            page.keyboard.press("ArrowRight")
            page.evaluate(DRAWN)
            seen.append((page.evaluate("worldline.look.now"), page.evaluate(current)))
        assert seen == [(1e6, 0), (1.4e6, 1), (1.4e6, 2), (6e6, 3), (6e6, 3)]
        page.keyboard.press("ArrowLeft")
        until(page, f"{current} === 2")
        page.locator("#time").fill("0")
        until(page, f"{current} === -1")
        page.click("#story .matters")
        until(page, f"{current} === 1")
        page.keyboard.press("ArrowRight")
        until(page, f"{current} === 2")
        until(page, "document.activeElement.hasAttribute('aria-current')")  # No other step looks chosen.
        assert page.evaluate("window.hacked") is None


def test_a_file_needs_no_server(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    show = recorded_show(recorded(tmp_path / "a.mcap"))
    file = tmp_path / "page.html"
    file.write_text(show.page())
    page = opened(file.as_uri())
    page.evaluate("worldline.select(worldline.runs[0], 7)")
    until(page, "document.getElementById('payload')")
    assert '"x": 7' in page.inner_text("#payload")
    page.keyboard.press("p")
    assert page.evaluate("document.documentElement.classList.contains('large')")


def test_agents_are_played_by_class(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    simulation = find("epidemic").build(seed=0, trace=True, people=6)
    outcome = simulation.run(until=10)
    file = tmp_path / "agents.html"
    file.write_text(agents_page(outcome.records, simulation.scene(10), "people"))
    page = opened(file.as_uri())
    shown = "document.querySelector('#view-space .legend').innerText"
    until(page, f"{shown}.includes('well 5') && {shown}.includes('ill 1')")
    assert page.get_attribute("#tab-space", "aria-selected") == "true"
    page.locator("#time").fill("10000")
    until(page, f"!{shown}.includes('well 5') || {shown}.includes('ill 1')")
    page.click("#tab-diagram")
    page.evaluate("worldline.setNow(4e9)")
    page.click("#tab-space")  # Drawn before it is known how large it is now, with messages under way.
    page.evaluate(DRAWN)


def test_a_world_is_colored_by_secondary(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    live = LiveRun({"name": "world", "room": "world"})
    spectators = SeveralSpectators([WorldTeller(live.observer), Placements(live.show)])
    world = stage()
    spectators.began(world)
    names = list(world.models)
    for iteration, owners in ((0, ["a"] * len(names)), (5, ["a", *["b"] * (len(names) - 1)])):
        spectators.changed(iteration, iteration, world.models, dict(zip(names, owners, strict=True)))
        for step in range(iteration, iteration + 5):
            spectators.stepped(step, step, poses_at(world.models, 0.1 * step), bytes(16))
    spectators.ended(10, 10)
    file = tmp_path / "world.html"
    file.write_text(live.page())
    page = opened(file.as_uri())
    page.click("text=By secondary")
    lower = "document.querySelector('#view-world .lower')"
    until(page, f"{lower}.innerText.trim().split(/\\s+/).slice(-2).join() === 'a,b'")
    mover = next(name for name, model in world.models.items() if not model.static and name != names[0])
    owner = "([name, time]) => { worldline.setNow(time); return worldline.views().world.owner(name).name; }"
    assert [page.evaluate(owner, [mover, time]) for time in (0, 10 * world.step)] == ["a", "b"]


def test_a_chart_is_zoomed_and_read(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    lines = [Line(label=HOSTILE, x=[0, 1, 2, 3], y=[0.0, 1.5, None, 4.0]), Line(label="b", x=[0, 3], y=[1, 2], color=1)]
    file = tmp_path / "chart.html"
    file.write_text(page_of(Chart(title=HOSTILE, x_title="t", panels=[Panel(title="p", content=lines)])))
    page = opened(file.as_uri())
    until(page, "document.querySelector('.chart canvas[role=img]').width > 300")
    area = page.locator(".chart canvas[role=img]").bounding_box()
    middle = area["y"] + 100
    page.mouse.move(area["x"] + 62, middle)
    until(page, "document.querySelector('.chart output').textContent === '0'")
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, middle)
    page.mouse.up()
    until(page, "worldline.views().chart.seen[1] < 2")
    page.locator(".chart li button").first.click()
    assert page.get_attribute(".chart li button >> nth=0", "aria-pressed") == "false"
    assert page.evaluate("window.hacked") is None


def test_what_a_learner_earns_is_drawn_while_it_learns(opened: Callable[[str], Any]) -> None:
    live = LiveRun({"name": "pilot", "room": "learning"})
    tell = live.watching(None)

    def episode(number: int) -> None:
        at = 1000 * number
        live.observer.sent("pilot", number, "push", at, b"1", at)
        live.observer.noted("pilot", MEASURE, at, b'{"reward":0.5}')
        live.observer.noted("pilot", MEASURE, at + 900, b'{"return":%d}' % number)
        live.observer.finish(at + 1000)
        tell(Status(time=at + 1000, events=number))

    with PageServer([live.show]) as server:
        live.observer.began("pilot", 0)
        episode(0)
        page = opened(server.url)
        until(page, "worldline.signals()[0]?.field === 'return'")
        page.evaluate("worldline.seen = []; setInterval(() => worldline.seen.push(worldline.signals().length), 1)")
        for number in (1, 2):
            episode(number)
            until(page, f"worldline.signals()[0]?.values.length === {number + 1}")
        assert set(page.evaluate("worldline.seen")) == {1}  # What is drawn stays until there is more.
        assert page.evaluate("worldline.look.from <= 0")  # All episodes are seen.


def test_a_run_is_watched_and_driven(tmp_path: Path, opened: Callable[[str], Any]) -> None:
    command = [sys.executable, "-m", "worldline", "run", str(CELL), "--realtime", "0.05", "--no-record"]
    running = subprocess.Popen(
        [*command, "--watch", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert running.stdout is not None
    lines: list[str] = []
    try:
        url = next(line for line in running.stdout if lines.append(line) or line.startswith("page: ")).split()[1]
        page = opened(url)
        before = until(page, "worldline.runs[0].status.time > 0 && worldline.runs[0].status.time")
        until(page, f"worldline.runs[0].status.time > {before}")  # Numbers change.
        page.click("#pause")
        until(page, "worldline.runs[0].status.phase === 'paused'")
        at = page.evaluate("worldline.runs[0].status.time")
        page.click("#step")
        until(page, f"worldline.runs[0].status.time > {at}")
        assert page.evaluate("worldline.runs[0].status.phase") == "paused"
        page.click("#tab-waits")
        until(page, "document.querySelectorAll('#graph .node').length === 4")
        page.click("#pause")
        until(page, "worldline.runs[0].status.phase === 'running'")
        page.click("#end")
        until(page, "worldline.runs[0].status.phase === 'over'")
        until(page, "document.getElementById('digest').innerText")
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 0
