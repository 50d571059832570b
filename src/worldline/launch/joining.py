"""Starts one participant of a federation's file for a run that is served elsewhere: `worldline join`.

First it knocks: it connects as that participant, hears what the server's own file declares for it, and goes again
before it has joined, which nobody notices. What would go wrong is found then, whatever the participant's program is:
another federation, a wrong token, a name that is taken, other declarations. Only then this process becomes the
participant's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from worldline.federation.environment import LaunchEnvironment, read_surroundings
from worldline.federation.participant.call import PATIENCE_S, Call
from worldline.federation.participant.client import connection_to
from worldline.federation.participant.declaration import Declaration, compare_declarations
from worldline.launch.file.setup import Setup, stated_by
from worldline.launch.processes import command_of, environment_of
from worldline.model import UsageError
from worldline.wire.handshake import Welcome


@dataclass(frozen=True, kw_only=True)
class Joining:
    """A participant of a file, and how it gets to its server."""

    setup: Setup
    name: str
    address: str
    token: str | None = None
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def check(self, patience_s: float = PATIENCE_S) -> None:
        """Knock at the server; refuse to start a participant that it wouldn't admit, or that it knows otherwise."""
        welcome = self._knock(patience_s)
        there = Declaration().completed(welcome.declared, welcome.period, welcome.clock).said()
        here = stated_by(self.setup.parts[self.name])
        compare_declarations(here, there, who=self.name, where=str(self.setup.file))

    def _knock(self, patience_s: float) -> Welcome:
        call = Call(
            self.address,
            self.name,
            federation=self.setup.name,
            token=self.token or "",
            authority=self.authority,
            certificate=self.certificate,
            key=self.key,
        )
        connection = connection_to(call, patience_s)
        connection.close()
        return connection.welcome

    def become(self) -> NoReturn:
        """Be the participant's process from here on: with its command, in its directory and its environment."""
        part = self.setup.parts[self.name]
        command = command_of(part)
        environment = environment_of(part, self._surroundings())
        os.chdir(part.directory)
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            raise UsageError(f"{self.name} can't be started: {error}", advice=" ".join(command)) from error

    def _surroundings(self) -> LaunchEnvironment:
        return LaunchEnvironment(
            address=self.address,
            name=self.name,
            federation=self.setup.name,
            token=self.token,
            authority=_absolute(self.authority),
            certificate=_absolute(self.certificate),
            key=_absolute(self.key),
            functions=read_surroundings(os.environ).functions,
        )


def _absolute(file: Path | None) -> str | None:
    return None if file is None else str(file.absolute())
