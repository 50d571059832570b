"""Which command takes which kind of file: for errors about one that was given to another command."""

from __future__ import annotations

from pathlib import Path

_COMMANDS = {
    ".toml": "worldline run {} runs it",
    ".py": "worldline run {} runs it",
    ".sdf": "worldline run {} --until 10s runs it",
    ".world": "worldline run {} --until 10s runs it",
    ".mcap": "worldline info {} shows it",
    ".sweep": "worldline sweep {} shows it",
    ".timing": "worldline why {} reads it",
    ".json": "if a search has saved it, worldline view {} --target TARGET shows it",
}


def command_for(file: object) -> str | None:
    """Return what takes a file with such a name, in words; None, if nothing does."""
    words = _COMMANDS.get(Path(str(file)).suffix)
    return None if words is None else words.format(file)
