"""Pictures are made of what every viewer knows, not only browsers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures.portable import strange
from tests.pictures.spacetime.runs import crowd, ping
from tests.pictures.test_nodes import faulty_run, ran
from worldline.pictures.nodes import diagram_svg, routes_to, topology_svg
from worldline.pictures.spacetime import minkowski_svg
from worldline.pictures.svg import PAPER, document, haloed, text_at
from worldline.spacetime import LambdaField, box
from worldline.spacetime.examples import NAMES, find

DOCS = Path(__file__).parent.parent.parent / "docs"


PLOTS = {"clock-sync.svg", "clocks-beat.svg", "robot-cell.svg"}
"""Drawn by matplotlib, which writes SVG in its own way; the list of what we write ourselves isn't meant for them."""


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.svg")), ids=lambda page: page.name)
def test_pictures_in_the_docs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name not in PLOTS:
        assert strange(text) == []
        return
    used = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert used.isdisjoint({"script", "foreignObject", "filter", "mask", "image", "text"})  # Texts are outlines.
    assert re.findall(r'(?:href="|url\()(?!#)[^")]*', text) == []


@pytest.mark.parametrize("name", NAMES)
def test_diagrams_of_the_examples(name: str) -> None:
    simulation = find(name).build(trace=True)
    result = simulation.run(until=12.0)
    svg = minkowski_svg(
        result.records, simulation.space.n, field=simulation.field, title=name, boundaries=simulation.boundaries
    )
    assert strange(svg) == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_diagrams_of_everything_that_can_happen(n: int) -> None:
    walls = box([-3.0] * (n - 1), [3.0] * (n - 1)) if n > 1 else []
    run = crowd(9, n, action="wrap", side=3.0)
    assert strange(minkowski_svg(run.records, n, field=LambdaField(c=0.01), boundaries=walls, title="x")) == []
    assert strange(minkowski_svg(ping(field=LambdaField(R=(1.0, 0.0))).records, 2)) == []


def test_pictures_of_nodes() -> None:
    run = faulty_run()
    assert strange(diagram_svg(run.records, run.num_nodes, title="x")) == []
    for shape in ("torus:4x3", "random:12,p=0.3,connected,weights=1-9"):
        run = ran(shape, seed=3)
        routes = routes_to(0, [node.routing for node in run.nodes])
        assert strange(topology_svg(run.topology, routes=routes, title="x")) == []
        assert strange(topology_svg(run.topology)) == []


@pytest.mark.parametrize(
    ("svg", "words"),
    [
        ('<text paint-order="stroke"/>', "<text paint-order>"),
        ('<text dominant-baseline="middle"/>', "<text dominant-baseline>"),
        ("<textPath/>", "<textPath>"),
        ('<g style="fill:red"/>', "<g style>"),
        ('<g fill="currentColor"/>', "<g fill=currentColor>"),
        ('<g fill="var(--ink)"/>', "<g fill=var(--ink)>"),
        ('<g stroke="#00112233"/>', "<g stroke=#00112233>"),
        ('<path stroke="context-stroke"/>', "<path stroke=context-stroke>"),
        ('<text font-size="2em"/>', "<text font-size=2em>"),
        ("<style>@media print{}</style>", "style: @media print{}"),
        ("<style>.a{fill:red}</style>", "style: .a{fill:red}"),
        ("<foreignObject/>", "<foreignObject>"),
        ("<text>x\u2081</text>", "text: x\u2081"),
        ('<g clip-path="url(#elsewhere)"/>', "<g clip-path=url(#elsewhere)>"),
    ],
)
def test_what_only_browsers_know_is_found(svg: str, words: str) -> None:
    assert strange(document(10, 10, [svg], kind="test", title="")) == [words]


def test_a_halo_is_a_text_of_its_own_below() -> None:
    halo, group = (
        ElementTree.fromstring(each)
        for each in haloed([text_at(1, 2, "a", size=9, fill="#0072b2")], class_="names", font_weight=600)
    )
    assert (halo.get("stroke"), halo.get("aria-hidden"), halo.get("font-weight")) == (PAPER, "true", "600")
    assert (group.get("class"), group.get("stroke"), group.get("font-weight")) == ("names", None, "600")
    assert [each.attrib for each in halo] == [each.attrib for each in group]
    assert haloed([], class_="names") == []


_PRINTS = """
from tests.pictures.spacetime.runs import crowd
from tests.pictures.test_nodes import faulty_run
from worldline.pictures.nodes import diagram_svg, routes_to, topology_svg
from worldline.pictures.spacetime import minkowski_svg
from worldline.spacetime import LambdaField, box
run = faulty_run()
print(topology_svg(run.topology, routes=routes_to(0, [node.routing for node in run.nodes])))
print(diagram_svg(run.records, run.num_nodes, title="Twice"))
run = crowd(12, 4)
print(minkowski_svg(run.records, 4, field=LambdaField(c=0.01), until=run.until, boundaries=box([-6] * 3, [6] * 3)))
"""


def test_pictures_are_the_same_bytes_every_time() -> None:
    once, again = (
        subprocess.run(
            [sys.executable, "-c", _PRINTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    )
    assert once == again
    assert once.count("</svg>") == 3
