"""Starts one participant of a federation's file for a run that is served elsewhere: `worldline join`.

First it knocks: it connects as that participant, hears what the server's own file declares for it, and goes again
before it has joined, which changes nothing. What would go wrong is found then, whatever the participant's program is:
another federation, a wrong token, a name that is taken, other declarations. Only then this process becomes the
participant's.
"""

from __future__ import annotations

import os
from typing import NoReturn

from worldline.federation.environment import LaunchEnvironment
from worldline.federation.participant.call import PATIENCE_S, Call
from worldline.federation.participant.client import connection_to
from worldline.federation.participant.declaration import Declaration, compare_declarations
from worldline.launch.file.setup import ParticipantSetup, Setup, stated_by
from worldline.launch.processes import command_of, environment_of
from worldline.model import UsageError


def check_welcome(setup: Setup, surroundings: LaunchEnvironment, patience_s: float = PATIENCE_S) -> None:
    """Knock at the server; refuse to start a participant that it wouldn't admit, or that it knows otherwise."""
    name = surroundings.name or ""
    call = Call(
        surroundings.address,
        name,
        federation=setup.name,
        token=surroundings.token or "",
        authority=surroundings.authority,
        certificate=surroundings.certificate,
        key=surroundings.key,
    )
    connection = connection_to(call, patience_s)
    connection.close()
    welcome = connection.welcome
    there = Declaration().completed(welcome.declared, welcome.period, welcome.clock).said()
    compare_declarations(stated_by(setup.parts[name]), there, who=name, where=str(setup.file))


def become_participant(part: ParticipantSetup, surroundings: LaunchEnvironment) -> NoReturn:
    """Be the participant's process from here on: with its command, in its directory and its environment."""
    command, environment = command_of(part), environment_of(part, surroundings)
    os.chdir(part.directory)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise UsageError(f"{part.name} can't be started: {error}", advice=" ".join(command)) from error
