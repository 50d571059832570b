"""`worldline view` of a failure that was saved, and `--watch` of a search: what their pages are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.watch.test_tape import told
from worldline.cli import view
from worldline.watch.show import Show

MUTEX = str(Path(__file__).parents[2] / "examples" / "broken_mutex" / "broken_mutex.py")
TALK = """
from worldline import Federation, Network, Program, link
from worldline.search import always


def ask(me):
    for number in range(3):
        me.publish("question", b"%d" % number)
        me.advance(by="10ms")


def hear(me):
    for message in me.messages():
        me.log(f"heard {message.payload.decode()}")


@always("questions are heard in order")
def in_order(story):
    heard = [note.text for note in story.noted()]
    return heard == [f"heard {number}" for number in range(len(heard))]


model = Federation(
    {"ann": Program(ask, publishes=["question"]), "bob": Program(hear, subscribes=["question"])},
    network=Network(default=link("1ms", loss=0.2)),
    faults=["25ms crash bob 1ms"],
    until="50ms",
)
"""
LOST = "loss/question/ann/bob/1"
NAMED = ("--target", "talk.py", "--property", "talk:in_order")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Show, dict[str, Any]]]:
    """What pages were served instead of being waited for."""
    found: list[tuple[Show, dict[str, Any]]] = []
    monkeypatch.setattr(view, "_serve", lambda shows, content, page: found.append((shows[0], content)))
    return found


def save(**more: Any) -> None:
    Path("talk.py").write_text(TALK)
    saved = {"format": 1, "target": "talk.py", "seed": 0, "properties": ["talk:in_order"], "draws": {LOST: True}}
    Path("found.json").write_text(json.dumps({**saved, **more}))


def test_a_saved_failure_is_a_story_with_what_decided_it(
    worldline: Command, served: list[tuple[Show, dict[str, Any]]]
) -> None:
    save()
    assert worldline("view", "found.json", *NAMED)[0] == 0
    ((show, content),) = served
    story = content["story"]
    assert story["circumstances"] == [
        "every message takes the usual time and none gets lost, but",
        f"  {LOST} = yes  (message 2 of ann on question doesn't reach bob)",
        "  25ms crash bob 1ms",
    ]
    matters = [(step["at"], step["who"], step["text"]) for step in story["steps"] if step["matters"]]
    assert matters == [(10_000_000, "ann", "sent  question: 1  (doesn't reach bob)")]
    assert story["steps"][-1]["text"] == "noted  heard 2"
    head, rows = told(show.news({}))
    assert len(rows) == 3
    assert head["status"]["failedAt"] == 21_000_000
    assert head["status"]["failedBy"] == "bob"
    assert "questions are heard in order" in head["status"]["failure"]
    assert [(note[0], note[5]) for note in head["notes"] if note[5]] == [(25_000_000, "down"), (26_000_000, "up")]


def test_what_was_mended_is_shown_too(worldline: Command, served: list[tuple[Show, dict[str, Any]]]) -> None:
    save(draws={})
    code, _, said = worldline("view", "found.json", *NAMED)
    assert (code, len(served)) == (0, 1)
    assert "it doesn't fail any more" in said


def test_a_search_ends_with_its_page(worldline: Command, served: list[tuple[Show, dict[str, Any]]]) -> None:
    code, _, _ = worldline("nodes", "--file", MUTEX, "--seeds", "12", "--workers", "1", "--quiet", "--watch")
    ((show, content),) = served
    assert code == 1
    assert show.facts["room"] == "nodes"
    steps = content["story"]["steps"]
    assert sum(step["matters"] for step in steps) == len(content["story"]["circumstances"]) - 1
    assert steps[-1]["text"].startswith("is inside")
    worldline("nodes", "--file", MUTEX, "--seed", "11", "--save", "mutex.json", "--quiet")
    assert worldline("view", "mutex.json", "--target", MUTEX)[0] == 0
    assert len(served) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["found.json"],
            "if you trust what it names: worldline view found.json --target talk.py --property talk:in_order",
        ),
        (["found.json", "found.json"], "two failures can't be compared"),
        (["missing.json"], "missing.json can't be read"),
        (["cut.json"], "cut.json isn't a saved failure"),
        (["nodes.json"], "if you trust what it names: --target"),
        (["nodes.json", "--property", "a:b"], "leave out all but --target"),
        (["found.mcap", "--target", "talk.py"], "found.mcap is no saved failure"),
    ],
)
def test_what_cant_be_viewed_is_refused_in_a_line(worldline: Command, arguments: list[str], said: str) -> None:
    save()
    Path("cut.json").write_text('{"format": 1, "tar')
    Path("nodes.json").write_text('{"format": 1, "file": "mutex.py"}')
    code, _, err = worldline("view", *arguments)
    assert code == 2
    assert said in err.replace("\n", " ")
    assert "Traceback" not in err


def test_a_port_that_there_cannot_be_is_refused(worldline: Command) -> None:
    code, out, err = worldline("view", "run.mcap", "--port", "65536")
    assert code == 2
    assert "65536 is not in the range 0<=x<=65535" in out + err
