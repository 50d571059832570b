"""`worldline join`: one participant of a federation, started here, in a run that goes on elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from worldline.cli.options import LISTEN, takes, token_in
from worldline.federation.address import parse_address
from worldline.federation.environment import (
    ADDRESS,
    AUTHORITY,
    CERTIFICATE,
    KEY,
    TOKEN,
    LaunchEnvironment,
    read_surroundings,
)
from worldline.federation.registry import running
from worldline.launch.file.setup import Setup, check_name_in, check_startable, read_setup
from worldline.launch.processes import become_participant, check_welcome
from worldline.model import UsageError


@takes(
    f"""
    file: FILE.toml  The file that describes the federation.
    NAME  The participant to start.
    --address ADDRESS  Where the run is served (default: {ADDRESS}, or your run of that federation here, or {LISTEN}).
    --token-file FILE  File with the token to present (or set {TOKEN}).
    --authority FILE  Authority to trust, for tls:// (or set {AUTHORITY}).
    --certificate FILE  Certificate to present, for tls:// (or set {CERTIFICATE}).
    --key FILE  The certificate's key, if in a separate file (or set {KEY}).
    --set
    """
)
def join(
    file: Path,
    name: str,
    address: str | None = None,
    token_file: Path | None = None,
    authority: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    settings: list[str] | None = None,
) -> None:
    """Start one participant of a federation here, for a run served elsewhere.

    The run is one of `worldline run --without NAME` or `worldline serve`, on this machine or another. The file here and
    the file there must declare the same for the participant.
    """

    def is_wanted(each: str) -> bool:
        return each == name

    setup = read_setup(file, changes=settings or (), starts=is_wanted)
    check_name_in(setup, name)
    check_startable(setup, is_wanted)
    where = address or os.environ.get(ADDRESS) or _address_here(setup)
    parse_address(where)
    surroundings = LaunchEnvironment(
        address=where,
        name=name,
        federation=setup.name,
        token=token_in(token_file),
        authority=_path_to(authority, AUTHORITY),
        certificate=_path_to(certificate, CERTIFICATE),
        key=_path_to(key, KEY),
        functions=read_surroundings(os.environ).functions,
    )
    check_welcome(setup, surroundings)
    sys.stdout.flush()
    become_participant(setup.parts[name], surroundings)


def _address_here(setup: Setup) -> str:
    """Return where a run of this federation is served on this machine, or where one would be served."""
    found = [entry.address for entry in running(setup.name)]
    if len(found) > 1:
        raise UsageError(
            f"there are {len(found)} runs of {setup.name} here", advice=f"use --address with one of {', '.join(found)}"
        )
    return found[0] if found else LISTEN


def _path_to(given: Path | None, variable: str) -> str | None:
    file = given or os.environ.get(variable)
    return str(Path(file).absolute()) if file else None
