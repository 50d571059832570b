"""The guide to `worldline why` shows what it says, and the example in it what a run of it says."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Command
from tests.cli.conftest import worldline as worldline_command
from tests.lock.table import Table
from tests.lock.why.test_situations import listens_to
from tests.test_docs import ROOT
from worldline.cli.commands import NAMES
from worldline.lock import Advance, Next
from worldline.lock.why.reasons import Activity, situation_of
from worldline.lock.why.words import in_words
from worldline.model import FOREVER, MS, SECOND, Network, link

worldline = worldline_command
PAGE = (ROOT / "docs" / "why.md").read_text()


def shown_after(command: str) -> str:
    """Return what the guide shows below a command."""
    return PAGE.split(f"$ {command}\n")[1].split("```")[0].split("$ ")[0]


def test_the_guide_shows_a_situation_as_it_is_said() -> None:
    joins = {
        "arm": listens_to("commands", publishes="pose"),
        "camera": listens_to(publishes="images"),
        "planner": listens_to("images", publishes="commands"),
    }
    made = Table(*joins, network=Network(default=link("5ms")), joins=joins, end=20 * SECOND)
    made.say("camera", Advance(12_405 * MS))
    made.say("planner", Advance(12_410 * MS))
    made.say("arm", Advance(12_410 * MS))
    made.say("camera", Advance(12_406 * MS))
    made.say("planner", Advance(12_420 * MS))
    made.say("arm", Next(FOREVER))
    activities = {
        "camera": Activity(seconds=3.2, process=4713, condition="running"),
        "planner": Activity(seconds=3.2),
        "arm": Activity(seconds=3.1),
    }
    situation = situation_of(made.arbiter, "cell", activities, events=9, time=12_406 * MS)
    lines = "\n".join(in_words(situation)) + "\n"
    lines = lines.partition("\n\ncamera has sent")[0] + "\n"  # In the guide, it has.
    assert shape(lines) == shape(shown_after("worldline why cell"))


def test_the_guide_shows_what_the_example_says(worldline: Command) -> None:
    example = "examples/inspection/inspection.toml"
    code, output, _ = worldline("run", str(ROOT / example), "--timing")
    assert code == 0
    assert shape(output) == shape(shown_after(f"worldline run {example} --timing"))
    digest = re.compile(r"digest (\w+)")
    assert digest.findall(output) == digest.findall(shown_after(f"worldline run {example} --timing"))
    code, output, _ = worldline("why", "inspection.mcap")
    assert code == 0
    shown = shape(shown_after("worldline why inspection.mcap"))
    assert [line for line in shape(output) if "would remove" not in line] == [
        line for line in shown if "would remove" not in line
    ]
    assert any("would remove" in line for line in shape(output))


@pytest.mark.parametrize("command", re.findall(r"^worldline (\w+) cell", PAGE, re.MULTILINE))
def test_every_command_of_the_guide_is_one(command: str) -> None:
    assert command in NAMES


def shape(text: str) -> list[str]:
    """Return lines without what differs from run to run: numbers, digests, and the order of what is ranked."""
    masked = re.sub(r"digest \w+", "digest", re.sub(r"\d+(?:[.,]\d+)*", "#", text))
    lines = [" ".join(line.split()) for line in masked.splitlines()]
    return sorted(" ".join(line.split()[:2]) if line.startswith("who ") else line for line in lines)
