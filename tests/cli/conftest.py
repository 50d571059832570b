"""What tests of commands share: the command, run in this process."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from worldline.cli import main

Command = Callable[..., tuple[int, str, str]]

_BY_THE_CLOCK = re.compile(r"\.\.\. |\S+ has held the run at |still running: \d")


def command_of(monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> Command:
    """Return the command, which returns its exit code, output and errors.

    Without the lines that say how far a run is, and who holds it: they come by the wall clock, on a busy machine alone.
    """

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["worldline", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        code = int(exit_.value.code or 0)
        del exit_
        gc.collect()  # What stood in for the output flushes it when it goes: while it is still open.
        output = capture.readouterr()
        lines = [line for line in output.err.splitlines(keepends=True) if not _BY_THE_CLOCK.match(line)]
        return code, output.out, "".join(lines)

    return command


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return command_of(monkeypatch, capsys)
