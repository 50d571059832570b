"""How a federation's file names a machine's program, in one line: ``script server.py --port 8080 @ api db``.

That is what ``python`` would be given, and the names of the computers in the network. It stands where other
participants have an entry, so that everything that passes those on passes these on, too.
"""

from __future__ import annotations

import ast
import shlex
from pathlib import Path
from typing import NamedTuple

from worldline.model.errors import ConfigurationError

KINDS = ("script", "module")
_AMONG = "@"


class MachineEntry(NamedTuple):
    """A machine's program: a script or a module, with its arguments; and the computers that it can find."""

    kind: str
    words: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        among = f" {_AMONG} {shlex.join(self.names)}" if self.names else ""
        # What a program is given may be the sign itself: only behind the last one there are names.
        return f"{self.kind} {shlex.join(self.words)}{among or f' {_AMONG}'}"

    @property
    def command(self) -> str:
        """The program and its arguments, as its user has written them."""
        return shlex.join(self.words)


def read_machine(entry: str | None) -> MachineEntry | None:
    """Return what an entry says of a machine; None if it is another participant's."""
    kind, blank, rest = (entry or "").partition(" ")
    if kind not in KINDS or not blank:
        return None
    words = shlex.split(rest)
    if _AMONG not in words:
        return MachineEntry(kind, tuple(words))
    place = len(words) - 1 - words[::-1].index(_AMONG)
    return MachineEntry(kind, tuple(words[:place]), tuple(words[place + 1 :]))


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
