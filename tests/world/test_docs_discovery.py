"""The page about discovery says what is so."""

from __future__ import annotations

import re
from secrets import token_hex

import pytest

from tests.leaks.running import EXAMPLES
from worldline.world.discovery import DiscoveryOptions

PAGE = (EXAMPLES.parent / "docs" / "world-discovery.md").read_text()


def test_the_program_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ((program, shown),) = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    exec(program.replace("warehouse", token_hex(8)), {})  # Others on this machine may run it at the same time.
    assert capsys.readouterr().out == shown


def test_the_options_are_options() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(programs[1], {})
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named == set(DiscoveryOptions.__dataclass_fields__)
