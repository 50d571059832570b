"""How a machine's program is passed on from a federation's file: as an entry of its own kind, in one line of text.

It stands where other participants have an entry, so that everything that passes those on passes these on, too.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, json

from worldline.model.errors import ConfigurationError, shown

KINDS = ("script", "module")
ESCAPES = ("files", "processes", "tls")
"""What a machine's program may be allowed to do though it gets out of the simulation, or isn't simulated in full."""


class MachineEntry(Struct, frozen=True):
    """A machine's program: a script or a module, with its arguments; and the computers that it can find.

    `folder` is what its disk holds at the start of a run; if `volatile`, a crash may take back what wasn't synced.
    `allow` are the escapes that it is allowed.
    """

    kind: str
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    folder: str | None = None
    allow: tuple[str, ...] = ()
    volatile: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {json.encode(self).decode()}"

    @property
    def command(self) -> str:
        """The program and its arguments, as its user has written them."""
        return f"{self.kind} {shlex.join(self.words)}"


def read_machine(entry: str | None) -> MachineEntry | None:
    """Return what an entry says of a machine; None if it is another participant's."""
    kind, _, rest = (entry or "").partition(" ")
    return json.decode(rest, type=MachineEntry) if kind in KINDS and rest.startswith("{") else None


def checked_escapes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the escapes that a program is allowed; refuse names of others."""
    if isinstance(names, str):
        raise ConfigurationError(f"{shown(names)} is one text", advice=f'write ["{names}"]')
    for name in names:
        if name not in ESCAPES:
            raise ConfigurationError(f"{shown(name)} can't be allowed", advice=f"there are {', '.join(ESCAPES)}")
    return tuple(sorted(set(names)))


def topics_of(name: str) -> tuple[str, str]:
    """Return the topics on which a machine gets what is sent to it."""
    return f"tcp/{name}", f"udp/{name}"


def script_of(entry: MachineEntry, directory: Path) -> Path | None:
    """Return the file of a script."""
    return directory / entry.words[0] if entry.kind == "script" else None


def check_script(file: Path) -> None:
    """Refuse a script that isn't there, or that Python can't read."""
    try:
        ast.parse(file.read_bytes())
    except OSError as error:
        advice = "a script is looked for in the participant's directory"
        raise ConfigurationError(f"there is no script {file}: {error.strerror}", advice=advice) from None
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ConfigurationError(f"{file.name} isn't Python: {file.name}{line}: {error.args[0]}") from None
