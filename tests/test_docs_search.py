"""The page on searching: what it shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, worldline  # noqa: F401 - A fixture.
from worldline import search

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "search.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SHOWN = re.findall(r"^```\n\$ worldline (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=["hasty", "repeating"])
def test_the_failures_of_the_page_are_found(
    worldline: Command,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    shown: str,
) -> None:
    monkeypatch.chdir(ROOT)
    code, output, _ = worldline(*shlex.split(command))
    assert code == 1
    assert output.startswith(shown)


def test_the_sound_one_passes(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.chdir(ROOT)
    sound = [word for word in shlex.split(SHOWN[0][0]) if "hasty" not in word and word != "--set"]
    code, output, _ = worldline(*sound, "--seeds", "20")
    assert (code, output.splitlines()[0]) == (0, "holds always: no participant commits what another aborts")


def test_the_property_of_the_page_is_that_of_the_example() -> None:
    shown = BLOCKS[0]
    assert shown.partition("\n\n\n")[2] in (ROOT / "examples" / "commit" / "commit.py").read_text()


def test_the_other_properties_of_the_page_judge_what_participants_log() -> None:
    found: dict[str, Any] = dict(vars(search))
    for block in BLOCKS[1:]:
        exec(block, found)
    stated = [found[name] for name in ("one_leader", "linearizable", "serializable")]
    lines = [
        ("a", "role=leader term=3"),
        ("b", "role=follower"),
        ("a", '{"type": "invoke", "f": "write", "key": "x", "value": 1}'),
        ("a", '{"type": "ok", "f": "write"}'),
        ("b", '{"type": "invoke", "f": "txn"}'),
        ("b", '{"type": "ok", "f": "txn", "value": [["r", "x", null], ["w", "y", 2]]}'),
        ("b", '{"type": "invoke", "f": "read", "key": "x"}'),
        ("b", '{"type": "ok", "f": "read", "value": 1}'),
    ]

    def judge(told: list[tuple[str, str]]) -> None:
        happenings = [search.Happening(at, who, "noted", "", text.encode(), who) for at, (who, text) in enumerate(told)]
        search.Story().judge(happenings, stated, {"a": 99})

    judge(lines)
    for text, said in (
        ("role=leader", "^b at 8ns: property failed: one leader at most$"),
        (
            '{"type": "ok", "f": "read", "key": "x", "value": null}',
            "b's read of x from 8ns to 9ns returned None, and only 1",
        ),
        ('{"type": "ok", "f": "txn", "value": [["r", "x", 5]]}', "b's transaction 2 read x = 5, which no"),
    ):
        asked = [("b", text.replace("ok", "invoke"))] if "type" in text else []
        with pytest.raises(search.Violation, match=said):
            judge([*lines, *asked, ("b", text)])
