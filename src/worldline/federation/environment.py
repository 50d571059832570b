"""The environment of a participant's process: how a launcher tells it where to connect, and as whom.

A declaration may be longer than a variable can be. Then the variable holds ``@`` and the name of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from worldline.federation.declaration import Declaration
from worldline.model import UsageError

PREFIX = "WORLDLINE_"
ADDRESS = "WORLDLINE_ADDRESS"
NAME = "WORLDLINE_NAME"
FEDERATION = "WORLDLINE_FEDERATION"
TOKEN = "WORLDLINE_TOKEN"
AUTHORITY = "WORLDLINE_AUTHORITY"
DECLARATION = "WORLDLINE_DECLARATION"
SHAKE = "WORLDLINE_SHAKE"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """All that a launcher tells a process. `shake` seeds delays at random, which must not show in any result."""

    address: str | None = None
    name: str | None = None
    federation: str | None = None
    token: str | None = None
    authority: str | None = None
    declaration: Declaration = field(default_factory=Declaration)
    shake: int | None = None

    def variables(self) -> dict[str, str]:
        """Return what is to be set in the process's environment."""
        given = {
            ADDRESS: self.address,
            NAME: self.name,
            FEDERATION: self.federation,
            TOKEN: self.token,
            AUTHORITY: self.authority,
            DECLARATION: msgspec.json.encode(self.declaration.as_plain()).decode(),
            SHAKE: None if self.shake is None else str(self.shake),
        }
        return {variable: value for variable, value in given.items() if value}


def read_surroundings(environment: Mapping[str, str]) -> Surroundings:
    """Return what a launcher has set; all of it may be missing."""
    try:
        declaration = Declaration(**msgspec.json.decode(_whole(environment.get(DECLARATION) or "{}"), type=dict))
    except (msgspec.DecodeError, TypeError, OSError) as error:
        raise UsageError(f"the environment variable {DECLARATION} can't be read: {error}") from error
    shake = environment.get(SHAKE)
    if shake is not None and not shake.isdecimal():
        raise UsageError(f"the environment variable {SHAKE} isn't a number: {shake!r}")
    return Surroundings(
        address=environment.get(ADDRESS),
        name=environment.get(NAME),
        federation=environment.get(FEDERATION),
        token=environment.get(TOKEN),
        authority=environment.get(AUTHORITY),
        declaration=declaration,
        shake=None if shake is None else int(shake),
    )


def _whole(text: str) -> bytes:
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
