"""The project that is checked for its types does what it is there for."""

from __future__ import annotations

import re
from pathlib import Path

from tests.typed import project


def test_a_federation(tmp_path: Path) -> None:
    digest, is_well = project.federated(tmp_path / "run.mcap")
    assert re.fullmatch("[0-9a-f]{32}", digest)
    assert is_well
    assert project.over_sockets() is not None


def test_the_other_rooms() -> None:
    assert project.shop().startswith("3h, ")
    assert project.greeted() == 5
    assert re.fullmatch("[0-9a-f]{32}", project.flown())
