"""What tests of `worldline verify` share: the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.leaks.running import command_of


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    return command_of(monkeypatch, capsys)
