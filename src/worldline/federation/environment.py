"""The environment of a participant's process: how a launcher tells it where to connect, and as whom.

What it declares is in the federation's file, and told by the server: it may be longer than a variable can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worldline.model import UsageError

ADDRESS = "WORLDLINE_ADDRESS"
NAME = "WORLDLINE_NAME"
FEDERATION = "WORLDLINE_FEDERATION"
TOKEN = "WORLDLINE_TOKEN"
OPERATOR_TOKEN = "WORLDLINE_OPERATOR_TOKEN"
AUTHORITY = "WORLDLINE_AUTHORITY"
CERTIFICATE = "WORLDLINE_CERTIFICATE"
KEY = "WORLDLINE_KEY"
SHAKE = "WORLDLINE_SHAKE"
TWIN = "WORLDLINE_TWIN"
CODE = "WORLDLINE_CODE"
FUNCTIONS = "WORLDLINE_DRAW_FUNCTIONS"
OUTPUT = "WORLDLINE_OUTPUT"
"""Where participants are to leave files for the caller that started the run; by default in its directory."""

VARIABLES = frozenset(
    (
        ADDRESS,
        NAME,
        FEDERATION,
        TOKEN,
        OPERATOR_TOKEN,
        AUTHORITY,
        CERTIFICATE,
        KEY,
        SHAKE,
        TWIN,
        CODE,
        FUNCTIONS,
    )
)
"""All that concerns one run, and is nothing to those that a participant of it may start."""


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
        given = {
            ADDRESS: self.address,
            NAME: self.name,
            FEDERATION: self.federation,
            TOKEN: self.token,
            AUTHORITY: self.authority,
            CERTIFICATE: self.certificate,
            KEY: self.key,
            SHAKE: None if self.shake is None else str(self.shake),
            TWIN: self.twin,
            CODE: self.code,
            FUNCTIONS: " ".join(self.functions),
        }
        return {variable: value for variable, value in given.items() if value}


def read_surroundings(environment: Mapping[str, str]) -> LaunchEnvironment:
    """Return what a launcher has set; all of it may be missing."""
    shake = environment.get(SHAKE)
    if shake is not None and not shake.isdecimal():
        raise UsageError(f"the environment variable {SHAKE} isn't a number: {shake!r}")
    return LaunchEnvironment(
        address=environment.get(ADDRESS),
        name=environment.get(NAME),
        federation=environment.get(FEDERATION),
        token=environment.get(TOKEN),
        authority=environment.get(AUTHORITY),
        certificate=environment.get(CERTIFICATE),
        key=environment.get(KEY),
        shake=None if shake is None else int(shake),
        twin=environment.get(TWIN),
        code=environment.get(CODE),
        functions=tuple(environment.get(FUNCTIONS, "").split()),
    )
