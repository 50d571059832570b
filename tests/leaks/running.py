"""Runs the command, and says what it has found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worldline.cli import main

LEAKS = Path(__file__).parent
ROOT = LEAKS.parent.parent
EXAMPLES = ROOT / "examples"

Verify = Callable[..., tuple[int, dict[str, Any]]]


def command_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return what runs `worldline` in this process, and returns its exit code, output and errors."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["worldline", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        said = capsys.readouterr()
        return int(exit_.value.code or 0), said.out, said.err

    return command


def verified(command: Callable[..., tuple[int, str, str]], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Verify something; return the exit code, and what is said as JSON."""
    code, out, err = command("verify", *arguments, "--json")
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return code, found
