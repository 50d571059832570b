"""Pages that play: their scripts run to the end, names stay names whatever they are, and nothing is loaded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.pictures.portable import Page
from tests.pictures.spacetime.runs import crowd, lambdas, ping, straight
from tests.world.stage import perform, stage
from worldline.pictures.player import Kind, player_text
from worldline.pictures.spacetime import animation_html
from worldline.pictures.world.animation import Animation
from worldline.spacetime import box

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run JavaScript")

# As much of a browser as the program needs: what isn't known does nothing. It plays two seconds, then stops.
BROWSER = r"""
const elements = {}, painted = [], queue = [];
const nothing = () => new Proxy(function () {}, {
  get: (target, key) => key in target ? target[key] : key === "getContext" ? () => pen : key === "offsetWidth" ? 50 :
    key === "getBoundingClientRect" ? () => ({left: 0, top: 0, width: 800, height: 600}) : () => ({}),
  set: (target, key, value) => { target[key] = value; return true; },
});
const pen = new Proxy({}, {
  get: (target, key) => key in target ? target[key] : (...given) => {
    if (key === "fillText") painted.push(given[0]);
    if (given.some(each => typeof each === "number" && !Number.isFinite(each))) throw Error(`${key}(${given})`);
    return {width: 40};
  },
});
const made = id => elements[id] = elements[id] || Object.assign(nothing(), {
  textContent: id === "data" ? DATA : "", style: {}, checked: true, value: "1", selectedIndex: 3,
});
globalThis.document = {getElementById: made, createElement: nothing, addEventListener() {}, documentElement: {}};
globalThis.window = globalThis;
globalThis.matchMedia = () => ({matches: false, addEventListener() {}});
globalThis.getComputedStyle = () => ({getPropertyValue: () => " #000000"});
globalThis.ResizeObserver = class { observe() {} };
globalThis.requestAnimationFrame = call => queue.push(call);
globalThis.performance = {now: () => 0};
(0, eval)(PROGRAM);
for (let time = 0; queue.length; time += 50) queue.shift()(time);
console.log(JSON.stringify({clock: elements.clock.textContent, play: elements.play.textContent, painted}));
"""


def played(page: str) -> dict[str, Any]:
    """Run the script of a page in the make-believe browser, and return what is to be seen at the end."""
    _, data, program = (part.partition(">")[2].partition("</script>")[0] for part in page.split("<script"))
    script = f"const DATA = {json.dumps(data)}, PROGRAM = {json.dumps(program)};{BROWSER}"
    done = subprocess.run(["node", "-"], input=script, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["play"] == "▶ Play"
    return found


@needs_node
@pytest.mark.parametrize("iterations", [0, 100])
def test_a_world_is_played_to_the_end(iterations: int) -> None:
    animation = Animation()
    if iterations:
        perform(animation, stage(), iterations)
    said = played(animation.html())
    assert said["clock"] == f"{iterations / 100:.3f} s, step {iterations}"
    if iterations:
        assert {"left one", "right one", "west_box", "east_box", "west", "east"} <= set(said["painted"])


@needs_node
def test_agents_are_played_to_the_end() -> None:
    assert played(animation_html([], 3))["clock"] == "t = 0"
    run = crowd(5)
    said = played(animation_html(run.records, 3, boundaries=box([-6, -6], [6, 6])))
    last = max(record.at[0] for record in run.records)
    assert float(said["clock"].removeprefix("t = ")) == pytest.approx(last, rel=1e-4)
    assert {record.agent for record in run.records} <= set(said["painted"])
    assert {"alice", "bob"} <= set(played(animation_html(ping().records, 2))["painted"])


EVIL = "</script><script>alert(1)</script><!--\"'&\u2028\ud800]]>"


def page_of(kind: Kind) -> str:
    if kind == "world":
        animation = Animation(title=EVIL)
        perform(animation, stage((EVIL[:34], "<!--"), ("<i>", "]]>")))  # Models have printable names.
        return animation.html()
    records = [*straight(EVIL, (0, 0, 0), (9, 1, 1)), *lambdas(EVIL, EVIL, ((1.0, 0.1, 0.1), (2.0, 0.2, 0.2)))]
    return animation_html(records, 3, title=EVIL, boundaries=box([-6, -6], [6, 6]))


@pytest.mark.parametrize("kind", ["spacetime", "world"])
def test_a_page_is_whole_and_loads_nothing_whatever_names_are(kind: Kind) -> None:
    html = page_of(kind)
    html.encode()
    page, program = Page(html), player_text(kind, "js")
    named = page.data["names"] if kind == "spacetime" else [each["name"] for each in page.data["movers"]]
    assert f"{EVIL[:34]} one" in named if kind == "world" else named == [EVIL]
    assert not re.search("[<>&]", page.inside["data"])
    shown = EVIL.replace("\u2028", "\\u2028").replace("\ud800", "\ufffd")  # One that breaks lines is escaped.
    assert page.inside["h1"] == page.inside["title"] == shown
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert page.open == []
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|href=|@import|url\(|fetch|XMLHttp|WebSocket|innerHTML", html)
    policies = [facts for tag, facts in page.tags if tag == "meta" and facts.get("http-equiv")]
    assert policies[0]["content"] == "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    there = {facts["id"] for _, facts in page.tags if "id" in facts}
    wanted = set(re.findall(r'(?:byId|getElementById)\("(\w+)"\)', program))
    assert {"view", "play", "time", "speed", "trails", "data"} <= wanted <= there
    assert set(re.findall(r"\bdata\.(\w+)", program)) == set(page.data)
    assert "prefers-reduced-motion" in program
    assert "prefers-color-scheme:dark" in page.inside["style"]
