"""What the page costs: a run with its page open beside the same without, and a recording of a million messages.

Both runs take turns, and every figure is a median above the slowest and the fastest. A page is open if something asks
for news as often as a page does, and for what it hasn't got. With playwright and Chromium, a real one also opens the
recording and scrubs through it; and with `--soak`, it looks at a run for so many seconds, while the memory of both
sides is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from worldline.model import plan
from worldline.recording import Recorder, Recording
from worldline.watch.recorded import recorded_show
from worldline.watch.server import PageServer

POLL_S = 0.2
TOML = """
name = "rally"
link.latency = "1ms"

[[participants]]
names = ["ann", "bob"]
entry = "rally:player"
publishes = ["ball"]
subscribes = ["ball"]
"""
PLAYER = """
def player(me):
    if me.name == "ann":
        me.publish("ball", b"0")
    for _ in range(30_000):
        me.next()
        me.publish("ball", b"1")
"""


def seconds(text: str) -> float:
    """Return how long a run took, by its own words."""
    found = re.search(r"simulated in ([\d.]+) s", text)
    if found is None:
        raise SystemExit(f"the run failed:\n{text}")
    return float(found[1])


def run(target: str, *options: str, watched: bool) -> tuple[float, float]:
    """Return how long a run took, and the processor time of its own process.

    Participants have theirs, of which they spend much on waiting: how much depends on what else the machine does.
    """
    command = [sys.executable, "-m", "worldline", "run", target, "--no-record", "--quiet", *options]
    if watched:
        command += ["--watch", "--no-browser"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=_interruptible
    )
    assert running.stdout is not None
    over, said = threading.Event(), []

    def look(url: str) -> None:
        rows = 0
        while not over.wait(POLL_S):
            with urllib.request.urlopen(f"{url}news?rows={rows}", timeout=10) as answer:
                news = answer.read()
            head = json.loads(news[4 : 4 + int.from_bytes(news[:4], "little")])
            rows = head["first"] + head["count"]

    page = None
    for line in running.stdout:
        said.append(line)
        if line.startswith("page: "):
            page = threading.Thread(target=look, args=(line.split()[1],), daemon=True)
            page.start()
        if "its page stays" in line:
            over.set()
            if page is not None:
                page.join()
            running.send_signal(signal.SIGINT)
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)  # So it can still be asked.
    ticks = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    running.wait()
    return seconds("".join(said)), sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _interruptible() -> None:
    """Let Ctrl-C end it, even if this was started in the background of a shell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def throughput(repeat: int, folder: Path) -> None:
    for name, player in (("rally", PLAYER), ("start", PLAYER.replace("30_000", "10"))):
        (folder / f"{name}.toml").write_text(TOML.replace("rally", name))
        (folder / f"{name}.py").write_text(player)
    for executor in ("unix", "in-process"):
        plain, watched = [], []
        for _ in range(repeat):
            for is_watched, figures in ((False, plain), (True, watched)):
                took, processor = run(str(folder / "rally.toml"), "--executor", executor, watched=is_watched)
                _, starting = run(str(folder / "start.toml"), "--executor", executor, watched=is_watched)
                figures.append((took, processor - starting))
        for place, what in enumerate(("by the clock", "of the run's own processor time, without what a start takes")):
            usual, beside = (statistics.median(each[place] for each in figures) for figures in (plain, watched))
            print(
                f"{executor}: {usual:.2f} s {what}, with its page {beside:.2f}: {usual / beside:.0%} of the throughput"
            )


def large(count: int, folder: Path) -> None:
    """Open a long recording, and scrub through it in a browser, if there is one."""
    path = folder / "large.mcap"
    recorder = Recorder(path, plan([f"p{n}" for n in range(20)]), federation="large")
    for n in range(20):
        recorder.began(f"p{n}", 0)
    for number in range(count):
        who, at = number % 20, number * 1000
        recorder.sent(f"p{who}", number // 20, "pose", at, b'{"x":%d}' % number, at + 500)
        recorder.arrives(f"p{who}", number // 20, f"p{(who + 1) % 20}", at + 500, 0, None)
        if number % 1000 == 0:
            recorder.passed(at)
    for n in range(20):
        recorder.ended(f"p{n}", count * 1000, b"\x01")
    recorder.passed(count * 2000)
    recorder.close()
    print(f"{count:,} messages, {path.stat().st_size / 2**20:.0f} MB")
    began, processor = time.monotonic(), time.process_time()
    show = recorded_show(Recording(path))
    with PageServer([show]) as server:
        browse(server.url, count, began)
    assert show.reading is not None
    show.reading.join()
    print(f"  reading and serving took {time.process_time() - processor:.2f} s of processor time")


SCRUB = """async ([from, length, step]) => {
    const times = [];
    for (let place = 0; place < 60; place++) {
        const began = performance.now();
        worldline.setWindow(from + place * step, from + place * step + length);
        worldline.setNow(from + place * step + length / 2);
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - began);
    }
    return times.sort((a, b) => a - b)[30];
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Open a page in a real browser; None, if there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        print("no browser: install playwright and Chromium to see how fast it scrubs")
        yield None
        return
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 800})
        browser.close()


def browse(url: str, count: int, began: float) -> None:
    with chromium() as page:
        if page is None:
            return
        started = time.monotonic()
        page.goto(url)
        while page.evaluate("() => worldline.runs[0].count") < count:
            page.wait_for_timeout(20)
        there = time.monotonic()
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"  first paint {paint / 1000:.2f} s after the address was opened")
        print(f"  all messages are there {there - started:.2f} s after that, {there - began:.2f} s after the command")
        whole = count * 1000
        for name, length in (("all of it", whole), ("a fifth of it", whole / 5), ("a thousandth", whole / 1000)):
            took = page.evaluate(SCRUB, [0, length, (whole - length) / 60])
            print(f"  scrubs through {name} at {1000 / took:.0f} frames/s (median)")


def soak(seconds_max: float, folder: Path) -> None:
    """Look at a run that goes on, and say how much memory its process and the tab have."""
    (folder / "long.toml").write_text(TOML.replace("rally:player", "long:player"))
    (folder / "long.py").write_text(PLAYER.replace("range(30_000)", "range(1_000_000_000)"))
    command = [sys.executable, "-m", "worldline", "run", str(folder / "long.toml"), "--no-record", "--quiet"]
    running = subprocess.Popen(
        [*command, "--executor", "in-process", "--watch", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=_interruptible,
    )
    assert running.stdout is not None
    url = next(line for line in running.stdout if line.startswith("page: ")).split()[1]
    try:
        with chromium() as page:
            if page is None:
                return
            page.goto(url)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            began = time.monotonic()
            while (passed := time.monotonic() - began) < seconds_max:
                page.wait_for_timeout(1000 * min(20.0, seconds_max / 6))
                session.send("HeapProfiler.collectGarbage")
                facts = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
                tab = facts["JSHeapUsedSize"] + page.evaluate(BUFFERS)
                memory = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{running.pid}/status").read_text())
                assert memory is not None
                told = page.evaluate("() => worldline.runs[0].first + worldline.runs[0].count")
                print(
                    f"  after {passed:4.0f} s and {told:>10,} messages: run and server {int(memory[1]) / 1024:.0f} MB,"
                    f" tab {tab / 2**20:.0f} MB"
                )
    finally:
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGINT)
        running.communicate()


BUFFERS = """() => Object.values(worldline.runs[0].columns ?? {}).reduce((sum, each) => sum + each.byteLength, 0)"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if given.repeat:
            throughput(given.repeat, Path(scratch))
        if given.messages:
            large(given.messages, Path(scratch))
        if given.soak:
            soak(given.soak, Path(scratch))
