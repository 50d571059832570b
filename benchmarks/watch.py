"""What the page costs: a run with its page open beside the same without, and a recording of a million messages.

Both runs take turns, and every figure is a median above the slowest and the fastest. A page is open if something asks
for news as often as a page does; with playwright and Chromium, a real one also scrubs through the recording.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path

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
    for _ in range(10_000):
        me.next()
        me.publish("ball", b"1")
"""


def seconds(text: str) -> float:
    """Return how long a run took, by its own words."""
    found = re.search(r"simulated in ([\d.]+) s", text)
    if found is None:
        raise SystemExit(f"the run failed:\n{text}")
    return float(found[1])


def run(target: str, *options: str, watched: bool) -> float:
    command = [sys.executable, "-m", "worldline", "run", target, "--no-record", "--quiet", *options]
    if not watched:
        return seconds(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    running = subprocess.Popen(
        [*command, "--watch", "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    over, said = threading.Event(), []

    def look(url: str) -> None:
        while not over.wait(POLL_S):
            with urllib.request.urlopen(f"{url}news?rows=0", timeout=10) as answer:
                answer.read()

    page = None
    for line in running.stdout:
        said.append(line)
        if line.startswith("page: "):
            page = threading.Thread(target=look, args=(line.split()[1],), daemon=True)
            page.start()
        if "its page stays" in line:
            break
    over.set()
    if page is not None:
        page.join()
    running.send_signal(signal.SIGINT)
    running.wait()
    return seconds("".join(said))


def throughput(repeat: int, folder: Path) -> None:
    (folder / "rally.toml").write_text(TOML)
    (folder / "rally.py").write_text(PLAYER)
    target = str(folder / "rally.toml")
    for executor in ("unix", "in-process"):
        plain, watched = [], []
        for _ in range(repeat):
            plain.append(run(target, "--executor", executor, watched=False))
            watched.append(run(target, "--executor", executor, watched=True))
        share = statistics.median(a / b for a, b in zip(plain, watched, strict=True))
        usual, beside = statistics.median(plain), statistics.median(watched)
        print(f"{executor}: {usual:.2f} s, with its page {beside:.2f} s: {share:.0%} of the throughput")


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
    began = time.monotonic()
    show = recorded_show(Recording(path))
    assert show.reading is not None
    show.reading.join()
    print(f"{count:,} messages, {path.stat().st_size / 2**20:.0f} MB: read in {time.monotonic() - began:.2f} s")
    with PageServer([show]) as server:
        browse(server.url, count)


def browse(url: str, count: int) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no browser: install playwright and Chromium to see how fast it scrubs")
        return
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        began = time.monotonic()
        page.goto(url)
        print(f"first paint after {time.monotonic() - began:.2f} s")
        while page.evaluate("() => worldline.runs[0].count") < count:
            page.wait_for_timeout(20)
        print(f"all messages there after {time.monotonic() - began:.2f} s")
        rate = page.evaluate(
            """async () => {
                const began = performance.now();
                for (let step = 0; step < 60; step++) {
                    worldline.setWindow(step * 1e6, step * 1e6 + 2e8);
                    await new Promise(requestAnimationFrame);
                }
                return 60000 / (performance.now() - began);
            }"""
        )
        print(f"scrubs at {rate:.0f} frames/s")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--messages", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        throughput(given.repeat, Path(scratch))
        large(given.messages, Path(scratch))
