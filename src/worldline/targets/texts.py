"""How targets are written."""

from __future__ import annotations

from pathlib import Path

from worldline.model.errors import UsageError

TOML, PYTHON = ".toml", ".py"
WORLDS = (".sdf", ".world")

_WHOLES = {TOML: "a federation", **dict.fromkeys(WORLDS, "a world")}


def parts_of(target: str) -> tuple[Path, str]:
    """Take FILE.py:NAME apart."""
    before, _, name = target.rpartition(":")
    kind = Path(before).suffix
    if kind in _WHOLES:
        raise UsageError(f"{before} is {_WHOLES[kind]} as a whole", advice=f"write {before}, without :{name}")
    return (Path(before), name) if kind == PYTHON else (Path(target), "")
