"""The page about interaction says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES
from worldline.world.console import (
    InteractionsLog,
    ScriptSession,
    help_lines,
    parse_command,
    parse_script,
    read_interactions,
)
from worldline.world.run import World

PAGE = (EXAMPLES.parent / "docs" / "world-interaction.md").read_text()


def test_the_table_has_every_command_as_its_help_has_it() -> None:
    usages = re.findall(r"^\| `([^`]*)` \|", PAGE, re.MULTILINE)
    assert usages == [help_lines(usage.split()[0])[0] for usage in usages]
    assert len(usages) == len(help_lines())


def test_the_script_says_what_is_shown(tmp_path: Path) -> None:
    ((script, shown),) = re.findall(r"```sh\n(.*?)```\n.*?```\n(.*?)```", PAGE, re.DOTALL)
    said: list[str] = []
    log = InteractionsLog()
    world = World(EXAMPLES / "world" / "levels.sdf", spectators=[log])
    ScriptSession(world, parse_script(script), said.append).run()
    assert said == shown.splitlines()
    log.history.save(tmp_path / "log")
    lines = (tmp_path / "log").read_text().splitlines()
    (shown_log,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert shown_log.splitlines() == [re.sub(r'(?<="content_hash":")[^"]*', "...", line) for line in lines[:3]]
    assert read_interactions(tmp_path / "log") == log.history


def test_the_program_prints_what_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ((program, shown),) = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(EXAMPLES.parent)
    exec(program, {})
    assert capsys.readouterr().out == shown


def test_times_are_written_as_the_page_has_them() -> None:
    for time in re.findall(r"such as `(.*?)` or `(.*?)`, and pauses", PAGE)[0]:
        assert parse_command(f"run to {time}") is not None
