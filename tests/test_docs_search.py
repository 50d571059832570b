"""The page on searching: what it shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command, worldline  # noqa: F401 - A fixture.

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "search.md").read_text()
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
    (shown,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert shown.partition("\n\n\n")[2] in (ROOT / "examples" / "commit" / "commit.py").read_text()
