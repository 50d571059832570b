"""How targets are written."""

from __future__ import annotations

from pathlib import Path

from worldline.model.errors import UsageError

TOML, PYTHON = ".toml", ".py"


def parts_of(target: str) -> tuple[Path, str]:
    """Take FILE.py:NAME apart."""
    before, _, name = target.rpartition(":")
    if before.endswith((PYTHON, TOML)):
        if before.endswith(TOML):
            raise UsageError(f"{before} is a federation as a whole", advice=f"write {before}, without :{name}")
        return Path(before), name
    return Path(target), ""
