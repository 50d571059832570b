"""The environment of a participant's process: how a launcher tells it where to connect, and as whom.

What it declares is in the federation's file, and told by the server: it may be longer than a variable can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from worldline.model import UsageError

ADDRESS = "WORLDLINE_ADDRESS"
NAME = "WORLDLINE_NAME"
FEDERATION = "WORLDLINE_FEDERATION"
TOKEN = "WORLDLINE_TOKEN"
AUTHORITY = "WORLDLINE_AUTHORITY"
CERTIFICATE = "WORLDLINE_CERTIFICATE"
KEY = "WORLDLINE_KEY"
OPERATOR_TOKEN = "WORLDLINE_OPERATOR_TOKEN"
SHAKE = "WORLDLINE_SHAKE"
TWIN = "WORLDLINE_TWIN"
CODE = "WORLDLINE_CODE"
FUNCTIONS = "WORLDLINE_DRAW_FUNCTIONS"
OUTPUT = "WORLDLINE_OUTPUT"
"""Where participants are to leave files for the caller that started the run; by default in its directory."""


@dataclass(frozen=True, kw_only=True)
class LaunchEnvironment:
    """All that a launcher tells a process. `shake` seeds delays at random, which must not show in any result.

    `twin` is the folder of a twin: where it finds what its first copy was told, and leaves what it has found out.
    `code` is a hash of the code that the process is started from. `functions` are those that a server's table of draws
    may name, each as ``module:function``.
    """

    address: str | None = None
    name: str | None = None
    federation: str | None = None
    token: str | None = None
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    shake: int | None = None
    twin: str | None = None
    code: str | None = None
    functions: tuple[str, ...] = ()

    def variables(self) -> dict[str, str]:
        """Return what is to be set in the process's environment."""
        given = {**asdict(self), "shake": "" if self.shake is None else str(self.shake)}
        given["functions"] = " ".join(self.functions)
        return {_VARIABLES[field]: value for field, value in given.items() if value}


_VARIABLES = {field.name: f"WORLDLINE_{field.name.upper()}" for field in fields(LaunchEnvironment)}
_VARIABLES["functions"] = FUNCTIONS

VARIABLES = frozenset((*_VARIABLES.values(), OPERATOR_TOKEN))
"""All that concerns one run, and is nothing to processes that a participant of it may start."""


def read_surroundings(environment: Mapping[str, str]) -> LaunchEnvironment:
    """Return what a launcher has set; all of it may be missing."""
    found: dict[str, Any] = {field: environment.get(variable) for field, variable in _VARIABLES.items()}
    if found["shake"] is not None and not found["shake"].isdecimal():
        raise UsageError(f"the environment variable {SHAKE} isn't a number: {found['shake']!r}")
    found["shake"] = None if found["shake"] is None else int(found["shake"])
    found["functions"] = tuple((found["functions"] or "").split())
    return LaunchEnvironment(**found)
